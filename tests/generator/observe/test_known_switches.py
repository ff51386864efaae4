"""A history names the switch that is gone, also where symmetry shows nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.observe.known_switches import KnownSwitches
from tests.effort import first_of
from tests.topology.lost_switches import (
    FABRICS,
    LARGE,
    Fabric,
    Inferred,
    check_named,
    infer,
    list_neighbors,
    list_positions,
    name,
)
from tests.verify.sources import SourceMix
from topology.model.facts import Finding, FindingKind
from topology.synthetic import FaultSpec, Wiring, build_wiring


def update(known: KnownSwitches, state: Inferred) -> tuple[Finding, ...]:
    findings = known.name_lost(state.fabric, state.plane, state.inference.findings)
    return tuple(row for row in findings if row.kind is FindingKind.LOST_SWITCH)


def check_losses(fabric: Fabric) -> None:
    wiring = build_wiring(fabric.spec)
    whole = infer(wiring)
    for _, switch, _ in list_positions(wiring):
        known = KnownSwitches()
        assert update(known, whole) == ()
        (found,) = update(known, infer(wiring, switch))
        assert found.device == switch
        check_named(wiring, switch, found)
    known = KnownSwitches()
    update(known, whole)
    assert update(known, infer(wiring, wiring.hosts[0].name)) == ()


@pytest.mark.parametrize("fabric", first_of(FABRICS, 2), ids=name)
def test_a_lost_switch_is_named(fabric: Fabric) -> None:
    check_losses(fabric)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fabric", LARGE[:5], ids=name)
def test_a_lost_switch_of_a_large_fabric_is_named(fabric: Fabric) -> None:
    check_losses(fabric)


@pytest.fixture(scope="module")
def wiring() -> Wiring:
    return build_wiring(FABRICS[0].spec)


def test_it_stays_lost_in_later_generations_and_after_a_restart(wiring: Wiring) -> None:
    whole, damaged = infer(wiring), infer(wiring, "spine-01")
    known = KnownSwitches()
    update(known, whole)
    first = update(known, damaged)
    assert update(known, damaged) == first
    assert update(KnownSwitches(damaged.inference.tree, first), damaged) == first


def test_it_ends_when_the_switch_is_back(wiring: Wiring) -> None:
    whole, damaged = infer(wiring), infer(wiring, "spine-01")
    known = KnownSwitches()
    for state, num in ((whole, 0), (damaged, 1), (whole, 0), (whole, 0)):
        assert len(update(known, state)) == num


def test_a_tree_of_the_history_names_what_was_lost_while_no_process_ran(wiring: Wiring) -> None:
    for switch in ("spine-01", "leaf-g03"):
        (found,) = update(KnownSwitches(infer(wiring).inference.tree), infer(wiring, switch))
        assert found.device == switch
        assert 2 * len({end.device for end in found.ports}) >= len(list_neighbors(wiring, switch))


def test_a_fabric_of_which_most_is_gone_is_another_input(wiring: Wiring) -> None:
    whole = infer(wiring)
    lost = [switch.name for switch in wiring.switches[:8]]
    known = KnownSwitches()
    update(known, whole)
    assert update(known, infer(wiring, *lost)) == ()


@pytest.mark.parametrize(
    "faults", [FaultSpec(lose_links=0.1), FaultSpec(swap=0.05), FaultSpec(silent=0.2)], ids=str
)
def test_other_faults_lose_no_switch(wiring: Wiring, faults: FaultSpec) -> None:
    known = KnownSwitches()
    update(known, infer(wiring))
    assert update(known, infer(wiring, faults=faults)) == ()


@pytest.mark.parametrize("fabric", first_of(FABRICS, 2), ids=name)
def test_a_leaf_that_is_gone_with_its_hosts_is_not_lost(fabric: Fabric) -> None:
    wiring = build_wiring(fabric.spec)
    leaf = next(switch for switch in wiring.switches if switch.rank == 1)
    leaves = {switch.name for switch in wiring.switches if switch.path == leaf.path}
    if fabric.spec.ports_per_host == 1:
        leaves = {leaf.name}
    names = {switch.name for switch in wiring.switches}
    hosts = {near for one in leaves for near in list_neighbors(wiring, one)} - names
    gone = leaves | hosts
    removed = replace(
        wiring,
        hosts=tuple(host for host in wiring.hosts if host.name not in gone),
        switches=tuple(switch for switch in wiring.switches if switch.name not in gone),
        cables=tuple(
            cable for cable in wiring.cables if gone.isdisjoint(end.device for end in cable)
        ),
    )
    for state in (infer(removed), infer(wiring, *gone)):
        known = KnownSwitches()
        update(known, infer(wiring))
        assert update(known, state) == ()


def test_a_leaf_is_lost_with_its_hosts_where_no_host_reports(wiring: Wiring) -> None:
    known = KnownSwitches()
    for lost, num in (((), 0), (("leaf-g03",), 1)):
        assert len(update(known, infer(wiring, *lost, mix=SourceMix.LISTED_SWEEP))) == num
