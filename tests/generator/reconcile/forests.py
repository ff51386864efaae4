"""Strategies: small forests of HyperNodes that share names, and damage to them."""

from dataclasses import replace

from hypothesis import strategies as st

from generator.outputs.hypernode.model import OWN_LABELS, PLACEHOLDER, HyperNode, Member, MemberType
from tests.generator.reconcile.cluster import hypernode

NAMES = tuple("abcdefgh")
NODES = tuple(f"n{number}" for number in range(6))


@st.composite
def forests(draw: st.DrawFn) -> list[HyperNode]:
    """Draw a valid forest of up to three tiers; a name may be on another tier in another forest."""
    names = iter(draw(st.permutations(NAMES)))
    units: list[tuple[str, ...]] = [(node,) for node in NODES if draw(st.booleans())]
    made: list[HyperNode] = []
    for tier in range(1, draw(st.integers(1, 3)) + 1):
        groups: dict[int, list[str]] = {}
        for (unit,) in units:
            groups.setdefault(draw(st.integers(0, 2)), []).append(unit)
        units = []
        for number, members in sorted(groups.items()):
            name = next(names, None)
            # A group without a name, or group 0 above tier 1, leaves its members as roots.
            if name is not None and (number or tier == 1):
                made.append(hypernode(name, tier, *members))
                units.append((name,))
    return made


@st.composite
def evolutions(draw: st.DrawFn) -> tuple[list[HyperNode], list[HyperNode]]:
    """Draw an observed forest and a desired one of another depth that keeps most names."""
    deep = shallow = draw(forests())
    for _ in range(draw(st.integers(1, 2))):
        deep = _with_tier_below(deep, leaves_per_leaf=draw(st.integers(1, 2)))
    if draw(st.booleans()):
        gone = draw(st.sampled_from(NAMES))
        shallow = [found for found in shallow if found.name != gone]
        shallow = _closed(shallow)
    return (deep, shallow) if draw(st.booleans()) else (shallow, deep)


def _with_tier_below(forest: list[HyperNode], *, leaves_per_leaf: int) -> list[HyperNode]:
    """Return the forest one tier higher: leaves list new leaves, which hold the nodes."""
    made = []
    for found in forest:
        below = found.children
        for number in range(leaves_per_leaf if found.nodes else 0):
            nodes = found.nodes[number::leaves_per_leaf]
            if nodes:
                made.append(hypernode(f"{found.name}{number}", 1, *nodes))
                below = (*below, made[-1].name)
        made.append(hypernode(found.name, found.tier + 1, *below))
    return made


def _closed(forest: list[HyperNode]) -> list[HyperNode]:
    """Return the forest without missing children, and without HyperNodes that become empty."""
    kept: dict[str, HyperNode] = {}
    for found in sorted(forest, key=lambda found: found.tier):
        below = [name for name in found.children if name in kept]
        if found.nodes or below:
            kept[found.name] = hypernode(found.name, found.tier, *found.nodes, *below)
    return list(kept.values())


@st.composite
def damaged(draw: st.DrawFn) -> list[HyperNode]:
    """Draw an observed forest: after losses, foreign changes and interrupted plans."""
    state = {found.name: found for found in draw(forests())}
    for _ in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from(NAMES))
        found = state.get(name) or hypernode(name, 1, "n0")
        harmed = draw(_harmed(found))
        if harmed is None:
            state.pop(name, None)
        else:
            state[name] = harmed
    return list(draw(st.permutations(list(state.values()))))


@st.composite
def _harmed(draw: st.DrawFn, found: HyperNode) -> HyperNode | None:
    kind, name = draw(st.sampled_from(tuple(MemberType))), draw(st.sampled_from(NAMES))
    return draw(
        st.sampled_from(
            [
                None,
                replace(found, tier=draw(st.integers(0, 4))),
                replace(found, members=(*found.members, Member(MemberType.HYPERNODE, name))),
                replace(found, members=(*found.members, Member(kind, "n1"))),
                replace(found, members=(Member(MemberType.NODE, PLACEHOLDER),)),
                replace(found, members=(), num_inexact_members=1),
                replace(found, labels=()),
                replace(found, labels=(*OWN_LABELS, ("team", "a")), tier_name="other"),
            ]
        )
    )
