"""Sweeps in a served cluster: elections, forged sweeps, sweepers that disagree, and handovers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from generator.server.loop import LoopConfig, ReconcileLoop
from generator.store.fabric_store import FabricStore
from tests.generator.ingest.swept_fabrics import (
    DEVICES,
    HOSTS,
    exchange,
    host_reports,
    sweep_by,
)
from tests.generator.server.days import Day
from tests.generator.server.sweep_rounds import (
    FIRST,
    FORGED,
    LIAR,
    SECOND,
    THIRD,
    AgentFolder,
    Sweeps,
)
from tests.generator.sweep_reports import PERIOD
from topology.model.facts import Device


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


AGES = {
    "as it was then": -timedelta(days=1),
    "with the present time": timedelta(),
    "dated ahead": timedelta(minutes=4),
    "dated in another century": timedelta(days=26_000),
}


@pytest.mark.parametrize("age", AGES)
@pytest.mark.parametrize("node", [FIRST, SECOND, LIAR])
def test_an_old_sweep_that_is_written_again_moves_nobody_back(
    sweeps: Sweeps, node: str, age: str
) -> None:
    """An old sweep, from before the cables were changed: of the node itself or of another node."""
    first = sweeps.settle()
    for one in (FIRST, SECOND):
        sweeps.sweep(one, FORGED)
    sweeps.tick(3)
    changed = sweeps.files()
    assert changed != first
    sweeps.withdraw(node)
    sweeps.sweep(node, DEVICES, ahead=AGES[age])
    sweeps.tick(3)
    assert sweeps.files() == changed
    assert sweeps.findings & {"sweeps-disagree", "sweep-ignored"}, "it is not left out in silence"
    sweeps.restart()
    sweeps.tick(2)
    assert sweeps.files() == changed
    sweeps.withdraw(node)
    sweeps.sweep(node, FORGED)
    sweeps.tick(3)
    assert sweeps.files() == changed
    assert sweeps.blocked == ""


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
        FabricStore(AgentFolder(day.root)),
        LoopConfig(period=PERIOD, now=lambda: day.now),
        publish=lambda _snapshot, _pods: None,
    )
    (part,) = sweep_by(day.some(1)[0], subnet="fe80000000000bad")
    assert part.spec.sweep is not None
    half = structs.replace(part.spec.sweep, of=2)
    spec = structs.replace(part.spec, sweep=half)
    day.tick()
    day.lose(day.some(1))
    day.store.write_report(structs.replace(part, spec=spec))
    day.tick()
    assert day.placed() == set(day.scene.hosts[1:])


def test_a_lost_fabric_object_is_elected_again_and_nothing_changes(sweeps: Sweeps) -> None:
    before = sweeps.settle()
    (sweeps.store.fabrics / "default.yaml").unlink()
    sweeps.restart()
    sweeps.tick(3)
    assert (sweeps.files(), sweeps.roles, sweeps.counted) == (before, [FIRST, SECOND], [FIRST])
