"""Sweeps in a served cluster: elections, forged sweeps, sweepers that disagree, and handovers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.observe.freshness import STALE_PERIODS
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.store.directory import DirectoryStore
from generator.store.watched_directory import WatchedDirectory
from tests.generator.ingest.swept_fabrics import (
    DEVICES,
    HOSTS,
    exchange,
    host_reports,
    sweep_by,
)
from tests.generator.server.days import Day
from tests.generator.sweep_reports import NOW, PERIOD
from topology.model.facts import Device
from topology.reports.neighbor_report import NeighborReport

ABLE_NODES = HOSTS[:3]
FIRST, SECOND, THIRD = ABLE_NODES
LIAR = HOSTS[9]
FORGED = exchange(HOSTS[3], HOSTS[12])
"""Two nodes in each other's place: fewer than any budget."""


class AgentStore(WatchedDirectory):
    """A folder that stands for a cluster: each agent can write the reports of its node only."""

    @property
    def has_agent_tokens(self) -> bool:
        return True


class Sweeps:
    """Rounds of a generator, and the sweeps of its agents."""

    def __init__(self, root: Path, able: Sequence[str] = ABLE_NODES) -> None:
        self.store = DirectoryStore(root)
        self.root = root
        for report in host_reports(able):
            self.store.write_report(report)
        self.restart()

    def restart(self) -> None:
        self.rounds = ReconcileLoop(
            AgentStore(self.root),
            LoopConfig(period=PERIOD, now=lambda: NOW),
            publish=lambda _snapshot, _pods: None,
        )

    def sweep(
        self, node: str, devices: Sequence[Device] = DEVICES, *, ahead: timedelta = timedelta()
    ) -> None:
        self.write(*sweep_by(node, devices, ahead=ahead))

    def write(self, *reports: NeighborReport) -> None:
        for report in reports:
            self.store.write_report(report)

    def withdraw(self, node: str) -> None:
        for file in self.store.reports.glob(f"{node}.sweep.*"):
            file.unlink()

    def silence(self, node: str) -> None:
        """Let a node's report become old, as when its agent is gone."""
        (report,) = [one for one in host_reports(ABLE_NODES) if one.metadata.name == node]
        old = (NOW - (STALE_PERIODS + 1) * PERIOD).isoformat()
        status = report.status.model_copy(update={"observed_at": old})
        self.write(report.model_copy(update={"status": status}))

    def tick(self, num: int = 1) -> None:
        for _ in range(num):
            self.rounds.tick()

    def settle(self) -> dict[str, bytes]:
        """Run until the HyperNodes follow from two equal sweeps."""
        self.tick()
        self.sweep(FIRST)
        self.sweep(SECOND)
        self.tick(3)
        return self.files()

    def files(self) -> dict[str, bytes]:
        found = self.store.hypernodes.iterdir() if self.store.hypernodes.exists() else ()
        return {file.name: file.read_bytes() for file in found}

    @property
    def status(self) -> dict[str, Any]:
        fabric = self.store.read_fabric()
        assert fabric is not None
        return dict(fabric["status"])

    @property
    def counted(self) -> list[str]:
        return [sweep["node"] for sweep in self.status["sweeps"]]

    @property
    def roles(self) -> list[str]:
        return [sweeper["node"] for sweeper in self.status["sweepers"]]

    @property
    def blocked(self) -> str:
        """The reason why a plan is held; empty if none is."""
        rows = {row["type"]: row for row in self.status["conditions"]}
        blocked = rows.get("ChangeBlocked", {"status": "False"})
        return str(blocked["reason"]) if blocked["status"] == "True" else ""

    @property
    def message(self) -> str:
        rows = {row["type"]: row for row in self.status["conditions"]}
        return str(rows["ChangeBlocked"]["message"])

    @property
    def findings(self) -> set[str]:
        return {row["kind"] for row in self.status["findings"]}


@pytest.fixture
def sweeps(tmp_path: Path) -> Sweeps:
    return Sweeps(tmp_path)


def test_it_elects_two_nodes_and_writes_what_both_see(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    assert len(before) > 4
    assert (sweeps.roles, sweeps.counted) == ([FIRST, SECOND], [FIRST])
    assert (sweeps.findings, sweeps.blocked) == (set(), "")
    fabric = sweeps.store.fabrics.joinpath("default.yaml").stat()
    sweeps.tick(3)
    assert sweeps.store.fabrics.joinpath("default.yaml").stat() == fabric, "nothing is written"


@pytest.mark.parametrize("ahead", [timedelta(), timedelta(minutes=4), timedelta(days=26_000)])
def test_a_forged_sweep_of_any_date_moves_nobody(sweeps: Sweeps, ahead: timedelta) -> None:
    before = sweeps.settle()
    sweeps.sweep(LIAR, FORGED, ahead=ahead)
    sweeps.tick(3)
    assert sweeps.files() == before
    assert (sweeps.counted, sweeps.findings, sweeps.blocked) == ([FIRST], {"sweep-ignored"}, "")
    sweeps.restart()
    sweeps.tick(2)
    assert (sweeps.files(), sweeps.counted) == (before, [FIRST])


def test_a_node_that_offers_to_sweep_does_not_replace_the_elected_one(sweeps: Sweeps) -> None:
    sweeps.settle()
    first = next(one for one in host_reports(HOSTS) if one.metadata.name == LIAR)
    sweeps.write(first)
    sweeps.tick(2)
    assert sweeps.roles == [FIRST, SECOND]


@pytest.mark.parametrize("liar", [FIRST, SECOND])
def test_a_sweeper_that_lies_moves_nobody_while_the_other_one_does_not(
    sweeps: Sweeps, liar: str
) -> None:
    before = sweeps.settle()
    sweeps.sweep(liar, FORGED)
    sweeps.tick(3)
    assert sweeps.files() == before
    assert sweeps.findings == {"sweeps-disagree"}
    assert sweeps.blocked == ("SweepsDisagree" if liar == FIRST else "")
    if liar == FIRST:
        assert FIRST in sweeps.message
        assert SECOND in sweeps.message
        assert sweeps.status["held"]["hash"]


def swapped(*pairs: tuple[str, str]) -> Sequence[Device]:
    found = DEVICES
    for first, second in pairs:
        found = exchange(first, second, found)
    return found


STORAGE_LEAF = [
    replace(one, name=f"storage-{one.name}") if one.name == "leaf-g01" else one for one in DEVICES
]
"""A leaf of another network, by its name."""
EXCHANGED_LEAVES = swapped(*zip(HOSTS[:3], HOSTS[8:11], strict=True))
"""Most hosts of two leaves exchanged: the leaves keep the names of most of their hosts, so it looks
as if the others had moved, whose cables nobody disputes."""


@pytest.mark.parametrize(
    "lie", [STORAGE_LEAF, EXCHANGED_LEAVES], ids=["a leaf has another name", "leaves exchanged"]
)
def test_a_sweeper_that_lies_moves_no_node_whose_cables_are_as_before(
    sweeps: Sweeps, lie: Sequence[Device]
) -> None:
    before = sweeps.settle()
    document = sweeps.store.read_fabric()
    assert document is not None
    everything = {"nodesPercent": 100, "domainsPercent": 100}
    sweeps.store.write_fabric(document | {"spec": {"changeBudget": everything}})
    sweeps.sweep(FIRST, lie)
    sweeps.tick(3)
    assert sweeps.files() == before
    assert (sweeps.findings, sweeps.blocked) == ({"sweeps-disagree"}, "SweepsDisagree")
    sweeps.sweep(SECOND, lie)
    sweeps.tick(3)
    assert sweeps.files() != before, "no lie is tried that changes nothing"


def test_a_change_is_written_as_soon_as_both_sweepers_see_it(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    sweeps.sweep(FIRST, FORGED)
    sweeps.tick(2)
    assert sweeps.files() == before
    sweeps.sweep(SECOND, FORGED)
    sweeps.tick(2)
    assert sweeps.files() != before
    assert (sweeps.findings, sweeps.blocked) == (set(), "")


def test_a_handover_changes_nothing_and_waits_for_the_successors_sweep(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    sweeps.silence(FIRST)
    sweeps.tick(2)
    assert sweeps.roles == [SECOND, THIRD]
    assert (sweeps.files(), sweeps.counted) == (before, [SECOND]), "the spare's sweep is there"
    sweeps.silence(SECOND)
    sweeps.withdraw(FIRST)
    sweeps.tick(2)
    assert (sweeps.roles[0], sweeps.files(), sweeps.counted) == (THIRD, before, [SECOND])
    sweeps.sweep(THIRD)
    sweeps.tick(2)
    assert (sweeps.files(), sweeps.counted) == (before, [THIRD])


def alone(root: Path) -> Sweeps:
    """Return a subnet with one sweeper, whose agent then falls silent, and its successor."""
    sweeps = Sweeps(root, [FIRST])
    sweeps.tick()
    sweeps.sweep(FIRST)
    sweeps.tick(3)
    assert (sweeps.roles, sweeps.counted) == ([FIRST], [FIRST])
    successor = next(one for one in host_reports([LIAR]) if one.metadata.name == LIAR)
    sweeps.write(successor)
    sweeps.silence(FIRST)
    sweeps.tick()
    assert sweeps.roles[0] == LIAR
    return sweeps


def test_a_new_sweeper_with_a_changed_fabric_is_held_until_a_person_approves(
    tmp_path: Path,
) -> None:
    sweeps = alone(tmp_path)
    before = sweeps.files()
    sweeps.sweep(LIAR, FORGED)
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.counted) == (before, [FIRST])
    assert sweeps.blocked == "SweepUnconfirmed"
    assert LIAR in sweeps.message
    sweeps.restart()
    sweeps.tick(2)
    assert (sweeps.files(), sweeps.counted) == (before, [FIRST])
    sweeps.store.approve(sweeps.status["held"]["hash"])
    sweeps.tick(3)
    assert sweeps.files() != before
    assert (sweeps.counted, sweeps.blocked) == ([LIAR], "")


def test_a_new_sweeper_that_sees_the_same_takes_over_at_once(tmp_path: Path) -> None:
    sweeps = alone(tmp_path)
    before = sweeps.files()
    sweeps.sweep(LIAR)
    sweeps.tick(2)
    assert (sweeps.files(), sweeps.counted, sweeps.blocked) == (before, [LIAR], "")


def test_a_listed_node_replaces_the_elected_ones(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    document = sweeps.store.read_fabric()
    assert document is not None
    sweeps.store.write_fabric(document | {"spec": {"sweepers": [THIRD]}})
    sweeps.tick(2)
    assert sweeps.roles == [THIRD]
    sweeps.sweep(THIRD)
    sweeps.tick(2)
    assert (sweeps.files(), sweeps.counted) == (before, [THIRD])


def test_half_a_sweep_freezes_no_ethernet_cluster(tmp_path: Path) -> None:
    day = Day(tmp_path)
    day.rounds = ReconcileLoop(
        AgentStore(day.root),
        LoopConfig(period=PERIOD, now=lambda: day.now),
        publish=lambda _snapshot, _pods: None,
    )
    (part,) = sweep_by(day.some(1)[0], subnet="fe80000000000bad")
    assert part.spec.sweep is not None
    half = part.spec.sweep.model_copy(update={"of": 2})
    spec = part.spec.model_copy(update={"sweep": half})
    day.tick()
    day.lose(day.some(1))
    day.store.write_report(part.model_copy(update={"spec": spec}))
    day.tick()
    assert day.placed() == set(day.scene.hosts[1:])


def test_a_lost_fabric_object_is_elected_again_and_nothing_changes(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    (sweeps.store.fabrics / "default.yaml").unlink()
    sweeps.restart()
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.roles, sweeps.counted) == (before, [FIRST, SECOND], [FIRST])
