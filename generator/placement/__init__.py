"""Choose the nodes of a gang: requests, cluster snapshots, presets, the engine and batches.

Pure: no I/O, no logging, no random source; a clock is passed in.

`wire`: the pydantic models of a PlacementRequest document.
`groups`: groups of pods and sets of groups; flattens nested groups.
`request`: the frozen request, and the parser of its document.
`presets`: the order of the objective vector of each scheduler system, and how it tries domains
    and fills nodes, as data.
`quantities`: Kubernetes quantities, and the units in which the engine counts each resource.
`node_selection`: which nodes a pod may use: labels, names and taints.
`budget`: the steps and the deadline of a query.
`answer`: the placement, the reason, verdicts and alternatives, and their JSON form.
`engine`: answers one request on a snapshot.
`preset_comparison`: answers one request under several presets.
`cluster`: the snapshot of a cluster, and how many pods fit each node and domain.
`problem`: a request resolved against a snapshot: parts, rules, objective, eviction.
`solve`: the exact search, the exact count for equal parts, and the greedy fallback.
`emulation`: placement in the steps that another scheduler takes.
`explain`: reasons, verdicts per domain, and changes that make an infeasible request feasible.
`batch`: places several gangs together.

From Python, without I/O:

    from generator.placement import NodeSpec, Snapshot, parse_request, place

    placement = place(Snapshot.from_tree(tree, nodes), parse_request(document))

May import `topology`, `runtime.lazy_names`, numpy and pydantic. Inside: `batch` -> `engine` ->
`explain`, `emulation` -> `solve` -> `problem` -> `cluster` -> `request`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.lazy_names import load_when_used

if TYPE_CHECKING:
    from generator.placement.answer import Placement, Reason
    from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
    from generator.placement.cluster.snapshot import Snapshot
    from generator.placement.engine import place
    from generator.placement.request import PlacementRequest, parse_request

__all__ = [
    "NodeSpec",
    "Placement",
    "PlacementRequest",
    "Reason",
    "RunningGang",
    "RunningPods",
    "Snapshot",
    "parse_request",
    "place",
]

_MODULE_OF = {
    "NodeSpec": "cluster.nodes",
    "Placement": "answer",
    "PlacementRequest": "request",
    "Reason": "answer",
    "RunningGang": "cluster.nodes",
    "RunningPods": "cluster.nodes",
    "Snapshot": "cluster.snapshot",
    "parse_request": "request",
    "place": "engine",
}

# Its modules need numpy or pydantic.
__getattr__ = load_when_used(__name__, _MODULE_OF)
