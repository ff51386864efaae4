"""Devices under another name than in the plan: a mistake in names, and no plug to move."""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.cabling.test_plan_diff import OTHER_NAME, SWAPPED, UNKNOWN, compare, kinds
from tests.topology.cabling.test_plan_diff_synthetic import plan_of
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims
from topology.cabling.plan_diff import CablingDiff, Difference, DifferenceKind, compare_cabling
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan, PlannedCable
from topology.model.fabric import Fabric
from topology.model.facts import Medium
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    Wiring,
    build_undamaged,
    build_wiring,
    damage_fabric,
)

RAILS = SyntheticSpec(FabricKind.RAIL, 32, rails=4, radix=8)
SPECS = {
    "rails": RAILS,
    "Ethernet rails": replace(RAILS, medium=Medium.ETHERNET),
    "MLAG pairs": SyntheticSpec(FabricKind.DUAL_HOMED, 32, radix=8, medium=Medium.ETHERNET),
    "a fat tree": SyntheticSpec(FabricKind.FAT_TREE, 32, radix=8),
}
WIRINGS = {name: build_wiring(spec) for name, spec in SPECS.items()}
PLAN = ("h1:e0 leaf:1", "h2:e0 leaf:2", "h3:e0 leaf:3")
TWO_LEAVES = (*PLAN, "h4:e0 other:1", "h5:e0 other:2", "h6:e0 other:3")


@cache
def fabric_of(name: str) -> Fabric:
    """Return a fabric that is cabled as planned."""
    return build_fabric(collect_claims(build_undamaged(WIRINGS[name])))


def renamed(plan: CablingPlan, names: Mapping[str, str]) -> CablingPlan:
    def rename(cable: PlannedCable) -> PlannedCable:
        return cable._replace(
            device_a=names.get(cable.device_a, cable.device_a),
            device_b=names.get(cable.device_b, cable.device_b),
        )

    return CablingPlan(tuple(map(rename, plan.cables)))


def names_in(diff: CablingDiff) -> dict[str, str]:
    return dict(row.names for row in diff.differences if row.names)


def exchange(text: str, first: str, second: str) -> str:
    return text.replace(first, "\0").replace(second, first).replace("\0", second)


def test_it_names_the_device_that_has_all_planned_cables() -> None:
    diff = compare([cable.replace("leaf", "tor-7") for cable in PLAN], PLAN)
    assert kinds(diff) == [OTHER_NAME]
    assert names_in(diff) == {"tor-7": "leaf"}
    assert diff.num_as_planned == 3
    assert (diff.moves, diff.unplanned) == ((), ())
    assert "the plan names tor-7 is known as leaf" in diff.differences[0].message


def test_it_recognizes_a_device_that_lacks_a_third_of_its_cables() -> None:
    diff = compare([cable.replace("leaf", "tor-7") for cable in PLAN], PLAN[:2])
    assert names_in(diff) == {"tor-7": "leaf"}
    assert diff.num_as_planned == 2


def test_it_does_not_recognize_a_device_by_half_of_its_cables() -> None:
    plan = [cable.replace("leaf", "tor-7") for cable in (*PLAN, "h4:e0 leaf:4")]
    diff = compare(plan, [*PLAN[:2], "h3:e0 other:3", "h4:e0 other:4"])
    assert set(kinds(diff)) == {UNKNOWN}


def test_it_does_not_recognize_a_device_by_one_cable() -> None:
    assert kinds(compare(["h1:e0 leaf:1", "gone:e0 leaf:2"], PLAN)) == [UNKNOWN]


def test_it_does_not_recognize_a_device_by_other_ports() -> None:
    plan = [f"h{number}:e0 tor-7:{number + 10}" for number in (1, 2, 3)]
    assert set(kinds(compare(plan, PLAN))) == {UNKNOWN}


def test_it_finds_two_names_that_are_exchanged() -> None:
    plan = [exchange(cable, "leaf", "other") for cable in TWO_LEAVES]
    diff = compare(plan, TWO_LEAVES)
    assert names_in(diff) == {"leaf": "other", "other": "leaf"}
    assert (diff.num_as_planned, diff.moves) == (6, ())


def test_it_takes_the_name_of_a_device_that_the_plan_expects_elsewhere() -> None:
    plan = [cable.replace("other", "spare").replace("leaf", "other") for cable in TWO_LEAVES]
    diff = compare(plan, TWO_LEAVES)
    assert names_in(diff) == {"other": "leaf", "spare": "other"}
    assert (diff.num_as_planned, diff.moves) == (6, ())


def test_it_takes_two_exchanged_plugs_for_exchanged_plugs() -> None:
    diff = compare(PLAN, ["h1:e0 leaf:2", "h2:e0 leaf:1", "h3:e0 leaf:3"])
    assert kinds(diff) == [SWAPPED]


def test_it_recognizes_switches_of_all_tiers_whose_names_are_exchanged() -> None:
    names = ["leaf-g01", "leaf-g02", "leaf-g03", "spine-01", "spine-02", "spine-03"]
    exchanged = dict(zip(names, [*names[1:], names[0]], strict=True))
    plan = renamed(plan_of(WIRINGS["a fat tree"]), exchanged)
    diff = compare_cabling(plan, fabric_of("a fat tree"))
    assert names_in(diff) == {new: old for old, new in exchanged.items()}
    assert diff.moves == ()


def test_it_moves_no_plug_of_a_namesake_that_has_none_of_the_planned_cables() -> None:
    plan = [*TWO_LEAVES[3:], "h7:e0 leaf:1", "h8:e0 leaf:2", "h9:e0 leaf:3"]
    seen = [*TWO_LEAVES, "h7:e0 third:1", "h8:e0 fourth:2", "h9:e0 fifth:3"]
    diff = compare(plan, seen)
    assert kinds(diff) == [UNKNOWN] * 3
    assert diff.moves == ()
    assert "the name may be wrong" in diff.differences[0].message


def test_it_moves_plugs_that_are_in_other_ports_of_the_right_device() -> None:
    plan = ["h1:e0 leaf:2", "h2:e0 leaf:3", "h3:e0 leaf:1"]
    assert len(compare(plan, PLAN).moves) == len(plan) + 1


def test_it_shows_hostile_names_escaped() -> None:
    diff = compare([cable.replace("leaf", "t\x1b[2J") for cable in PLAN], PLAN)
    assert diff.differences[0].message.isprintable()


@st.composite
def renames(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """Draw a fabric, and new names for a subset of its devices: unused ones, or exchanged ones."""
    title = draw(st.sampled_from(sorted(WIRINGS)))
    wiring = WIRINGS[title]
    switches = [switch.name for switch in wiring.switches]
    hosts = [host.name for host in wiring.hosts]
    fresh = draw(st.lists(st.sampled_from(switches + hosts), unique=True, max_size=40))
    names = {name: f"plan-{number:03}" for number, name in enumerate(fresh)}
    kept = [name for name in switches if name not in names]
    if draw(st.booleans()) and len(kept) > 1:
        some = draw(st.lists(st.sampled_from(kept), unique=True, min_size=2, max_size=6))
        names |= dict(zip(some, [*some[1:], some[0]], strict=True))
    return title, names


def diff_of(damaged: DamagedFabric, wiring: Wiring, names: Mapping[str, str]) -> CablingDiff:
    fabric = build_fabric(collect_claims(damaged))
    return compare_cabling(renamed(plan_of(wiring), names), fabric)


@settings(max_examples=examples(300))
@given(renames())
def test_it_never_moves_a_plug_of_a_fabric_that_is_cabled_as_planned(
    drawn: tuple[str, dict[str, str]],
) -> None:
    title, names = drawn
    wiring = WIRINGS[title]
    diff = compare_cabling(renamed(plan_of(wiring), names), fabric_of(title))
    assert diff.moves == ()
    assert {row.kind for row in diff.differences} <= {OTHER_NAME, UNKNOWN}
    true_names = {new: old for old, new in names.items()}
    assert names_in(diff).items() <= true_names.items()


@pytest.mark.parametrize("title", ["rails", "Ethernet rails", "MLAG pairs"])
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 99))
def test_it_finds_swapped_cables_under_other_names(title: str, seed: int) -> None:
    wiring = WIRINGS[title]
    rng = random.Random(seed)  # noqa: S311 - a test, not a secret
    some = rng.sample([switch.name for switch in wiring.switches], 3)
    names = {name: f"plan-{name}" for name in some}
    damaged = damage_fabric(wiring, FaultSpec(num_swaps=1), rng=seeded(seed))
    plain, diff = diff_of(damaged, wiring, {}), diff_of(damaged, wiring, names)
    assert [row.kind for row in plain.differences] == [SWAPPED]
    assert len(_of_kind(diff, SWAPPED)) == 1
    assert diff.moves == plain.moves
    assert diff.num_as_planned == plain.num_as_planned


def _of_kind(diff: CablingDiff, kind: DifferenceKind) -> list[Difference]:
    return [row for row in diff.differences if row.kind is kind]
