"""The NVLink domain of a node, with a real program in place of nvidia-smi."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors import nvlink
from agent.collectors.probe import CollectedFacts, SourceAbsent
from agent.node.command import Runner, command_env
from agent.node_report import merge_device
from tests.agent.nodes import settings_for
from tests.agent.programs import write_program
from topology.model.errors import CollectError, CommandFailed, CommandTimeout
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import build_report

CLUSTER = "7c1d0a52-3f84-4b19-9a6e-d02b5e8f4c31"
ASKED = "--query-gpu=fabric.state,fabric.status,fabric.cliqueId,fabric.clusterUuid --format=csv"
IN_ONE = f"Completed, Success, 7, {CLUSTER}\n" * 4
DOMAIN = Neighbor(
    device_ids=(Id(IdKind.CHASSIS_ID, f"{CLUSTER}.7", "nvlink"),),
    device_name="nvlink-7c1d0a52-7",
    port_ids=(),
    port_name="",
    source=Source.OTHER,
    kind=DeviceKind.SWITCH,
)
PORT = Port("nvlink", medium=Medium.NVLINK, state=PortState.UP, neighbors=(DOMAIN,))
RUNNER = Runner(command_env({}))
LACKS_THE_FIELDS = 'Field "fabric.cliqueId" is not a valid field to query.'


def collect(folder: Path, body: str, deadline_s: float = 5.0) -> CollectedFacts:
    program = write_program(folder / "nvidia-smi", body)
    settings = settings_for(folder, nvidia_smi=str(program), deadline_s=deadline_s)
    assert nvlink.find_absence(settings, RUNNER) is None
    return nvlink.collect(settings, RUNNER)


def test_it_reports_a_domain_as_a_switch_that_the_node_is_cabled_to(tmp_path: Path) -> None:
    found = collect(tmp_path, f"assert words == {ASKED!r}\nprint({IN_ONE!r})")
    assert found == CollectedFacts(ports=(PORT,))
    assert found.note == ""


def test_it_runs_the_full_query_on_an_old_driver(tmp_path: Path) -> None:
    told = (
        "GPU 00000008:01:00.0\n    Fabric\n        State : Completed\n        Status : Success\n"
        f"        CliqueId : 7\n        ClusterUUID : {CLUSTER}\n"
    )
    body = f"if words != '-q':\n    print({LACKS_THE_FIELDS!r})\n    sys.exit(2)\nprint({told!r})"
    assert collect(tmp_path, body).ports == (PORT,)


@pytest.mark.parametrize(
    ("printed", "note"),
    [
        pytest.param("N/A, N/A, N/A, N/A", "not in a multi-node", id="cards without NVLink"),
        pytest.param("", "not in a multi-node", id="nothing at all"),
        pytest.param(
            f"Completed, Success, 1, {CLUSTER}\nCompleted, Success, 2, {CLUSTER}",
            "different NVLink domains",
            id="GPUs that disagree",
        ),
    ],
)
def test_it_claims_no_domain_for(tmp_path: Path, printed: str, note: str) -> None:
    found = collect(tmp_path, f"print({printed!r})")
    assert found.is_empty
    assert note in found.note


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param("print('No devices were found'); sys.exit(6)", "No devices", id="no GPU"),
        pytest.param(
            "print(\"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
            ' Make sure that the latest NVIDIA driver is installed and running."); sys.exit(9)',
            "driver",
            id="no driver",
        ),
    ],
)
def test_it_has_no_data_with(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(SourceAbsent, match=reason):
        collect(tmp_path, body)


def test_it_has_no_data_without_the_program(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, nvidia_smi=str(tmp_path / "nvidia-smi"))
    assert "not found" in str(nvlink.find_absence(settings, RUNNER))
    with pytest.raises(SourceAbsent, match="not found"):
        nvlink.collect(settings, RUNNER)


@pytest.mark.parametrize(
    ("body", "error", "deadline_s"),
    [
        pytest.param("sys.exit('GPU is lost')", CommandFailed, 5, id="it breaks"),
        pytest.param("import time; time.sleep(60)", CommandTimeout, 0.2, id="it hangs"),
        pytest.param(
            "print('In Progress, N/A, N/A, N/A')", CollectError, 5, id="no GPU has registered yet"
        ),
    ],
)
def test_it_fails_and_so_keeps_the_last_facts_when(
    tmp_path: Path, body: str, error: type[CollectError], deadline_s: float
) -> None:
    with pytest.raises(error) as raised:
        collect(tmp_path, body, deadline_s)
    assert not isinstance(raised.value, SourceAbsent)


def test_it_reports_lines_that_it_cannot_read(tmp_path: Path) -> None:
    found = collect(tmp_path, f"print({IN_ONE!r} + 'Completed, Success')")
    assert found.ports == (PORT,)
    assert [str(one) for one in found.errors] == [
        "nvidia-smi:5: expected 4 fields: 'Completed, Success'"
    ]


def test_it_restores_the_domain_from_the_report(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    merged = merge_device(settings, [CollectedFacts(ports=(Port("eth0"), PORT))])
    again = build_report(merged, name="node01").device
    assert isinstance(again, Device)
    assert nvlink.restore(again) == CollectedFacts(ports=(PORT,))
