"""Switches of equal rank that are cabled to each other get a common domain one tier up."""

from itertools import combinations

from tests.topology.cables import claims, hosts, mesh, star
from tests.topology.verdicts import infer_from
from topology.inference.tree_inference import Inference
from topology.model.facts import FindingKind
from topology.model.tree import host_partitions


def sizes(inference: Inference) -> list[list[int]]:
    return [sorted(map(len, tier)) for tier in host_partitions(inference.tree)]


def kinds(inference: Inference) -> set[FindingKind]:
    return {finding.kind for finding in inference.findings}


def full_mesh(switches: list[str]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    return [
        ((switch, f"to-{peer}"), (peer, f"to-{switch}"))
        for switch, peer in combinations(switches, 2)
    ]


def test_it_gives_a_full_mesh_of_leaves_two_tiers() -> None:
    leaves = [f"leaf{at}" for at in range(4)]
    cables = full_mesh(leaves)
    for at, leaf in enumerate(leaves):
        cables += star(leaf, hosts(4 * at, 4 * at + 3))
    inference = infer_from(claims(cables))
    assert sizes(inference) == [[4, 4, 4, 4], [16]]
    assert inference.tree.domains[-1].switches == ()
    assert FindingKind.ISLAND not in kinds(inference)


def test_it_gives_a_dragonfly_three_tiers() -> None:
    groups = [([f"leaf{g}{at}" for at in range(2)], [f"spine{g}{at}" for at in range(2)])
              for g in range(3)]  # fmt: skip
    cables = full_mesh([spines[0] for _, spines in groups])
    cables += full_mesh([spines[1] for _, spines in groups])
    for number, (leaves, spines) in enumerate(groups):
        cables += mesh(leaves, spines, parallel=2)
        for at, leaf in enumerate(leaves):
            first = 8 * number + 4 * at
            cables += star(leaf, hosts(first, first + 3))
    inference = infer_from(claims(cables))
    assert sizes(inference) == [[4] * 6, [8] * 3, [24]]
    assert inference.tree.tiers == ("leaf", "spine", "core")
    assert FindingKind.ISLAND not in kinds(inference)


def test_it_keeps_islands_without_a_cable_apart() -> None:
    cables = [*star("leaf1", hosts(0, 3)), *star("leaf2", hosts(4, 7))]
    inference = infer_from(claims(cables))
    assert sizes(inference) == [[4, 4]]
    assert FindingKind.ISLAND in kinds(inference)


def test_it_adds_no_tier_for_the_cable_between_the_leaves_of_a_pair() -> None:
    cables = [*star("leaf1", hosts(0, 3)), *star("leaf2", hosts(0, 3), port="eth1")]
    cables += full_mesh(["leaf1", "leaf2"])
    assert sizes(infer_from(claims(cables))) == [[4]]


def small_dragonfly(num_leaves: int) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Return two groups of four leaves and a third of fewer, with eight cables between any two."""
    cables = []
    first = 0
    for group, count in enumerate((4, 4, num_leaves)):
        spines = [f"spine{group}{at}" for at in range(4)]
        for leaf in (f"leaf{group}{at}" for at in range(count)):
            cables += [*star(leaf, hosts(first, first + 3)), *mesh([leaf], spines)]
            first += 4
    for group_a, group_b in ((0, 1), (0, 2), (1, 2)):
        for at in range(4):
            ends = f"spine{group_a}{at}", f"spine{group_b}{at}"
            cables += mesh(ends[:1], ends[1:], parallel=2)
    return cables


def test_it_ranks_the_spines_of_a_group_with_a_single_leaf_with_their_peers() -> None:
    inference = infer_from(claims(small_dragonfly(1)))
    assert sizes(inference) == [[4] * 9, [4, 16, 16], [36]]
    assert inference.tree.tiers == ("leaf", "spine", "core")


def test_it_adds_no_tier_where_a_group_has_no_leaves() -> None:
    assert sizes(infer_from(claims(small_dragonfly(0)))) == [[4] * 8, [16, 16], [32]]


def test_it_keeps_groups_apart_whose_spines_exchanged_a_cable() -> None:
    leaves = {"leaf00": "spine00", "leaf10": "spine11"}
    cables = []
    for low, high in small_dragonfly(1):
        target = leaves.get(low[0])
        other = "spine11" if target == "spine00" else "spine00"
        is_swapped = target is not None and high[0] == target
        cables.append((low, (other, f"swapped-{low[0]}")) if is_swapped else (low, high))
    assert sizes(infer_from(claims(cables))) == [[4] * 9, [4, 16, 16], [36]]
