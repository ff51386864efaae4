"""The frames collector: when it reports neighbors, what it reports, and when it is absent."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.collection import (
    CollectorRun,
    NodeContext,
    RunOutcome,
    check_availability,
    collect,
)
from agent.collectors import frames
from agent.collectors.probe import MAX_IDS, CollectedFacts, SourceAbsent
from agent.loop import ReportLoop
from agent.node.frame_listener import Listener
from agent.publish.directory import ReportFolder
from agent.settings import FrameMode, FrameSettings
from tests.agent.fakes import FakeRunner, printed
from tests.agent.frame_sockets import FakeInterfaces, SetClock, frame
from tests.agent.nodes import card, chassis, heard, node_for, plant, settings_for
from topology.model.errors import CommandFailed
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.model.ids import Id, IdKind

MAC = "b8:ce:f6:00:00:01"
LISTEN_S = 31.0
SETTINGS = settings_for(Path("/nowhere"))
LISTENING = SETTINGS._replace(frames=FrameSettings(mode=FrameMode.AUTO, listen_s=LISTEN_S))
NO_LLDPD = FakeRunner()
LLDPD = FakeRunner(
    {"neighbors": printed(heard(("eth0", "leaf1", "swp1"))), "chassis": printed(chassis(MAC))}
)


class Ears:
    """A listener on fake ports, and a round that uses it."""

    def __init__(self) -> None:
        self.clock = SetClock()
        self.ports = FakeInterfaces({"eth0": 2, "eth1": 3})
        self.listener = Listener(self.ports, self.clock)

    def collect(self, *ports: str, wait: Callable[[float], object] | None = None) -> CollectedFacts:
        return frames.collect(self.listener, ports or ("eth0",), LISTENING, wait)

    def node(
        self, root: Path, runner: FakeRunner, *, use: FrameMode = FrameMode.AUTO
    ) -> NodeContext:
        told = FrameSettings(mode=use, listen_s=LISTEN_S)
        node = node_for(root, runner, self.clock, frames=told)
        return NodeContext(node.settings, runner, self.clock, self.listener)


@pytest.fixture
def ears() -> Iterator[Ears]:
    ears = Ears()
    yield ears
    ears.listener.stop()


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    return plant(tmp_path / "sys", card("eth0", "0000:03:00.0", MAC))


def names(facts: CollectedFacts) -> dict[str, list[str]]:
    return {port.name: [one.device_name for one in port.neighbors] for port in facts.ports}


def test_it_reports_nothing_before_it_has_listened_long_enough(ears: Ears) -> None:
    with pytest.raises(SourceAbsent, match="listening; first neighbors after 31 s"):
        ears.collect()
    ears.ports.say("eth0", frame("leaf1"))
    ears.clock.seconds += LISTEN_S - 0.1
    with pytest.raises(SourceAbsent):
        ears.collect()
    ears.clock.seconds += 0.1
    assert names(ears.collect()) == {"eth0": ["leaf1"]}


def test_it_waits_for_neighbors_if_there_is_no_later_round(ears: Ears) -> None:
    def wait(seconds: float) -> None:
        assert seconds == LISTEN_S
        ears.clock.seconds += seconds
        ears.ports.say("eth0", frame("leaf1"))

    assert names(ears.collect(wait=wait)) == {"eth0": ["leaf1"]}


def test_it_reports_the_neighbors_of_each_port(ears: Ears) -> None:
    def wait(seconds: float) -> None:
        ears.clock.seconds += seconds
        ears.ports.say("eth0", frame("leaf1"), frame("host2", port="eth7", ttl_s=121))

    found = ears.collect("eth0", "eth1", wait=wait)
    (port,) = found.ports
    assert (port.name, port.ids, port.medium) == (
        "eth0",
        (Id(IdKind.IFNAME, "eth0"),),
        Medium.ETHERNET,
    )
    assert {(one.device_name, one.port_name, one.ttl_s) for one in port.neighbors} == {
        ("leaf1", "swp1", 120),
        ("host2", "eth7", 121),
    }
    assert (found.errors, found.note, found.ids) == ((), "", frozenset())


def test_it_accepts_a_port_without_neighbors(ears: Ears) -> None:
    found = ears.collect(wait=lambda _: None)
    assert (found.is_empty, found.note) == (True, "no frame heard")


def test_it_reports_unreadable_frames_and_crowded_ports(ears: Ears) -> None:
    def wait(_seconds: float) -> None:
        ears.ports.say("eth0", b"nonsense", *(frame(port=f"p{k}") for k in range(65)))

    found = ears.collect(wait=wait)
    assert [str(error)[:6] for error in found.errors] == ["eth0: "]
    assert found.note == "eth0: more than 64 neighbors"


def test_it_keeps_the_chassis_id_of_a_neighbor_with_many_addresses(ears: Ears) -> None:
    addresses = b"".join(
        b"\x10\x0c\x05\x01" + bytes((10, 0, k, 1)) + b"\x02\0\0\0\1\0" for k in range(90)
    )
    found = ears.collect(wait=lambda _: ears.ports.say("eth0", frame(more=addresses)))
    (neighbor,) = found.ports[0].neighbors
    assert len(neighbor.device_ids) == MAX_IDS
    assert neighbor.device_ids[0].kind is IdKind.CHASSIS_ID


def test_it_hears_nothing_without_ports(ears: Ears) -> None:
    assert frames.collect(ears.listener, (), LISTENING).note == "no network port to listen on"


@pytest.mark.parametrize(
    ("reason", "error", "message"),
    [
        pytest.param("no scapy", None, "no scapy", id="without scapy"),
        pytest.param(
            None,
            PermissionError(errno.EPERM, "x"),
            "needs CAP_NET_RAW",
            id="without permission to listen",
        ),
        pytest.param(
            None, OSError(errno.ENODEV, "x"), "no port could be opened", id="if no port opens"
        ),
    ],
)
def test_it_is_absent(ears: Ears, reason: str | None, error: OSError | None, message: str) -> None:
    ears.ports.reason, ears.ports.error = reason, error
    with pytest.raises(SourceAbsent, match=message):
        ears.collect()


def test_it_restores_neighbors_from_a_report() -> None:
    leaf = Neighbor((), "leaf", (), "swp1", Source.LLDP)
    other = Neighbor((), "old", (), "1", Source.CDP)
    ports = (Port("eth0", rate_bps=1, neighbors=(leaf, other)), Port("eth1", neighbors=(other,)))
    found = frames.restore(Device(DeviceKind.HOST, "n", (), ports))
    assert found.ports == (Port("eth0", (Id(IdKind.IFNAME, "eth0"),), neighbors=(leaf,)),)


# --- beside the other collectors ----------------------------------------------------------------


def row(attempts: tuple[CollectorRun, ...], name: str) -> CollectorRun | None:
    return next((one for one in attempts if one.collector == name), None)


@pytest.mark.parametrize(
    ("runner", "use", "is_listening"),
    [
        pytest.param(NO_LLDPD, FrameMode.AUTO, True, id="by itself where no lldpd is"),
        pytest.param(LLDPD, FrameMode.AUTO, False, id="not by itself where lldpd answers"),
        pytest.param(
            FakeRunner({"lldpcli": CommandFailed("broken")}),
            FrameMode.AUTO,
            False,
            id="not by itself where lldpd is broken",
        ),
        pytest.param(LLDPD, FrameMode.ALWAYS, True, id="always with the mode always"),
    ],
)
def test_it_listens(
    ears: Ears, sysfs: Path, runner: FakeRunner, use: FrameMode, *, is_listening: bool
) -> None:
    attempts = collect(ears.node(sysfs, runner, use=use), {})
    assert (row(attempts, "frames") is not None) is is_listening
    assert list(ears.ports.ears) == ["eth0"] * is_listening


def test_it_never_listens_if_the_settings_say_so(ears: Ears, sysfs: Path) -> None:
    node = ears.node(sysfs, NO_LLDPD)
    never = NodeContext(settings_for(sysfs), node.runner, node.clock, node.listener)
    assert row(collect(never, {}), "frames") is None
    assert not ears.ports.ears


def test_it_stops_listening_when_lldpd_is_back(ears: Ears, sysfs: Path) -> None:
    collect(ears.node(sysfs, NO_LLDPD), {})
    collect(ears.node(sysfs, LLDPD), {})
    assert ears.ports.ears["eth0"].is_closed


def test_it_replaces_the_facts_of_an_lldpd_that_is_gone(ears: Ears, sysfs: Path) -> None:
    facts = {one.collector: one.facts for one in collect(ears.node(sysfs, LLDPD), {})}
    gone = ears.node(sysfs, NO_LLDPD)
    kept = row(collect(gone, facts), "lldpd")
    assert kept is not None
    assert names(kept.facts) == {"eth0": ["leaf1"]}
    ears.ports.say("eth0", frame("leaf2"))
    ears.clock.seconds += LISTEN_S
    attempts = collect(gone, facts)
    outdated, found = row(attempts, "lldpd"), row(attempts, "frames")
    assert outdated is not None
    assert found is not None
    assert (names(outdated.facts), names(found.facts)) == ({}, {"eth0": ["leaf2"]})
    assert outdated.facts.ids == facts["lldpd"].ids


def test_it_keeps_neighbors_over_a_restart_and_drops_them_when_they_are_gone(
    ears: Ears, sysfs: Path, tmp_path: Path
) -> None:
    folder = ReportFolder(tmp_path / "reports", "node01")
    folder.prepare()
    published: list[tuple[dict[str, str], list[str]]] = []

    def tick(rounds: ReportLoop) -> None:
        rounds.tick()
        report = folder.last_report()
        assert report is not None
        outcomes = {one.name: str(one.outcome) for one in report.status.collectors}
        heard_names = [one.name for port in report.spec.ports for one in port.neighbors]
        published.append((outcomes, heard_names))

    node = ears.node(sysfs, NO_LLDPD)
    rounds = ReportLoop(node, folder)
    tick(rounds)
    ears.ports.say("eth0", frame("leaf1"))
    ears.clock.seconds += LISTEN_S
    tick(rounds)
    node.close()
    again = ReportLoop(node, folder)
    tick(again)
    ears.clock.seconds += LISTEN_S
    tick(again)
    rows = [(told["lldpd"], told["frames"], found) for told, found in published]
    assert rows == [
        ("no-data", RunOutcome.NO_DATA, []),
        ("no-data", RunOutcome.OK, ["leaf1"]),
        ("no-data", RunOutcome.FAILED, ["leaf1"]),
        ("no-data", RunOutcome.NO_DATA, []),
    ]


# --- this machine -------------------------------------------------------------------------------


def test_it_names_the_extra_if_scapy_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scapy", None)
    absence = frames.find_absence(LISTENING, NO_LLDPD)
    assert str(absence) == "scapy not found: install toponaut[agent-frames]"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        pytest.param(errno.EPERM, "not allowed to capture frames: needs CAP_NET_RAW", id="a right"),
        pytest.param(errno.EAFNOSUPPORT, "no packet sockets: ", id="such sockets"),
    ],
)
def test_it_cannot_work_without(monkeypatch: pytest.MonkeyPatch, number: int, message: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(socket, "socket", refuse)
    reason = frames.SystemInterfaces(Path("/sys")).explain_refusal()
    assert reason is not None
    assert reason.startswith(message)


def test_it_explains_that_listening_is_off() -> None:
    absence = frames.find_absence(SETTINGS, NO_LLDPD)
    assert str(absence) == "listening is off (see --frames and --listen-for)"


def test_it_is_not_needed_if_lldpd_answers(
    ears: Ears, sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames.SystemInterfaces, "explain_refusal", lambda _: None)
    runners = (NO_LLDPD, LLDPD)
    assert [check_availability(ears.node(sysfs, runner))["frames"] for runner in runners] == [
        "",
        "not needed: lldpd answers (--frames auto)",
    ]


@pytest.mark.parametrize(
    ("port", "told", "index"),
    [
        pytest.param("lo", "1\n", 1, id="a port that sysfs has too"),
        pytest.param("lo", "7\n", None, id="no port of another machine's sysfs"),
        pytest.param("lo", "", None, id="no port that sysfs does not have"),
        pytest.param("no-such-port", "1\n", None, id="no port that does not exist"),
    ],
)
def test_it_finds(tmp_path: Path, port: str, told: str, index: int | None) -> None:
    plant(tmp_path, {f"class/net/{port}/ifindex": told})
    assert frames.SystemInterfaces(tmp_path).index(port) == index


def test_it_reads_links_from_sysfs(tmp_path: Path) -> None:
    files = {"up": "1\n", "down": "0\n", "dumb": ""}
    plant(tmp_path, {f"class/net/{name}/carrier": text for name, text in files.items()})
    ports = frames.SystemInterfaces(tmp_path)
    assert {name: ports.has_link(name) for name in files} == {
        "up": True,
        "down": False,
        "dumb": True,
    }
