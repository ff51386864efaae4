from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.synthetic.fabrics import (
    SPECS,
    cut_all,
    remove,
    seeded,
    swap,
)
from topology.model.facts import Medium
from topology.model.tree import TopologyTree, Unplaced, host_partitions, parse_tree
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    damage_fabric,
    derive_truth,
    render_truth,
)
from topology.synthetic.spec import STORAGE_RANK

RAILS = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=8)))
PAIRS = build_undamaged(
    build_wiring(SyntheticSpec(FabricKind.DUAL_HOMED, 8, radix=8, medium=Medium.ETHERNET))
)
TREE = build_undamaged(build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 16, radix=8)))
ALL = [pytest.param(build_undamaged(build_wiring(spec)), id=title) for title, spec in SPECS.items()]


def domain_of(tree: TopologyTree, node: str) -> str | None:
    return next((found.name for found in tree.domains if node in found.nodes), None)


def parent_of(tree: TopologyTree, name: str) -> str | None:
    parent = next(found.parent for found in tree.domains if found.name == name)
    return None if parent is None else tree.domains[parent].name


def sizes(tree: TopologyTree) -> list[list[int]]:
    """Return how many nodes the domains of each tier hold, sorted."""
    return [sorted(map(len, found)) for found in host_partitions(tree)]


@pytest.mark.parametrize("damaged", ALL)
def test_it_nests_every_tier_in_the_next(damaged: DamagedFabric) -> None:
    tree = derive_truth(damaged)
    spec = damaged.wiring.spec
    has_top = spec.kind is FabricKind.DRAGONFLY_PLUS
    assert len(tree.tiers) == damaged.wiring.num_ranks + has_top + (spec.nvlink_hosts > 0)
    assert all(sum(found) == damaged.wiring.spec.num_hosts for found in sizes(tree))
    assert [found.parent for found in tree.domains].count(None) == 1


@pytest.mark.parametrize("damaged", ALL)
def test_it_lists_every_switch_but_storage_in_one_domain(damaged: DamagedFabric) -> None:
    listed = Counter(name for found in derive_truth(damaged).domains for name in found.switches)
    assert listed == Counter(
        switch.name for switch in damaged.wiring.switches if switch.rank != STORAGE_RANK
    )


def test_it_makes_domains_of_the_hosts_that_nvlink_joins() -> None:
    wiring = build_wiring(SPECS["NVLink domains below MLAG pairs"])
    damaged = damage_fabric(wiring, FaultSpec(shuffle=True), seeded(1))
    tree = derive_truth(damaged)
    assert tree.tiers[0] == "nvlink"
    assert host_partitions(tree)[0] == {
        frozenset(host.name for host in damaged.wiring.hosts if host.clique == clique)
        for clique in range(11)
    }
    assert [host.clique for host in damaged.wiring.hosts] == [at // 2 for at in range(21)]


def test_it_joins_groups_of_a_dragonfly_that_cables_connect() -> None:
    spec = SPECS["a dragonfly+ of four groups"]
    apart = derive_truth(build_undamaged(build_wiring(replace(spec, islands=2))))
    assert sizes(apart)[1:] == [[12, 16, 16, 16], [32]]
    roots = [found for found in apart.domains if found.parent is None]
    assert sorted(found.tier for found in roots) == [2, 2, 3]
    assert derive_truth(build_undamaged(build_wiring(spec))).domains[-1].switches == ()


@settings(max_examples=examples(30))
@given(
    seed=st.integers(0, 2**16),
    title=st.sampled_from(sorted(set(SPECS) - {"one full leaf alone"})),
    faults=st.sampled_from(
        [
            FaultSpec(lose_links=0.05, num_swaps=2, silent=0.1),
            FaultSpec(lose_links=0.5, lose_switches=3),
            FaultSpec(lose_links=0.9),
        ]
    ),
)
def test_it_partitions_all_nodes_with_any_faults(seed: int, title: str, faults: FaultSpec) -> None:
    wiring = build_wiring(SPECS[title])
    tree = derive_truth(damage_fabric(wiring, faults, seeded(seed)))
    assert tree.all_nodes == tuple(sorted(host.name for host in wiring.hosts))
    for found in host_partitions(tree):
        assert sum(map(len, found)) == len(frozenset().union(*found))


def test_it_keeps_a_rail_host_in_its_group_when_a_cable_moves() -> None:
    moved = swap(RAILS, ("node-0001", "mlx5_0/1"), ("node-0009", "mlx5_0/1"))
    assert derive_truth(moved) == derive_truth(RAILS)


def test_it_moves_a_host_with_one_link_to_the_group_of_its_cable() -> None:
    tree = derive_truth(swap(TREE, ("node-0001", "mlx5_0/1"), ("node-0005", "mlx5_0/1")))
    assert (domain_of(tree, "node-0001"), domain_of(tree, "node-0005")) == ("leaf-g02", "leaf-g01")


def test_it_does_not_place_a_host_with_equally_many_links_to_two_groups() -> None:
    tree = derive_truth(swap(PAIRS, ("node-0001", "eth0"), ("node-0005", "eth1")))
    reason = "the same number of links to leaf-g01 and to leaf-g02"
    assert tree.unplaced == (Unplaced("node-0001", reason), Unplaced("node-0005", reason))


def test_it_does_not_place_a_host_without_a_link() -> None:
    tree = derive_truth(cut_all(RAILS, "node-0003"))
    assert tree.unplaced == (Unplaced("node-0003", "none of its ports has a link"),)


def test_it_gives_no_parent_to_a_leaf_group_without_up_links() -> None:
    tree = derive_truth(cut_all(TREE, "leaf-g02"))
    assert parent_of(tree, "leaf-g02") is None
    assert sizes(tree) == [[4, 4, 4, 4], [12]]


def test_it_gives_no_parent_to_a_leaf_group_tied_between_pods() -> None:
    damaged = build_undamaged(build_wiring(SPECS["a fat tree of three tiers"]))
    tree = derive_truth(swap(damaged, ("leaf-p01-g01", "3"), ("leaf-p02-g03", "3")))
    assert parent_of(tree, "leaf-p01-g01") is None
    assert parent_of(tree, "leaf-p01-g02") == "spine-p01"


def test_it_drops_a_leaf_group_without_hosts() -> None:
    gone = TREE
    for number in range(5, 9):
        gone = cut_all(gone, f"node-{number:04}")
    assert sizes(derive_truth(gone)) == [[4, 4, 4], [12]]


def test_it_drops_tiers_without_switches() -> None:
    gone = TREE
    for switch in TREE.wiring.switches:
        gone = remove(gone, switch.name) if switch.rank == 2 else gone
    tree = derive_truth(gone)
    assert tree.tiers == ("leaf",)
    assert sizes(tree) == [[4, 4, 4, 4]]


def test_it_omits_lost_switches_from_the_domains() -> None:
    tree = derive_truth(remove(RAILS, "leaf-p01-g01-r2"))
    leaves = next(found.switches for found in tree.domains if found.name == "leaf-p01-g01")
    assert leaves == ("leaf-p01-g01-r1", "leaf-p01-g01-r3", "leaf-p01-g01-r4")
    assert host_partitions(tree) == host_partitions(derive_truth(RAILS))


def test_it_renders_the_tree_with_its_faults() -> None:
    damaged = damage_fabric(TREE.wiring, FaultSpec(lose_links=0.01), seeded(1))
    tree = derive_truth(damaged)
    document = render_truth(tree, damaged.faults)
    (fault,) = damaged.faults
    assert document.pop("faults") == [
        {
            "kind": "lost-link",
            "ports": [{"device": end.device, "port": end.port} for end in fault.ports],
            "detectable": fault.is_detectable,
        }
    ]
    assert parse_tree(document) == tree
