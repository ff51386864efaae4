"""Place a gang from Python, and draw where its pods go: python examples/draw_placement.py."""

# ruff: noqa: INP001 - a script, not a package

from __future__ import annotations

from generator.placement import NodeSpec, Placement, Snapshot, parse_request, place
from topology.model.tree import DomainSpec, TopologyTree, build_tree

LEAVES = {"leaf-1": ("n1", "n2", "n3"), "leaf-2": ("n4", "n5", "n6"), "leaf-3": ("n7", "n8")}
FREE_GPUS = {"n1": 8, "n2": 4, "n3": 8, "n4": 8, "n5": 8, "n6": 0, "n7": 8, "n8": 8}


def cluster_tree() -> TopologyTree:
    """Return three leaves below one spine."""
    leaves = [DomainSpec(name, 1, "spine", nodes) for name, nodes in LEAVES.items()]
    return build_tree([DomainSpec("spine", 2, None), *leaves], tiers=("leaf", "spine"))


def place_gang(tree: TopologyTree) -> Placement:
    """Return the placement of six pods with four GPUs each, in slices of two per leaf."""
    nodes = [
        NodeSpec(name, capacity={"gpu": 8}, free={"gpu": free}) for name, free in FREE_GPUS.items()
    ]
    document = {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "PlacementRequest",
        "spec": {
            "gang": "llama",
            "groups": [
                {
                    "name": "workers",
                    "count": 6,
                    "request": {"gpu": 4},
                    "slices": [{"size": 2, "tier": "leaf"}],
                }
            ],
        },
    }
    return place(Snapshot.from_tree(tree, nodes), parse_request(document))


def draw(tree: TopologyTree, placement: Placement) -> str:
    """Return one line per node: its free GPUs as dots, and the pods that it gets."""
    lines = []
    for domain in sorted(tree.domains, key=lambda domain: (domain.start, -domain.tier)):
        indent = "  " * (2 - domain.tier)
        lines.append(f"{indent}{domain.name}")
        for node in domain.nodes:
            pods = [
                f"{group}-{index}"
                for group, nodes in placement.assignment.items()
                for index, where in enumerate(nodes)
                if where == node
            ]
            lines.append(f"{indent}  {node} {'.' * FREE_GPUS[node]:8} {' '.join(pods)}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    topology_tree = cluster_tree()
    found = place_gang(topology_tree)
    print(draw(topology_tree, found))  # noqa: T201 - the output of the example
    print(f"within one {found.tier}; proved: {found.is_proved}")  # noqa: T201
