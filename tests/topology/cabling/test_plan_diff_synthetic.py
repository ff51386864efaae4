"""A plan against fabrics with known faults: every swap and every lost cable, and nothing else."""

from collections import Counter

import pytest

from tests.effort import first_of
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims, infer_from
from topology.cabling.plan_diff import CablingDiff, DifferenceKind, MoveKind, compare_cabling
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan, PlannedCable
from topology.model.facts import Medium
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    Wiring,
    build_wiring,
    damage_fabric,
)

SPECS = {
    "rails": SyntheticSpec(FabricKind.RAIL, 32, rails=4, radix=8),
    "a fat tree": SyntheticSpec(FabricKind.FAT_TREE, 32, radix=8),
    "MLAG pairs": SyntheticSpec(FabricKind.DUAL_HOMED, 32, radix=8, medium=Medium.ETHERNET),
}


def plan_of(wiring: Wiring) -> CablingPlan:
    return CablingPlan(
        tuple(
            PlannedCable(*cable.low, *cable.high, line)
            for line, cable in enumerate(wiring.cables, 1)
        )
    )


def compare(damaged: DamagedFabric) -> CablingDiff:
    return compare_cabling(plan_of(damaged.wiring), build_fabric(collect_claims(damaged)))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("seed", first_of(range(4)))
def test_it_finds_the_faults_that_were_made(spec: SyntheticSpec, seed: int) -> None:
    wiring = build_wiring(spec)
    damaged = damage_fabric(wiring, FaultSpec(lose_links=0.03, num_swaps=2), rng=seeded(seed))
    lost = len(wiring.cables) - len(damaged.cables)
    gone = {cable.low.device for cable in wiring.cables} - {
        cable.low.device for cable in damaged.cables
    }
    diff = compare(damaged)
    counts = Counter(row.kind for row in diff.differences)
    moved = len(set(damaged.cables) - set(wiring.cables))
    assert lost > 0
    assert moved == 4
    unjudged = counts[DifferenceKind.UNKNOWN_DEVICE]
    assert counts[DifferenceKind.MISSING] + unjudged == lost
    assert unjudged <= len(gone)
    num_exchanged = sum(move.kind is MoveKind.EXCHANGE for move in diff.moves)
    assert len(diff.moves) + num_exchanged == moved + counts[DifferenceKind.MISSING]
    assert diff.num_as_planned == len(wiring.cables) - lost - moved
    assert (diff.unplanned, diff.errors) == ((), ())


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_it_finds_nothing_in_a_fabric_built_as_planned(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    diff = compare(damage_fabric(wiring, FaultSpec(), rng=seeded(0)))
    assert diff == CablingDiff(num_as_planned=len(wiring.cables))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("seed", first_of(range(8), 2))
def test_it_moves_the_plugs_that_a_finding_about_the_swap_exchanges(
    spec: SyntheticSpec, seed: int
) -> None:
    damaged = damage_fabric(build_wiring(spec), FaultSpec(num_swaps=2), rng=seeded(seed))
    findings = infer_from(collect_claims(damaged)).findings
    exchanged = {frozenset(pair) for finding in findings for pair in finding.swap}
    assert exchanged <= {frozenset({move.cable.b, move.target}) for move in compare(damaged).moves}
