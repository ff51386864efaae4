"""A plan against fabrics with known faults: every swap and every lost cable, and nothing else."""

from collections import Counter

import pytest

from generator.verifying import claims_of
from tests.effort import first_of
from tests.topology.synthetic.fabrics import seeded
from topology.cabling import CablingPlan, PlannedCable
from topology.fabric import build_fabric
from topology.facts import Medium
from topology.intent import CablingDiff, DifferenceKind, compare_cabling
from topology.synthetic import (
    Damaged,
    FabricKind,
    FabricSpec,
    FaultSpec,
    Wiring,
    build_wiring,
    damage,
)

SPECS = {
    "rails": FabricSpec(FabricKind.RAIL, 32, rails=4, radix=8),
    "a fat tree": FabricSpec(FabricKind.FAT_TREE, 32, radix=8),
    "MLAG pairs": FabricSpec(FabricKind.DUAL_HOMED, 32, radix=8, medium=Medium.ETHERNET),
}


def plan_of(wiring: Wiring) -> CablingPlan:
    return CablingPlan(
        tuple(
            PlannedCable(*cable.low, *cable.high, line)
            for line, cable in enumerate(wiring.cables, 1)
        )
    )


def compare(damaged: Damaged) -> CablingDiff:
    return compare_cabling(plan_of(damaged.wiring), build_fabric(claims_of(damaged)))


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
@pytest.mark.parametrize("seed", first_of(range(4)))
def test_it_finds_the_faults_that_were_made(spec: FabricSpec, seed: int) -> None:
    wiring = build_wiring(spec)
    damaged = damage(wiring, FaultSpec(lose_links=0.03, num_swaps=2), rng=seeded(seed))
    lost = len(wiring.cables) - len(damaged.cables)
    gone = {cable.low.device for cable in wiring.cables} - {
        cable.low.device for cable in damaged.cables
    }
    diff = compare(damaged)
    counts = Counter(row.kind for row in diff.rows)
    moved = len(set(damaged.cables) - set(wiring.cables))
    assert lost > 0
    assert moved == 4
    unjudged = counts[DifferenceKind.UNKNOWN_DEVICE]
    assert counts[DifferenceKind.MISSING] + unjudged == lost
    assert unjudged <= len(gone)
    assert len(diff.moves) == moved + counts[DifferenceKind.MISSING]
    assert diff.num_as_planned == len(wiring.cables) - lost - moved
    assert (diff.unplanned, diff.errors) == ((), ())


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_it_finds_nothing_in_a_fabric_built_as_planned(spec: FabricSpec) -> None:
    wiring = build_wiring(spec)
    diff = compare(damage(wiring, FaultSpec(), rng=seeded(0)))
    assert diff == CablingDiff(num_as_planned=len(wiring.cables))
