"""A subnet is more than its prefix: sweeps that reach only a part of it, such as their own board.

Each host has bridges to the NVSwitches of its board, whose manager uses the default prefix too. Its
reports cannot distinguish them from its cards: only root may read the vital product data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import structs

from generator.ingest.claims import ReportClaims, build_claims
from generator.ingest.named_sweepers import NamedSweepers
from generator.reconcile.settings import always_leader
from generator.reconcile.status import FabricStatusWriter
from generator.server.elected_sweepers import SweepElection
from tests.generator.folders import StoreFolder
from tests.generator.ingest.swept_fabrics import HOSTS as ALL_HOSTS
from tests.generator.ingest.swept_fabrics import SUBNET, host_reports, sweep_by
from tests.generator.sweep_reports import ABLE, NOW, PERIOD
from tests.packed_reports import packed
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.reports.fabric_status import FabricStatus, Sweeper, SweepRole
from topology.reports.neighbor_report import NeighborReport, build_report

FIRST, SECOND = ALL_HOSTS[0], ALL_HOSTS[1]


def guid_of(host: str, number: int) -> str:
    return f"{0xB000 + ALL_HOSTS.index(host):012x}{number:04x}"


def bridge(host: str, number: int) -> Port:
    """Return a bridge as its node reports it; its name sorts before those of the cards."""
    guid = guid_of(host, number)
    return Port(
        f"a{number}/1",
        (Id(IdKind.NODE_GUID, guid, "1"), Id(IdKind.PORT_GUID, guid)),
        medium=Medium.INFINIBAND,
        state=PortState.UP,
        rdma_device=f"a{number}",
        subnet=SUBNET,
    )


def hosts(num_bridges: int, *, of: int = len(ALL_HOSTS)) -> list[NeighborReport]:
    """Return the reports of the first hosts; each has a card, and its bridges before it."""
    reports = []
    for report in host_reports(ALL_HOSTS[:of])[:of]:
        name, device = report.metadata.name, report.device
        assert device is not None
        bridges = tuple(bridge(name, number) for number in range(num_bridges))
        wider = Device(device.kind, device.name, device.ids, (*bridges, *device.ports))
        status = structs.replace(report.status, sweeping=ABLE)
        reports.append(build_report(wider, name=name, status=status))
    return reports


def board(host: str, numbers: Sequence[int]) -> list[NeighborReport]:
    """Return the sweep from a bridge: the switch of the board, and so many bridges."""
    switch = f"{0xA000 + ALL_HOSTS.index(host):016x}"
    cables = [
        _cable((switch, "nvswitch", DeviceKind.SWITCH, at), (guid_of(host, number), host))
        for at, number in enumerate(numbers, 1)
    ]
    ports = tuple(port for port, _ in cables)
    ids = (Id(IdKind.NODE_GUID, switch),)
    devices = [Device(DeviceKind.SWITCH, "nvswitch", ids, ports), *(card for _, card in cables)]
    return sweep_by(host, devices)


def _cable(end: tuple[str, str, DeviceKind, int], far: tuple[str, str]) -> tuple[Port, Device]:
    """Return the port of a switch, and the HCA that it leads to."""
    switch, name, kind, number = end
    guid, host = far
    at, own = Id(IdKind.NODE_GUID, switch, str(number)), Id(IdKind.NODE_GUID, guid, "1")
    up = Neighbor((Id(IdKind.NODE_GUID, switch),), name, (at,), str(number), Source.IB, kind)
    down = Neighbor((Id(IdKind.NODE_GUID, guid),), host, (own,), "1", Source.IB, DeviceKind.HOST)
    ids = (own, Id(IdKind.PORT_GUID, guid))
    card = Port("1", ids, Medium.INFINIBAND, PortState.UP, neighbors=(up,))
    return (
        Port(str(number), (at,), Medium.INFINIBAND, PortState.UP, neighbors=(down,)),
        Device(DeviceKind.HOST, host, (Id(IdKind.NODE_GUID, guid),), (card,)),
    )


def elected(*names: str) -> NamedSweepers:
    roles = zip(names, SweepRole, strict=False)
    sweepers = tuple(
        Sweeper(subnet=SUBNET, node=name, device="a0", port=1, role=role) for name, role in roles
    )
    return NamedSweepers(FabricStatus(sweepers=sweepers), has_agent_tokens=True)


def take(reports: Sequence[NeighborReport], *sweeps: Sequence[NeighborReport]) -> ReportClaims:
    parts = [part for sweep in sweeps for part in sweep]
    return build_claims(packed([*reports, *parts]), named=elected(FIRST, SECOND), now=NOW)


@pytest.mark.parametrize("num_seen", [1, 4], ids=["itself", "all bridges of the board"])
@pytest.mark.parametrize("num_hosts", [2, 4, 16])
def test_a_sweep_of_its_own_board_does_not_count(num_hosts: int, num_seen: int) -> None:
    found = take(hosts(4, of=num_hosts), board(FIRST, range(num_seen)))
    (reach,) = found.reaches
    assert (reach.node, len(reach.seen), reach.num_ports, reach.rank) == (FIRST, num_seen, 5, 2)
    assert found.used_sweeps == ()
    assert found.unknown_subnets == (SUBNET,)
    (problem,) = found.problems
    assert f"from {FIRST} contains {num_seen} of the 5 ports that the node has there" in str(
        problem
    )


@pytest.mark.parametrize("num_bridges", [0, 1, 4], ids=["no bridge", "one", "more than cards"])
def test_a_sweep_that_reaches_other_hosts_counts(num_bridges: int) -> None:
    found = take(hosts(num_bridges), sweep_by(FIRST))
    assert [sweep.node for sweep in found.used_sweeps] == [FIRST]
    assert [reach.rank for reach in found.reaches] == [int(num_bridges > 1)]
    assert found.problems == ()


@pytest.mark.parametrize("num_bridges", [1, 4])
def test_the_sweep_of_the_other_sweeper_is_used_instead(num_bridges: int) -> None:
    found = take(hosts(num_bridges), board(FIRST, [0]), sweep_by(SECOND))
    assert [sweep.node for sweep in found.used_sweeps] == [SECOND]


class Rounds:
    """A cluster whose elected nodes sweep, from a bridge or from a card."""

    def __init__(self, root: Path, *, num_bridges: int, is_one_board: bool) -> None:
        self.reports = hosts(num_bridges, of=4)
        self._num_bridges = num_bridges
        self._is_one_board = is_one_board
        status = FabricStatusWriter(StoreFolder(root), now=lambda: NOW, is_leader=always_leader)
        self._status = status
        self._election = SweepElection(status.write_sweepers, period=PERIOD, now=lambda: NOW)

    def run(self) -> dict[str, str]:
        """Elect, sweep and judge; return the port that each elected node sweeps from."""
        self._election.read(self._status.read())
        self._election.elect(packed(self.reports))
        sweepers = self._election.named.status.sweepers
        parts = [part for one in sweepers for part in self._sweep(one)]
        found = build_claims(packed([*self.reports, *parts]), named=self._election.named, now=NOW)
        self._election.record_reaches(found.reaches)
        return {one.node: one.device for one in sweepers}

    def _sweep(self, sweeper: Sweeper) -> list[NeighborReport]:
        number = sweeper.device.removeprefix("a")
        if not number.isdecimal():
            return sweep_by(sweeper.node)
        numbers = range(self._num_bridges) if self._is_one_board else [int(number)]
        return board(sweeper.node, numbers)


@pytest.mark.parametrize("is_one_board", [True, False], ids=["in one network", "each alone"])
@pytest.mark.parametrize("num_bridges", [1, 2, 4])
def test_an_election_leaves_the_bridges_and_then_stays(
    tmp_path: Path, num_bridges: int, *, is_one_board: bool
) -> None:
    rounds = Rounds(tmp_path, num_bridges=num_bridges, is_one_board=is_one_board)
    assert set(rounds.run().values()) == {"a0"}
    seen = [rounds.run() for _ in range(4 * num_bridges + 4)]
    assert not {device for device in seen[-1].values() if device.startswith("a")}
    assert seen[-1] == seen[-2] == seen[-3]
    assert len(seen[-1]) == 2


def test_nodes_that_are_really_alone_elect_each_port_once_and_then_stay(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, num_bridges=1, is_one_board=True)
    rounds.reports = [
        build_report(
            Device(DeviceKind.HOST, device.name, device.ids, device.ports[:1]),
            name=report.metadata.name,
            status=report.status,
        )
        for report in rounds.reports
        if (device := report.device)
    ]
    seen = [rounds.run() for _ in range(12)]
    assert seen[-1] == seen[-2] == seen[-3]
