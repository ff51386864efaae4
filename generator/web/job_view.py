"""The jobs for the page: where gangs run, what is free, and what further gangs would get. Pure.

A gang of the page takes whole nodes: N pods, each with all that one node has of the resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from generator.jobs.cluster import SlotCluster
from generator.jobs.free_by_domain import choose_resource, list_free
from generator.jobs.gang_ranks import GangAudit, audit_gang, group_by_gang
from generator.jobs.rank_order import TreePlaces
from generator.objects.pods import BoundPod
from generator.placement.answer import Placement, describe_reason
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import parse_request
from topology.model.errors import show
from topology.model.tree import API_VERSION

MAX_GANGS: Final = 2000
MAX_SIZES: Final = 14
_MAX_VERDICTS: Final = 12
_MAX_NAME: Final = 200


def build_job_view(snapshot: Snapshot, pods: Sequence[BoundPod] | None) -> dict[str, Any]:
    """Return the jobs, ready for JSON. Nodes are numbers in tree order.

    Args:
        snapshot: the cluster; its free capacity excludes the running pods.
        pods: the pods of gangs; None: the running gangs are unknown.
    """
    resource, per_node = choose_resource(snapshot)
    cluster, places = SlotCluster(snapshot.tree, 1), TreePlaces(snapshot.tree)
    gangs = group_by_gang(pods or ())
    rows = sorted(gangs.items())[:MAX_GANGS]
    return {
        "resource": show(resource),
        "perNode": per_node,
        "free": list_free(snapshot, resource).tolist(),
        "isKnown": pods is not None,
        "numGangs": len(gangs),
        "gangs": [
            {
                "name": show(name, _MAX_NAME),
                **_locate(snapshot, cluster, [pod.node for pod in members]),
                **_render_ring(places, audit_gang(places, members)),
            }
            for name, members in rows
        ],
        "wanted": [
            _try_gang(snapshot, cluster, count, resource, per_node)
            for count in _list_sizes(snapshot)
        ]
        if per_node
        else [],
    }


def _locate(snapshot: Snapshot, cluster: SlotCluster, nodes: Sequence[str]) -> dict[str, Any]:
    """Return the nodes of a gang, the tier around them, and its domains per tier.

    No tier is around a gang with nodes outside of the tree.
    """
    num = snapshot.num_tree_nodes
    place_of = {node: snapshot.position_of.get(node, num) for node in nodes if node}
    positions = np.array(sorted(at for at in place_of.values() if at < num), dtype=np.int64)
    num_outside = len(place_of) - len(positions)
    spread = {"node": len(positions)}
    for tier in cluster.tiers:
        domains = tier.domain_of[positions]
        spread[show(tier.name)] = len(np.unique(domains[domains >= 0]))
    tiers = ("node", *snapshot.tree.tiers)
    height = cluster.find_height(positions) if len(positions) else 0
    if num_outside:
        height = len(tiers)
    return {
        "pods": len(nodes),
        "nodes": positions.tolist(),
        "numOutside": num_outside,
        "tier": show(tiers[height]) if height < len(tiers) else "cluster",
        "spread": spread,
    }


def _render_ring(places: TreePlaces, audit: GangAudit | None) -> dict[str, Any]:
    """Return the nodes of the ring of a gang by rank, and how often it leaves a domain.

    Nodes outside of the tree have no number; nothing is in the ring while the ranks are unknown.
    """
    pods = audit.world.pods if audit else ()
    return {
        "ring": [places.positions[pod.node] for pod in pods if pod.node in places.positions],
        "crossings": [
            [show(tier.tier), tier.now, tier.fewest] for tier in (audit.tiers if audit else ())
        ],
    }


def _list_sizes(snapshot: Snapshot) -> list[int]:
    """Return the sizes of gangs, in nodes: powers of two, and all nodes."""
    num = snapshot.num_tree_nodes
    sizes = [1 << power for power in range(MAX_SIZES) if 1 << power < num]
    return [*sizes[-MAX_SIZES:], num] if num else []


def _try_gang(
    snapshot: Snapshot, cluster: SlotCluster, count: int, resource: str, per_node: int
) -> dict[str, Any]:
    """Return the engine's answer for a gang of this many whole nodes."""
    group = {"name": "pods", "count": count, "request": {resource: str(per_node)}}
    spec = {"gang": "page", "preset": Preset.OPTIMAL.value, "groups": [group]}
    document = {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": spec}
    placement = place(snapshot, parse_request(document))
    nodes = [node for row in placement.assignment.values() for node in row if node]
    return {
        "count": count,
        "quantity": count * per_node,
        "isFeasible": placement.is_feasible,
        "isProved": placement.is_proved,
        "reason": show(describe_reason(placement.reason), 400) if placement.reason else "",
        **_locate(snapshot, cluster, nodes),
        "verdicts": _render_verdicts(placement),
    }


def _render_verdicts(placement: Placement) -> list[list[str]]:
    return [
        [show(row.name, _MAX_NAME), row.verdict.value, show(row.needs, 400)]
        for row in placement.domain_verdicts[:_MAX_VERDICTS]
    ]
