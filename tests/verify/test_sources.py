"""The sources of damaged fabrics: packed as in production, with the facts of plain claims."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.topology.compute_trees import infer_compute_tree
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims
from tests.verify.judgement import TreeVerdict, judge_tree
from tests.verify.sources import (
    MIXES,
    SourceMix,
    collect_sources,
    derive_visible_truth,
)
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin, SweptClaims, expand_claims
from topology.model.facts import Medium
from topology.reports.packed_reports import PackedClaim
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
)

ORIGINS = {
    SourceMix.SWEEP: {Origin.SWEEP},
    SourceMix.LISTED_SWEEP: {Origin.INVENTORY, Origin.SWEEP},
    SourceMix.LISTED_REPORTS: {Origin.INVENTORY, Origin.REPORT},
    SourceMix.ALL: {Origin.INVENTORY, Origin.REPORT, Origin.SWEEP},
}
CASES = [
    (kind, medium, mix) for medium, mixes in MIXES.items() for mix in mixes for kind in FabricKind
]
DAMAGE = FaultSpec(0.1, swap=0.05, silent=0.2, lose_switches=1, lose_hosts=1, shuffle=True)


def build(kind: FabricKind, medium: Medium = Medium.INFINIBAND, **parts: int) -> DamagedFabric:
    spec = SyntheticSpec(kind, 24, rails=2, radix=16, medium=medium)
    return build_undamaged(build_wiring(replace(spec, **parts)))  # type: ignore[arg-type]  # numbers


def order(claim: Claim) -> tuple[int, str, str]:
    return (claim.origin, claim.name, repr(claim.ids))


@pytest.mark.parametrize(("kind", "medium", "mix"), CASES)
def test_a_mix_has_the_facts_of_its_sources(
    kind: FabricKind, medium: Medium, mix: SourceMix
) -> None:
    damaged = damage_fabric(build(kind, medium).wiring, DAMAGE, seeded(5))
    claims = collect_sources(damaged, mix)
    plain = [claim for claim in collect_claims(damaged) if claim.origin in ORIGINS[mix]]
    assert sorted(expand_claims(claims), key=order) == sorted(plain, key=order)


def test_sweeps_are_columns_and_reports_are_bytes() -> None:
    claims = collect_sources(build(FabricKind.DUAL_PLANE), SourceMix.ALL)
    assert sum(isinstance(claim, SweptClaims) for claim in claims) == 2
    assert not any(
        isinstance(claim.devices, tuple) for claim in claims if isinstance(claim, SweptClaims)
    )
    assert sum(isinstance(claim, PackedClaim) for claim in claims) == 24


@pytest.mark.parametrize(("kind", "medium", "mix"), CASES)
def test_every_mix_shows_the_tree_of_an_undamaged_fabric(
    kind: FabricKind, medium: Medium, mix: SourceMix
) -> None:
    whole = build(kind, medium)
    inference = infer_compute_tree(build_fabric(collect_sources(whole, mix)))
    assert judge_tree(derive_visible_truth(whole, mix), inference).verdict is TreeVerdict.EXACT


@pytest.mark.parametrize(("mix", "num_nodes"), [(SourceMix.SWEEP, 21), (SourceMix.ALL, 24)])
def test_only_a_list_names_hosts_without_a_cable(mix: SourceMix, num_nodes: int) -> None:
    damaged = damage_fabric(build(FabricKind.RAIL).wiring, FaultSpec(lose_hosts=3), seeded(1))
    assert len(derive_visible_truth(damaged, mix).all_nodes) == num_nodes


@pytest.mark.parametrize(
    ("mix", "num_tiers"), [(SourceMix.SWEEP, 2), (SourceMix.LISTED_SWEEP, 2), (SourceMix.ALL, 3)]
)
def test_only_reports_show_nvlink_domains(mix: SourceMix, num_tiers: int) -> None:
    whole = build(FabricKind.RAIL, nvlink_hosts=4)
    truth = derive_visible_truth(whole, mix)
    assert len(truth.tiers) == num_tiers
    inference = infer_compute_tree(build_fabric(collect_sources(whole, mix)))
    assert judge_tree(truth, inference).verdict is TreeVerdict.EXACT
