"""Strategies: topology trees with gaps in depth, nodes above tier 1 and empty domains."""

from hypothesis import strategies as st

from topology.model.tree import DomainSpec, TopologyTree, build_tree

TIERS = ("leaf", "spine", "core", "core2")


@st.composite
def trees(draw: st.DrawFn) -> TopologyTree:
    """Draw a tree of up to four tiers; names may look like those of padding."""
    stems = ("a", "b", "rack-1", "x" * 60, "a-pad1", "rack-1-pad2", "x" * 58 + "-pad2")
    names = draw(st.lists(st.sampled_from(stems), unique=True, max_size=6))
    specs: list[DomainSpec] = []
    node = 0
    for name in names:
        tier = draw(st.integers(1, 4))
        above = [spec.name for spec in specs if spec.tier > tier]
        num_nodes = draw(st.integers(0, 2))
        specs.append(
            DomainSpec(
                name=name,
                tier=tier,
                parent=draw(st.sampled_from([None, *above])),
                nodes=tuple(f"n{number}" for number in range(node, node + num_nodes)),
            )
        )
        node += num_nodes
    return build_tree(specs, tiers=TIERS)
