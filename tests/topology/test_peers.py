"""Switches of equal rank that are cabled to each other: they meet one tier up."""

from itertools import combinations

from tests.topology.cables import claims, hosts, mesh, star
from tests.topology.judging import infer_from
from topology.facts import FindingKind
from topology.inference import Inference
from topology.tree import host_partitions


def sizes(found: Inference) -> list[list[int]]:
    return [sorted(map(len, tier)) for tier in host_partitions(found.tree)]


def kinds(found: Inference) -> set[FindingKind]:
    return {finding.kind for finding in found.findings}


def full_mesh(switches: list[str]) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    return [
        ((one, f"to-{other}"), (other, f"to-{one}")) for one, other in combinations(switches, 2)
    ]


def test_it_makes_leaf_and_all_of_a_full_mesh_of_leaves() -> None:
    leaves = [f"leaf{at}" for at in range(4)]
    cables = full_mesh(leaves)
    for at, leaf in enumerate(leaves):
        cables += star(leaf, hosts(4 * at, 4 * at + 3))
    found = infer_from(claims(cables))
    assert sizes(found) == [[4, 4, 4, 4], [16]]
    assert found.tree.domains[-1].switches == ()
    assert FindingKind.ISLAND not in kinds(found)


def test_it_makes_leaf_group_and_all_of_a_dragonfly() -> None:
    groups = [([f"leaf{g}{at}" for at in range(2)], [f"spine{g}{at}" for at in range(2)])
              for g in range(3)]  # fmt: skip
    cables = full_mesh([spines[0] for _, spines in groups])
    cables += full_mesh([spines[1] for _, spines in groups])
    for number, (leaves, spines) in enumerate(groups):
        cables += mesh(leaves, spines, parallel=2)
        for at, leaf in enumerate(leaves):
            first = 8 * number + 4 * at
            cables += star(leaf, hosts(first, first + 3))
    found = infer_from(claims(cables))
    assert sizes(found) == [[4] * 6, [8] * 3, [24]]
    assert found.tree.tiers == ("leaf", "spine", "core")
    assert FindingKind.ISLAND not in kinds(found)


def test_it_keeps_islands_that_no_cable_joins_apart() -> None:
    cables = [*star("leaf1", hosts(0, 3)), *star("leaf2", hosts(4, 7))]
    found = infer_from(claims(cables))
    assert sizes(found) == [[4, 4]]
    assert FindingKind.ISLAND in kinds(found)


def test_it_makes_no_tier_of_the_cable_between_the_leaves_of_a_pair() -> None:
    cables = [*star("leaf1", hosts(0, 3)), *star("leaf2", hosts(0, 3), port="eth1")]
    cables += full_mesh(["leaf1", "leaf2"])
    assert sizes(infer_from(claims(cables))) == [[4]]
