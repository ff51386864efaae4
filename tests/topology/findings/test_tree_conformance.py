"""Wirings that are not a tree, against trees and damaged trees."""

import numpy as np
import pytest

from generator.ingest.captures import read_captures
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.cables import End, hosts, infer_cables, mesh, of_kind, star
from tests.topology.lattices import (
    HOSTS_EACH,
    Pair,
    cabled,
    dragonfly,
    hypercube,
    mesh_of_all,
    populated,
    ring,
    torus,
)
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims, infer_from
from topology.findings.tree_conformance import MIN_TREENESS, peer_share
from topology.model.claims import Claim, Origin
from topology.model.facts import FindingKind, Severity
from topology.model.pair_counts import count_pairs
from topology.model.tree import host_partitions
from topology.synthetic import FabricKind, FaultSpec, SyntheticSpec, build_wiring, damage_fabric
from topology.tiers.domain_links import find_reach


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param(ring(4), id="a ring of four"),
        pytest.param(ring(12), id="a ring of twelve"),
        pytest.param(torus(3, 3), id="a small torus"),
        pytest.param(torus(4, 4, 4), id="a torus in three dimensions"),
        pytest.param(hypercube(3), id="a cube"),
        pytest.param(hypercube(5), id="a hypercube"),
        pytest.param(dragonfly(4, 2), id="a dragonfly of routers with hosts"),
    ],
)
def test_it_reports_a_wiring_that_is_not_a_tree_and_keeps_the_leaves(pairs: list[Pair]) -> None:
    inference = infer_cables(populated(pairs))
    (finding,) = of_kind(inference.findings, FindingKind.NOT_A_TREE)
    assert finding.severity is Severity.WARNING
    assert "treeness 0." in finding.message
    leaves, everything = host_partitions(inference.tree)
    assert {len(nodes) for nodes in leaves} == {HOSTS_EACH}
    assert everything == {frozenset(inference.tree.nodes)}


def test_it_reports_a_ring_with_hosts_on_every_other_switch() -> None:
    inference = infer_cables(populated(ring(8), every=2))
    (finding,) = of_kind(inference.findings, FindingKind.NOT_A_TREE)
    assert finding.severity is Severity.WARNING


def test_it_reports_that_a_ring_of_four_may_be_leaves_and_spines() -> None:
    inference = infer_cables(
        [*cabled(ring(4)), *star("sw00", hosts(1, 4)), *star("sw02", hosts(5, 8))]
    )
    (finding,) = of_kind(inference.findings, FindingKind.NOT_A_TREE)
    assert finding.severity is Severity.INFO
    assert [len(tier) for tier in host_partitions(inference.tree)] == [2, 1]


@pytest.mark.parametrize(
    "pairs",
    [
        pytest.param(mesh_of_all(3), id="three leaves cabled to each other"),
        pytest.param(mesh_of_all(8), id="a full mesh"),
        pytest.param([], id="a switch alone"),
    ],
)
def test_it_reports_nothing_about_a_full_mesh(pairs: list[Pair]) -> None:
    inference = infer_cables(populated(pairs) or star("sw00", hosts(1, 4)))
    assert of_kind(inference.findings, FindingKind.NOT_A_TREE) == []


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([], id="spines alone"),
        pytest.param(mesh(["spine-1"], ["spine-2"], parallel=3), id="spines cabled together"),
    ],
)
def test_it_reports_nothing_about_two_leaves_below_two_spines(
    between: list[tuple[End, End]],
) -> None:
    leaves = [*star("leaf-a", hosts(1, 4)), *star("leaf-b", hosts(5, 8))]
    cables = [*leaves, *mesh(["leaf-a", "leaf-b"], ["spine-1", "spine-2"], parallel=2)]
    inference = infer_cables([*cables, *between])
    assert of_kind(inference.findings, FindingKind.NOT_A_TREE) == []


DAMAGE = FaultSpec(lose_links=0.1, swap=0.05, silent=0.2, lose_switches=1, lose_hosts=1)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(SyntheticSpec(FabricKind.FAT_TREE, 256, radix=8, tiers=4), id="four ranks"),
        pytest.param(SyntheticSpec(FabricKind.FAT_TREE, 128, radix=8, tiers=3), id="three ranks"),
        pytest.param(SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16), id="rails"),
        pytest.param(SyntheticSpec(FabricKind.DUAL_HOMED, 64, radix=16), id="pairs"),
        pytest.param(SyntheticSpec(FabricKind.DUAL_PLANE, 64, radix=16), id="two planes"),
        pytest.param(SyntheticSpec(FabricKind.DRAGONFLY_PLUS, 256, radix=16), id="a dragonfly+"),
    ],
)
def test_it_accepts_every_damaged_tree_as_a_tree(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    for seed in range(3):
        inference = infer_from(collect_claims(damage_fabric(wiring, DAMAGE, seeded(seed))))
        assert of_kind(inference.findings, FindingKind.NOT_A_TREE) == []


def test_it_measures_the_share_of_cabled_pairs_of_peers() -> None:
    assert peer_share([(0, 1), (1, 2), (2, 0)]) == 1.0
    assert peer_share([(0, 1), (1, 2), (2, 3)]) == 0.5 < MIN_TREENESS


def test_it_counts_the_links_and_shares_of_groups_to_the_units_below() -> None:
    units, parents = np.array([0, 1, 0, 1, 2, 3, 4]), np.array([5, 5, 6, 6, 6, -1, -1, -1])
    switches = np.array([8, 8, 9, 9, 10, 11, 12])
    num_links, shares = find_reach(count_pairs(switches, units, np.full(7, 2)), parents)
    assert num_links.tolist() == [0, 0, 0, 0, 0, 8, 6]
    assert shares.tolist() == [0, 0, 0, 0, 0, 1, pytest.approx(1 / 3)]


@needs_samples
@pytest.mark.parametrize(
    ("name", "severities"),
    [
        pytest.param("edr-ring_4sw.txt", [Severity.INFO], id="a ring of four"),
        pytest.param("hdr-60sw_default-names.txt", [], id="forty leaves below twenty spines"),
        pytest.param("psmn-x5_qdr-ddr.txt", [], id="two levels and a switch above"),
        pytest.param("superpod-dgxa100_hdr.txt", [], id="three tiers of rails"),
        pytest.param("selene-storage_hdr-edr.txt", [], id="three tiers of storage"),
        pytest.param("topograph_ndr_dgx.txt", [], id="two tiers of rails"),
    ],
)
def test_it_recognizes_a_real_ring_and_real_trees(name: str, severities: list[Severity]) -> None:
    dump = (SAMPLES / "ibnetdiscover" / name).read_bytes()
    devices = parse_ibnetdiscover(dump, source=name).devices
    inference = infer_from(Claim(device, Origin.SWEEP) for device in devices)
    findings = of_kind(inference.findings, FindingKind.NOT_A_TREE)
    assert [finding.severity for finding in findings] == severities


@needs_samples
def test_it_reports_nothing_about_captured_leaves_and_a_spine() -> None:
    claims, _ = read_captures(SAMPLES / "fabric" / "own16")
    assert of_kind(infer_from(claims).findings, FindingKind.NOT_A_TREE) == []
