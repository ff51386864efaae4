"""A law of trust: whatever one node reports, no other node changes its place."""

import random  # noqa: TID251 - lies are drawn from a seed that hypothesis draws
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.observe.observation import ObservedFabric, observe_fabric
from tests.effort import examples
from tests.property.liars import tell_lies
from tests.property.witnesses import Scene, Witnesses, honest_witnesses, scenes
from topology.identity.id_owners import index_id_owners
from topology.model.facts import FindingKind
from topology.model.tree import TopologyTree

Level = tuple[int, str, frozenset[str]]
"""Tier, name and honest nodes of a domain."""
DOUBTS = {FindingKind.DUPLICATE_ID, FindingKind.DUPLICATE_NAME, FindingKind.UNDECIDABLE}


def observed(witnesses: Witnesses, before: ObservedFabric | None = None) -> ObservedFabric:
    found = observe_fabric(
        witnesses.inputs(),
        previous=before.observation.tree if before else None,
        first_owners=index_id_owners(before.split.fabric) if before else {},
    )
    assert found is not None
    return found


def places(
    tree: TopologyTree, honest: frozenset[str], *, has_names: bool
) -> dict[str, tuple[Level, ...]]:
    """Return the domains of each honest node, bottom-up, as sets of honest nodes.

    The name of a domain counts if two honest nodes keep it: of a pair, each node is half.
    """
    found: dict[str, tuple[Level, ...]] = {}
    for domain in tree.domains:
        nodes = honest.intersection(tree.nodes_of(domain))
        level = (domain.tier, domain.name if has_names and len(nodes) > 1 else "", nodes)
        for node in nodes:
            found[node] = (*found.get(node, ()), level)
    return found


def is_alone_in_a_domain(tree: TopologyTree, node: str) -> bool:
    """Return whether a domain of switches, such as a leaf, has this node alone."""
    return any(domain.switches and set(tree.nodes_of(domain)) == {node} for domain in tree.domains)


def distinct(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """Return the sets of nodes, bottom-up, without tiers that join no further node.

    The only node of a leaf or pod decides whether a tier is needed to join it with the others.
    """
    return tuple((0, "", nodes) for nodes in dict.fromkeys(nodes for _, _, nodes in levels))


class Moved(NamedTuple):
    node: str
    before: tuple[Level, ...]
    now: tuple[Level, ...]


def moved_nodes(scene: Scene, liar: str, rng: random.Random, *, has_history: bool) -> list[object]:
    """Return the lies and the honest nodes that they moved; empty if they moved none.

    A node may lose its place, with a reason and a finding about it or the liar. A place is the same
    as that without lies, or as that without the liar: a liar may be silent, or move its own cables.
    A liar that is alone in its leaf or pod may also add or remove a tier that joins no other nodes.
    """
    honest = observed(honest_witnesses(scene, liar))
    before = honest if has_history else None
    silent = observed(honest_witnesses(scene, liar, is_silent=True), before)
    witnesses = tell_lies(scene, liar, rng)
    now = observed(witnesses, before)
    doubts = [finding.message for finding in now.observation.findings if finding.kind in DOUBTS]
    unplaced = {
        node
        for node, reason in now.observation.tree.unplaced
        if reason and any(node in message or liar in message for message in doubts)
    }
    others = frozenset(scene.nodes) - {liar} - unplaced
    is_alone = is_alone_in_a_domain(honest.observation.tree, liar)

    def find_places(tree: TopologyTree) -> dict[str, tuple[Level, ...]]:
        found = places(tree, others, has_names=has_history and not is_alone)
        return {node: distinct(levels) for node, levels in found.items()} if is_alone else found

    allowed = [find_places(one.observation.tree) for one in (honest, silent)]
    found = find_places(now.observation.tree)
    moved = [
        Moved(node, allowed[0].get(node, ()), found.get(node, ()))
        for node in sorted(others)
        if all(found.get(node, ()) != reference.get(node, ()) for reference in allowed)
    ]
    return [witnesses.lies, *moved[:2]] if moved else []


@pytest.mark.timeout(600)  # all 300 examples take a minute on an idle core
@settings(max_examples=examples(300), deadline=None)
@given(scenes(), st.randoms(use_true_random=False), st.booleans())
def test_no_honest_node_changes_its_place(
    scene: Scene,
    rng: random.Random,
    has_history: bool,  # noqa: FBT001 - hypothesis passes it so
) -> None:
    liar = rng.choice(scene.nodes)
    assert moved_nodes(scene, liar, rng, has_history=has_history) == []
