"""A source that is missing: fine only if nothing on the node shows that it should be there.

Each row is a node, a collector, and the outcome of its run. docs/agent.md has the same table.
"""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.cli.doctor import NodeTools, check_node
from agent.collection import (
    COLLECTORS,
    FRAMES,
    CollectorRun,
    NodeContext,
    RunOutcome,
    check_availability,
    run_collector,
)
from agent.collectors import frames
from agent.collectors.frames import SystemInterfaces
from agent.collectors.probe import CollectedFacts, SourceAbsent
from agent.node.command import Runner, command_env
from agent.node.frame_listener import Listener
from agent.node.pci import list_nvidia_gpus, list_unused_hcas
from agent.node.sysfs import Sysfs
from agent.settings import FrameMode, FrameSettings, NvlinkMode, SweepTarget
from agent.sweep_schedule import SweepSchedule
from runtime.checks import Outcome
from tests.agent.fakes import FakeClock, FakeRunner, printed
from tests.agent.nodes import SWEEP, card, plant, settings_for
from tests.agent.programs import write_program
from tests.repository import ROOT
from topology.model.facts import Medium, Port

OK, NO_DATA, FAILED = RunOutcome.OK, RunOutcome.NO_DATA, RunOutcome.FAILED
NVIDIA, AMD = "0x10de", "0x1002"
GPU, VGA, NIC, HCA = "0x030200", "0x030000", "0x020000", "0x020700"
AUDIO, NVSWITCH = "0x040300", "0x068000"
NO_DEVICES = "print('No devices were found'); sys.exit(6)"
NO_DRIVER = 'print("NVIDIA-SMI couldn\'t communicate with the NVIDIA driver."); sys.exit(9)'
OFF = {"nvlink": NvlinkMode.NEVER}
IB_PORT = {"class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand"}
ROCE_PORT = {"class/infiniband/mlx5_0/ports/1/link_layer": "Ethernet"}
HAS_SYSFS = {"class/net/lo/type": "772"}
TARGETS = (SweepTarget("fe80000000000000", "mlx5_0", 1),)
NO_UMAD = printed("", stderr="ibwarn: can't open UMAD port ((null):0)\n", exit_code=1)


def function(
    pci_class: str, vendor: str = NVIDIA, *, at: int = 1, driver: str = "", **files: str
) -> dict[str, str]:
    """Return the sysfs files of a PCI function."""
    base = f"bus/pci/devices/0000:{at:02x}:00.0"
    made = {f"{base}/class": pci_class, f"{base}/vendor": vendor}
    if driver:
        made[f"{base}/driver"] = f"->../../drivers/{driver}"
    return made | {f"{base}/{name}": text for name, text in files.items()}


def functions(number: int, pci_class: str) -> dict[str, str]:
    return {key: text for at in range(number) for key, text in function(pci_class, at=at).items()}


def run(
    name: str,
    root: Path,
    files: Mapping[str, str],
    runner: FakeRunner | None = None,
    **more: Any,  # noqa: ANN401 - any of the settings
) -> CollectorRun:
    """Run a collector on a node with these files below /sys, where no program is installed."""
    plant(root, HAS_SYSFS | dict(files))
    settings = settings_for(root, **({"proc_root": root / "proc"} | more))
    empty = Runner(command_env({"PATH": str(root / "none")}))
    node = NodeContext(settings, runner or empty, FakeClock())
    return run_collector(name, node, collect=COLLECTORS[name].collect, known=CollectedFacts())


def outcome_of_doctor(run: CollectorRun, subject: str, root: Path) -> Outcome:
    """Return what `toponaut-agent doctor` says about a source on an otherwise healthy node."""
    healthy = {
        "net_sysfs": [Port("eth0", medium=Medium.ETHERNET)],
        "ib_sysfs": [],
        "lldpd": [],
    }
    runs = {
        name: CollectorRun(name, OK, "", 0.1, CollectedFacts(ports=tuple(ports)))
        for name, ports in healthy.items()
    }
    gpus, unused = list_nvidia_gpus(Sysfs(root)), list_unused_hcas(Sysfs(root))
    tools = NodeTools(lambda _: True, gpus=gpus, unused_hcas=unused)
    rows = check_node(list((runs | {run.collector: run}).values()), tools)
    return next((row.outcome for row in rows if row.subject == subject), Outcome.OK)


@pytest.mark.parametrize(
    ("files", "settings", "outcome", "said"),
    [
        pytest.param({}, {}, NO_DATA, Outcome.OK, id="no GPU"),
        pytest.param(functions(8, GPU), {}, FAILED, Outcome.WARNING, id="8 GPUs"),
        pytest.param(
            function(VGA, boot_vga="0"), {}, FAILED, Outcome.WARNING, id="a GPU beside a screen"
        ),
        pytest.param(
            function(GPU, driver="nouveau"), {}, FAILED, Outcome.WARNING, id="a GPU of nouveau"
        ),
        pytest.param(function(VGA, boot_vga="1"), {}, NO_DATA, Outcome.OK, id="its own screen"),
        pytest.param(function(GPU, driver="vfio-pci"), {}, NO_DATA, Outcome.OK, id="a VM's GPU"),
        pytest.param(
            function(GPU, driver="nvgrace-gpu-vfio-pci"), {}, NO_DATA, Outcome.OK, id="a VM's Grace"
        ),
        pytest.param(function(GPU, physfn=""), {}, NO_DATA, Outcome.OK, id="a virtual GPU"),
        pytest.param(function(GPU, AMD), {}, NO_DATA, Outcome.OK, id="a GPU of AMD"),
        pytest.param(
            function(AUDIO) | function(NVSWITCH, at=2), {}, NO_DATA, Outcome.OK, id="no display"
        ),
        pytest.param(functions(8, GPU), OFF, NO_DATA, Outcome.WARNING, id="reading is off"),
        pytest.param({}, OFF, NO_DATA, Outcome.OK, id="reading is off, no GPU"),
    ],
)
def test_a_missing_nvidia_smi_is_judged_with(
    tmp_path: Path,
    files: Mapping[str, str],
    settings: Mapping[str, Any],
    outcome: RunOutcome,
    said: Outcome,
) -> None:
    found = run("nvlink", tmp_path, files, **settings)
    assert (found.outcome, found.is_absent) == (outcome, True), found.message
    assert ("GPU" in found.message) is (outcome is FAILED)
    assert outcome_of_doctor(found, "NVLink", tmp_path) is said


@pytest.mark.parametrize("body", [NO_DEVICES, NO_DRIVER], ids=["no device", "no driver"])
@pytest.mark.parametrize(("number", "outcome"), [(0, NO_DATA), (8, FAILED)])
def test_an_nvidia_smi_that_finds_nothing_is_judged_by_what_pci_shows(
    tmp_path: Path, body: str, number: int, outcome: RunOutcome
) -> None:
    program = write_program(tmp_path / "nvidia-smi", body)
    found = run("nvlink", tmp_path, functions(number, GPU), nvidia_smi=str(program))
    assert found.outcome is outcome


def test_an_nvidia_smi_that_is_an_empty_file_is_a_failure(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.touch(mode=0o755)
    found = run("nvlink", tmp_path, functions(8, GPU), nvidia_smi=str(program))
    assert found.outcome is FAILED


@pytest.mark.parametrize(
    ("files", "outcome", "said"),
    [
        pytest.param({}, NO_DATA, Outcome.OK, id="no card"),
        pytest.param(function(HCA, "0x15b3", driver="mlx5_core"), FAILED, Outcome.ERROR, id="one"),
        pytest.param(
            function(HCA, "0x15b3", driver="mlx5_vfio_pci"), NO_DATA, Outcome.OK, id="a VM's card"
        ),
        pytest.param(function(HCA, "0x15b3", physfn=""), NO_DATA, Outcome.OK, id="a virtual one"),
        pytest.param(function(NIC, "0x15b3"), NO_DATA, Outcome.OK, id="one in Ethernet mode"),
        pytest.param(
            {"class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand"}
            | function(HCA, "0x15b3", at=2),
            OK,
            Outcome.WARNING,
            id="one of two",
        ),
    ],
)
def test_an_infiniband_card_without_an_hca_is_no_missing_card(
    tmp_path: Path, files: Mapping[str, str], outcome: RunOutcome, said: Outcome
) -> None:
    found = run("ib_sysfs", tmp_path, files)
    assert found.outcome is outcome
    assert ("without an HCA" in found.message) is (said is not Outcome.OK)
    assert outcome_of_doctor(found, "InfiniBand", tmp_path) is said


@pytest.mark.parametrize(
    ("files", "settings", "outcome", "said"),
    [
        pytest.param({}, {}, NO_DATA, Outcome.OK, id="no card"),
        pytest.param(function(NIC), {}, FAILED, Outcome.ERROR, id="a card of another namespace"),
        pytest.param(
            function(NIC), {"interfaces": ("eth*",)}, NO_DATA, Outcome.OK, id="virtual ports"
        ),
        pytest.param(function(NIC, driver="vfio-pci"), {}, NO_DATA, Outcome.OK, id="a VM's card"),
        pytest.param(
            function(NIC) | card("eth0", "0000:03:00.0", "b8:ce:f6:00:00:01"),
            {},
            OK,
            Outcome.OK,
            id="a card with a port",
        ),
    ],
)
def test_a_network_without_a_port_is_judged_with(
    tmp_path: Path,
    files: Mapping[str, str],
    settings: Mapping[str, Any],
    outcome: RunOutcome,
    said: Outcome,
) -> None:
    found = run("net_sysfs", tmp_path, files, **settings)
    assert found.outcome is outcome
    assert outcome_of_doctor(found, "interfaces", tmp_path) is said


def test_facts_of_a_card_stay_while_another_namespace_hides_it(tmp_path: Path) -> None:
    plant(tmp_path, HAS_SYSFS | function(NIC))
    known = CollectedFacts(ports=(Port("eth0", medium=Medium.ETHERNET),))
    node = NodeContext(settings_for(tmp_path), FakeRunner(), FakeClock())
    found = run_collector("net_sysfs", node, collect=COLLECTORS["net_sysfs"].collect, known=known)
    assert found.facts.ports == known.ports


@pytest.mark.parametrize(
    ("driver", "outcome", "said"),
    [
        pytest.param("mlx5_core", NO_DATA, Outcome.OK, id="no such card"),
        pytest.param("ice", FAILED, Outcome.WARNING, id="a card that may consume frames"),
    ],
)
def test_a_missing_ethtool_is_judged_with(
    tmp_path: Path, driver: str, outcome: RunOutcome, said: Outcome
) -> None:
    files = card("eth0", "0000:03:00.0", "b8:ce:f6:00:00:01")
    device = "devices/pci0000:00/0000:00:01.0/0000:03:00.0"
    found = run("firmware_lldp", tmp_path, files | {f"{device}/driver": f"->../{driver}"})
    assert found.outcome is outcome
    assert outcome_of_doctor(found, "LLDP in firmware", tmp_path) is said


@pytest.fixture
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for sockets, whose paths hold about a hundred characters."""
    folder = tmp_path_factory.mktemp("s")
    assert len(str(folder)) < 70
    return folder


NO_SOCKET = printed(
    "",
    stderr="2026 [WARN/control] unable to connect to socket /x: No such file or directory\n",
    exit_code=1,
)


@pytest.mark.parametrize("has_client", [False, True], ids=["no lldpcli", "no socket for lldpcli"])
@pytest.mark.parametrize(
    ("where", "proc", "outcome"),
    [
        pytest.param("", "none", NO_DATA, id="no lldpd"),
        pytest.param("run/lldpd.other", "none", FAILED, id="a socket beside the configured one"),
        pytest.param("run/leaf1.sock", "none", NO_DATA, id="a socket of another name"),
        pytest.param("other/lldpd.socket", "/proc", FAILED, id="a socket of this namespace"),
        pytest.param("other/lldpd.socket", "none", NO_DATA, id="a socket that cannot be seen"),
        pytest.param("other/snmpd.socket", "/proc", NO_DATA, id="a socket of another program"),
    ],
)
def test_an_absent_lldpd_is_judged_with(
    tmp_path: Path, short: Path, *, has_client: bool, where: str, proc: str, outcome: RunOutcome
) -> None:
    (short / "run").mkdir()
    configured = str(short / "run" / "lldpd.socket")
    runner = FakeRunner({"neighbors": NO_SOCKET}) if has_client else FakeRunner()
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        if where:
            (short / where).parent.mkdir(exist_ok=True)
            listening.bind(str(short / where))
            listening.listen()
        more = {"lldpd_socket": configured, "proc_root": Path(proc)}
        found = run("lldpd", tmp_path, {}, runner, **more)
    assert (found.outcome, found.is_absent) == (outcome, True)
    assert (where in found.message) is (outcome is FAILED or not where)
    said = Outcome.ERROR if outcome is FAILED else Outcome.WARNING
    assert outcome_of_doctor(found, "LLDP", tmp_path) is said


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        pytest.param({}, NO_DATA, id="no HCA"),
        pytest.param(ROCE_PORT, NO_DATA, id="RoCE alone"),
        pytest.param(IB_PORT, FAILED, id="an InfiniBand port"),
    ],
)
@pytest.mark.parametrize(
    ("answers", "targets"),
    [
        pytest.param({}, (), id="no ibnetdiscover"),
        pytest.param({"ibnetdiscover": NO_UMAD}, TARGETS, id="no device file"),
    ],
)
def test_a_node_that_cannot_sweep_is_judged_with(
    tmp_path: Path,
    files: Mapping[str, str],
    outcome: RunOutcome,
    answers: Mapping[str, Any],
    targets: tuple[SweepTarget, ...],
) -> None:
    plant(tmp_path, HAS_SYSFS | dict(files))
    sweep = SWEEP._replace(targets=targets)
    settings = settings_for(tmp_path, sweep=sweep, proc_root=tmp_path / "proc")
    node = NodeContext(settings, FakeRunner(answers), FakeClock())
    found = run_collector(
        "ib_sweep", node, collect=COLLECTORS["ib_sweep"].collect, known=CollectedFacts()
    )
    assert found.outcome is outcome
    standing = SweepSchedule(settings, node.clock).record_sweep(settings, found)
    assert not standing.able, "another node is elected"


@pytest.mark.parametrize(
    ("name", "mounted", "answers"),
    [
        pytest.param("lldpd", "/run/lldpd", {"neighbors": NO_SOCKET}, id="of lldpd's socket"),
        pytest.param("ib_sweep", "/dev/infiniband", {"ibnetdiscover": NO_UMAD}, id="of devices"),
    ],
)
def test_a_folder_that_was_deleted_under_its_mount_needs_a_restart(
    tmp_path: Path, name: str, mounted: str, answers: Mapping[str, Any]
) -> None:
    files = {"proc/self/mountinfo": f"36 35 0:24 /x//deleted {mounted} rw - tmpfs tmpfs rw\n"}
    more = {"lldpd_socket": f"{mounted}/lldpd.socket", "sweep": SWEEP._replace(targets=TARGETS)}
    found = run(name, tmp_path, files | IB_PORT, FakeRunner(answers), **more)
    assert (found.outcome, found.needs_restart, found.is_absent) == (FAILED, True, False)
    assert found.message.startswith(f"{mounted} was deleted on the node")


@pytest.mark.parametrize(
    ("mode", "outcome"),
    [
        pytest.param(FrameMode.AUTO, NO_DATA, id="if lldpd may take its place"),
        pytest.param(FrameMode.ALWAYS, FAILED, id="if it is required"),
    ],
)
def test_frames_that_cannot_be_received_are_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: FrameMode, outcome: RunOutcome
) -> None:
    monkeypatch.setitem(sys.modules, "scapy", None)
    settings = settings_for(tmp_path, frames=FrameSettings(mode=mode, listen_s=31))
    clock = FakeClock()
    listener = Listener(SystemInterfaces(tmp_path), clock)
    node = NodeContext(settings, FakeRunner(), clock, listener)
    found = run_collector(
        FRAMES,
        node,
        collect=lambda settings, _runner: frames.collect(listener, ["eth0"], settings),
        known=CollectedFacts(),
    )
    assert (found.outcome, found.is_absent) == (outcome, True)
    said = Outcome.ERROR if outcome is FAILED else Outcome.OK
    assert outcome_of_doctor(found, "LLDP", tmp_path) in {said, Outcome.WARNING}
    reasons = check_availability(node)
    assert ("--frames always" in reasons[FRAMES]) is (outcome is FAILED)


def test_every_collector_is_judged_in_this_file() -> None:
    source = Path(__file__).read_text()
    for name in COLLECTORS:
        assert re.search(rf'run(_collector)?\(\s*"{name}"', source), name


def test_the_documentation_has_a_row_for_every_collector() -> None:
    text = (ROOT / "docs" / "agent.md").read_text()
    table = text.partition("## When a source is missing")[2].partition("\n## ")[0]
    for name in (*COLLECTORS, FRAMES):
        assert f"| `{name}` |" in table, name


def test_the_error_of_an_absent_source_says_both_halves() -> None:
    error = SourceAbsent("nvidia-smi not found", "this node has 2 NVIDIA GPUs")
    assert str(error) == "nvidia-smi not found, although this node has 2 NVIDIA GPUs"
    assert error.is_expected
    assert not SourceAbsent("nvidia-smi not found").is_expected
