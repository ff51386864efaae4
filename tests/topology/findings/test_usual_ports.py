"""The ports that a missing cable is named with are those of a cable that was lost."""

import random  # noqa: TID251 - the seeded random source of faults

import pytest

from tests.topology.verdicts import collect_claims, infer_from
from topology.model.facts import FindingKind, Medium
from topology.synthetic import (
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
)

SPECS = {
    "rails of InfiniBand": SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16),
    "rails of Ethernet": SyntheticSpec(
        FabricKind.RAIL, 64, rails=4, radix=16, medium=Medium.ETHERNET
    ),
    "a fat tree of three tiers": SyntheticSpec(FabricKind.FAT_TREE, 64, radix=8, tiers=3),
    "two planes": SyntheticSpec(FabricKind.DUAL_PLANE, 32, rails=2, radix=16),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_named_port_is_one_that_lost_its_cable(spec: SyntheticSpec, seed: int) -> None:
    wiring = build_wiring(spec)
    faults = FaultSpec(lose_links=0.03, num_swaps=seed % 2)
    damaged = damage_fabric(wiring, faults, random.Random(seed))  # noqa: S311 - draws faults
    whole = {end for cable in wiring.cables for end in (cable.low, cable.high)}
    left = {end for cable in damaged.cables for end in (cable.low, cable.high)}
    named = [
        end
        for finding in infer_from(collect_claims(damaged)).findings
        if finding.kind is FindingKind.MISSING_LINK
        for end in finding.ports
        if end.port
    ]
    assert named
    assert [end for end in named if end not in whole - left] == []
