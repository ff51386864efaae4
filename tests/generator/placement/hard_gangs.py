"""A cluster and gangs on which the exact search needs seconds."""

from __future__ import annotations

from typing import Any

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import build_snapshot
from generator.placement.request import PlacementRequest, parse_request
from topology.model.tree import API_VERSION, DomainSpec, build_tree

_TREE = build_tree(
    [
        *(
            DomainSpec(
                f"leaf-{pod}-{leaf}",
                1,
                f"spine-{pod}",
                nodes=tuple(f"node-{pod}-{leaf}-{at:02}" for at in range(16)),
            )
            for pod in range(2)
            for leaf in range(8)
        ),
        *(DomainSpec(f"spine-{pod}", 2, "core") for pod in range(2)),
        DomainSpec("core", 3, None),
    ],
    tiers=("leaf", "spine", "core"),
)


def _free(at: int) -> NodeSpec:
    """Return a node of which some is used, as everywhere in a cluster that runs."""
    full = {"pods": 110, "nvidia.com/gpu": 8, "memory": 512}
    left = {"pods": 110, "nvidia.com/gpu": at * 7 % 9, "memory": at * 131 % 513}
    return NodeSpec(_TREE.nodes[at], full, free=left)


HARD_CLUSTER = build_snapshot(_TREE, {node: _free(at) for at, node in enumerate(_TREE.nodes)})


def hard_request(
    gang: str = "hard",
    *,
    num_groups: int = 12,
    **spec: Any,  # noqa: ANN401 - any field
) -> PlacementRequest:
    """Return a gang of groups that all differ."""
    groups = [
        {
            "name": f"group-{at}",
            "count": 14 + at,
            "request": {"nvidia.com/gpu": 1 + at % 4, "memory": 11 + at * 29 % 90},
        }
        for at in range(num_groups)
    ]
    document = {
        "apiVersion": API_VERSION,
        "kind": "PlacementRequest",
        "spec": {"gang": gang, "groups": groups, **spec},
    }
    return parse_request(document)
