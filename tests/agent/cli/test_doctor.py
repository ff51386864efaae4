"""`toponaut-agent doctor`: one line per source of a node, and what mends it.

`tests/lab/test_lldp.py` runs it beside a real lldpd.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from click.testing import CliRunner, Result

from agent.cli.commands import cli
from agent.cli.doctor import NodeTools, check_node
from agent.collection import CollectorRun, RunOutcome
from agent.collectors.probe import CollectedFacts
from runtime.checks import Outcome, render_checks
from tests.agent.nodes import card, chassis, heard, plant
from tests.agent.programs import write_answering
from topology.model.facts import DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind

UMAD = "/dev/infiniband/umad0"
MAC = "b8:ce:f6:00:00:01"
LEAF = Neighbor((Id(IdKind.HOSTNAME, "leaf"),), "leaf", (), "swp1", Source.LLDP, DeviceKind.SWITCH)


def port(name: str, *, medium: Medium = Medium.ETHERNET, state: PortState = PortState.UP) -> Port:
    return Port(name, medium=medium, state=state)


def run_of(
    name: str,
    *ports: Port,
    outcome: RunOutcome = RunOutcome.OK,
    message: str = "",
    is_absent: bool = False,
    needs_restart: bool = False,
) -> CollectorRun:
    facts = CollectedFacts(ports=ports)
    return CollectorRun(name, outcome, message, 0.1, facts, is_absent, needs_restart)


HEALTHY = {
    "net_sysfs": run_of("net_sysfs", port("eth0")),
    "ib_sysfs": run_of("ib_sysfs"),
    "lldpd": run_of("lldpd", port("eth0")._replace(neighbors=(LEAF,))),
    "nvlink": run_of("nvlink", message="nvidia-smi not found", is_absent=True),
}
HCA = run_of("ib_sysfs", port("mlx5_0/1", medium=Medium.INFINIBAND))
NOTHING_HEARD = run_of("lldpd", outcome=RunOutcome.NO_DATA, message="no neighbor heard")
NO_LLDPD = run_of("lldpd", outcome=RunOutcome.NO_DATA, message="lldpcli not found", is_absent=True)


def faults(
    *changes: CollectorRun,
    programs: tuple[str, ...] = (),
    umads: Mapping[str, bool] = MappingProxyType({UMAD: True}),
) -> list[tuple[str, str, str]]:
    runs = HEALTHY | {run.collector: run for run in changes}
    tools = NodeTools(lambda name: name in programs, "1.0.16", umads)
    checks = check_node(list(runs.values()), tools)
    assert all(row.fix for row in checks if row.outcome is not Outcome.OK)
    assert render_checks(checks)
    return [
        (row.outcome.value, row.subject, row.message)
        for row in checks
        if row.outcome is not Outcome.OK
    ]


def test_a_healthy_node_has_only_good_lines() -> None:
    assert faults() == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            run_of("net_sysfs", outcome=RunOutcome.FAILED, message="is sysfs mounted?"),
            ("error", "interfaces", "is sysfs mounted?"),
            id="no sysfs",
        ),
        pytest.param(
            NOTHING_HEARD,
            ("warning", "LLDP", "lldpd runs, and has heard no neighbor"),
            id="no neighbor",
        ),
        pytest.param(
            run_of("lldpd", outcome=RunOutcome.FAILED, message="exit 1: permission denied"),
            ("error", "LLDP", "exit 1: permission denied"),
            id="an lldpd that refuses",
        ),
        pytest.param(
            run_of("firmware_lldp", port("eth0")._replace(firmware_lldp=True)),
            (
                "warning",
                "LLDP in firmware",
                "the firmware of eth0 consumes LLDP frames before the host sees them",
            ),
            id="a card that consumes LLDP frames",
        ),
        pytest.param(
            run_of("ib_sysfs", outcome=RunOutcome.FAILED, message="cannot be read"),
            ("error", "InfiniBand", "cannot be read"),
            id="unreadable HCAs",
        ),
        pytest.param(
            HCA,
            (
                "warning",
                "sweeps",
                "ibnetdiscover is not installed, so this node cannot sweep if it is elected",
            ),
            id="an HCA without ibnetdiscover",
        ),
        pytest.param(
            run_of("lldpd", outcome=RunOutcome.FAILED, message="deleted", needs_restart=True),
            ("error", "LLDP", "deleted"),
            id="a folder of lldpd that was deleted",
        ),
        pytest.param(
            run_of("firmware_lldp", outcome=RunOutcome.NO_DATA, message="no LLDP flag for eth0"),
            ("unknown", "LLDP in firmware", "no LLDP flag for eth0"),
            id="a card that does not say whether it consumes frames",
        ),
        pytest.param(
            run_of("nvlink", outcome=RunOutcome.FAILED, message="no answer in 10 s"),
            ("warning", "NVLink", "no answer in 10 s"),
            id="an nvidia-smi that hangs",
        ),
    ],
)
def test_a_fault_is_a_line(change: CollectorRun, expected: tuple[str, str, str]) -> None:
    assert faults(change) == [expected]


def test_a_node_without_lldpd_is_asked_to_install_it_unless_it_has_infiniband() -> None:
    assert [row[:2] for row in faults(NO_LLDPD)] == [("warning", "LLDP")]
    assert faults(NO_LLDPD, HCA, programs=("ibnetdiscover",)) == []
    assert faults(NOTHING_HEARD, HCA, programs=("ibnetdiscover",)) == []


def test_frames_that_are_required_and_refused_are_an_error() -> None:
    refused = run_of("frames", outcome=RunOutcome.FAILED, message="not allowed", is_absent=True)
    assert faults(NO_LLDPD, refused) == [("error", "LLDP", "not allowed")]
    assert faults(refused) == [], "lldpd hears a neighbor"


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        (run_of("frames", message="no frame heard"), "no frame heard"),
        (
            run_of("frames", outcome=RunOutcome.NO_DATA, message="no scapy", is_absent=True),
            "lldpcli not found; no scapy",
        ),
    ],
    ids=["that heard none", "that cannot listen"],
)
def test_a_node_without_a_neighbor_is_described_by_its_own_frames(
    frames: CollectorRun, message: str
) -> None:
    assert faults(NO_LLDPD, frames) == [("warning", "LLDP", message)]


def test_a_port_that_is_down_is_named() -> None:
    ports = [
        port(f"mlx5_{number}/1", medium=Medium.INFINIBAND, state=state)
        for number, state in enumerate((PortState.UP, PortState.DOWN))
    ]
    found = faults(run_of("ib_sysfs", *ports), programs=("ibnetdiscover",))
    assert found == [("warning", "InfiniBand", "1 of 2 ports are up; down: mlx5_1/1")]


@pytest.mark.parametrize(
    ("umads", "message"),
    [
        pytest.param(
            {},
            "there is no /dev/infiniband/umad*, so this node cannot sweep if it is elected",
            id="no device file",
        ),
        pytest.param(
            {"/dev/infiniband/umad0": True, "/dev/infiniband/umad1": False},
            "this user may not read and write /dev/infiniband/umad1, so sweeps fail",
            id="a device file of another user",
        ),
    ],
)
def test_a_node_with_infiniband_needs_the_files_for_its_sweeps(
    umads: dict[str, bool], message: str
) -> None:
    assert faults(umads=umads) == []
    found = faults(HCA, programs=("ibnetdiscover",), umads=umads)
    assert found == [("warning", "umad", message)]


class Bench:
    """A node with one card, and a small program that stands in for lldpcli."""

    def __init__(self, root: Path) -> None:
        self.sysfs = plant(root / "sys", card("eth0", "0000:03:00.0", MAC))
        answers = {
            "neighbors": heard(("eth0", "leaf", "swp1")),
            "chassis": chassis(MAC),
            "-v": "1.0.16",
        }
        self.lldpcli = write_answering(root / "lldpcli", answers)

    def doctor(self, *words: str) -> Result:
        options = ["--node-name", "node01", "--sysfs-root", str(self.sysfs)]
        options += ("--lldpcli", str(self.lldpcli), "--frames", "never", "--nvidia-smi", "none")
        return CliRunner().invoke(cli, ["doctor", *options, *words])


def test_it_prints_text_and_json_of_the_same_checks(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    text, document = bench.doctor(), json.loads(bench.doctor("-o", "json").stdout)
    assert text.exit_code == 0, text.output
    assert "ok       LLDP        a neighbor is heard on eth0" in text.stdout.splitlines()
    assert {"subject": "lldpcli", "outcome": "ok"}.items() <= document[2].items()
    assert document[2]["message"].startswith("version 1.0.16; ")
    assert [row["outcome"] for row in document] == ["ok"] * len(document)


def test_an_error_exits_with_5(tmp_path: Path) -> None:
    result = Bench(tmp_path).doctor("--sysfs-root", str(tmp_path / "none"))
    assert result.exit_code == 5
    assert "-> mount the host's /sys into the container" in result.stdout


def test_it_names_the_counters_that_the_firmware_refuses(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    device = bench.sysfs / "class/infiniband/mlx5_0"
    plant(device, {"node_guid": "b83f:d203:0000:0001", "ports/1/link_layer": "InfiniBand"})
    assert "link counters" not in bench.doctor().stdout
    (device / "ports/1/counters/link_downed").mkdir(parents=True)  # answers a read with EISDIR
    assert "class/infiniband/mlx5_0/ports/1/counters/link_downed" in bench.doctor().stdout
