"""The scenarios of the grids."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.verify.grid import (
    GridSize,
    LossTarget,
    Scenario,
    build_grid,
    list_targets,
)
from tests.verify.sources import MIXES, SourceMix
from topology.model.facts import Medium
from topology.synthetic import FabricKind, FaultSpec, NamePolicy, SyntheticSpec, build_wiring

SPEC = SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=16)


@pytest.mark.parametrize(
    ("size", "hcas"), [(GridSize.QUICK, (512,)), (GridSize.FULL, (512, 8192, 65536))], ids=str
)
def test_it_has_fabrics_of_every_kind_under_both_names(
    size: GridSize, hcas: tuple[int, ...]
) -> None:
    scenarios = build_grid(size)
    assert len(set(scenarios)) == len(scenarios)
    for at_most in hcas:
        here = [one for one in scenarios if 0.98 * at_most < one.num_hcas <= at_most]
        assert {one.spec.kind for one in here} == set(FabricKind)
        assert {one.spec.tiers for one in here} == {None, 2, 3, 4}
        by_fabric = Counter((one.fabric, one.spec.names) for one in here)
        assert {names for _, names in by_fabric} == set(NamePolicy)


def test_it_has_a_grid_of_fabrics_that_are_not_a_regular_clos() -> None:
    specs = [one.spec for one in build_grid(GridSize.ODD)]
    assert {spec.kind for spec in specs} == {FabricKind.FAT_TREE, FabricKind.RAIL}
    odd = {(spec.uplinks, spec.storage_leaves, spec.islands, spec.nvlink_hosts) for spec in specs}
    assert odd == {(2, 0, 0, 0), (None, 2, 0, 0), (None, 0, 1, 0), (None, 0, 0, 4)}


def test_two_seeds_read_every_mix_of_sources_of_every_fabric_and_fault() -> None:
    mixes: dict[tuple[str, str], set[SourceMix]] = {}
    for one in build_grid(GridSize.QUICK):
        assert {one.find_mix(seed) for seed in range(3)} == set(MIXES[one.spec.medium])
        mixes.setdefault((one.fabric, one.fault), set()).update(map(one.find_mix, range(2)))
    expected = {fabric: set(MIXES[Medium.INFINIBAND]) for fabric, _ in mixes}
    expected["MLAG pairs"] = set(MIXES[Medium.ETHERNET])
    assert mixes == {key: expected[key[0]] for key in mixes}


def test_it_reads_only_the_given_sources() -> None:
    scenarios = build_grid(GridSize.QUICK, sources=(SourceMix.SWEEP, SourceMix.ALL))
    assert {mix for one in scenarios for mix in one.mixes} == {SourceMix.SWEEP, SourceMix.ALL}
    assert {one.spec.medium for one in scenarios} == {Medium.INFINIBAND}
    assert build_grid(GridSize.ODD, sources=(SourceMix.LISTED_REPORTS,)) == []


def test_it_loses_a_switch_of_every_rank_of_every_fabric() -> None:
    ranks: dict[SyntheticSpec, set[int]] = {}
    for one in build_grid(GridSize.QUICK):
        found = ranks.setdefault(one.spec, set())
        if one.faults.lose_rank:
            found.add(one.faults.lose_rank)
    for spec, found in ranks.items():
        assert found == {switch.rank for switch in build_wiring(spec).switches}


def test_it_loses_every_device_in_turn_in_small_fabrics_of_the_full_grid() -> None:
    small = [one for one in build_grid(GridSize.FULL) if one.num_hcas <= 512]
    for fabric in {(one.fabric, one.spec.names) for one in small}:
        each = {one.loss_target for one in small if (one.fabric, one.spec.names) == fabric}
        assert each == {None, *LossTarget}
    assert not [one for one in build_grid(GridSize.FULL) if one.num_hcas > 512 and one.loss_target]


@pytest.mark.parametrize("each", list(LossTarget))
def test_it_names_another_device_in_each_run(each: LossTarget) -> None:
    scenario = Scenario("rail", "each", SPEC, FaultSpec(lose_links=0.1), each)
    wiring = build_wiring(SPEC)
    faults = [scenario.build_faults(seed, wiring) for seed in scenario.find_seeds(3, 2)]
    assert [found.lost for found in faults] == [(name,) for name in list_targets(each, wiring)]
    assert {found.lose_links for found in faults} == {0.1}
