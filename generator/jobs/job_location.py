"""The location of a running job in the tree: its tier, its domains, and crossings. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from generator.jobs.cluster import Ints, SlotCluster
from generator.jobs.running_jobs import JobPod, RunningJob
from generator.placement.answer import Placement
from topology.model.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class Spread:
    """How far apart pods are."""

    tier: str | None
    """Tier of the lowest domain around the pods; None if no pod is in the tree."""
    domains: Mapping[str, int]
    """Per tier, lowest first, the number of domains with pods."""
    crossings: Mapping[str, int]
    """Per tier, how often a pod is in another domain than the previous pod of its group."""
    sort_key: tuple[int, ...]
    """Height, then numbers of domains from the highest tier down; smaller is better."""


@dataclass(frozen=True, slots=True)
class BetterPlacement:
    """A placement with a smaller spread, if the job were placed now."""

    spread: Spread
    assignment: Mapping[str, Sequence[str | None]]
    num_moved: int
    """Pods on another node, if equal pods are interchangeable."""
    is_proved: bool
    """Whether the placement is proved optimal."""


@dataclass(frozen=True, slots=True)
class JobLocation:
    """The location of a running job, of its groups and of its pods."""

    job: RunningJob
    spread: Spread
    groups: Mapping[str, Spread]
    """Spread per role."""
    pod_domains: tuple[str, ...]
    """Per pod, its lowest domain; empty without one."""
    num_pending: int
    """Pods without a node."""
    unknown_nodes: tuple[str, ...]
    """Nodes with pods that are not in the tree, sorted."""
    better_placement: BetterPlacement | None = None


def locate_job(tree: TopologyTree, job: RunningJob) -> JobLocation:
    """Return the location of a job; O(nodes + pods)."""
    cluster = SlotCluster(tree, 1)
    position = {name: index for index, name in enumerate(tree.nodes)}
    domain_of_node = {
        name: domain.name for domain in reversed(tree.domains) for name in tree.nodes_of(domain)
    }
    roles: dict[str, list[str]] = {}
    for pod in job.pods:
        roles.setdefault(pod.role, []).append(pod.node)
    return JobLocation(
        job=job,
        spread=_measure_spread(cluster, position, list(roles.values())),
        groups={role: _measure_spread(cluster, position, [nodes]) for role, nodes in roles.items()},
        pod_domains=tuple(domain_of_node.get(pod.node, "") for pod in job.pods),
        num_pending=sum(not pod.node for pod in job.pods),
        unknown_nodes=tuple(sorted({pod.node for pod in job.pods if pod.node} - position.keys())),
    )


def find_better_placement(
    tree: TopologyTree, job: RunningJob, placement: Placement
) -> BetterPlacement | None:
    """Return a placement of the same pods, None unless its spread is smaller than the present."""
    if not placement.is_feasible:
        return None
    cluster = SlotCluster(tree, 1)
    position = {name: index for index, name in enumerate(tree.nodes)}
    rows = [[node or "" for node in nodes] for nodes in placement.assignment.values()]
    present, proposed = locate_job(tree, job).spread, _measure_spread(cluster, position, rows)
    if present.tier is not None and proposed.sort_key >= present.sort_key:
        return None
    return BetterPlacement(
        proposed, placement.assignment, _count_moved(job, rows), placement.is_proved
    )


def build_request_groups(job: RunningJob) -> list[dict[str, Any]]:
    """Return the pods as groups of a placement request: equal pods of a role are one group."""
    equal_pods: list[tuple[str, Mapping[str, Any], list[JobPod]]] = []
    for pod in job.pods:
        same = next(
            (row for row in equal_pods if row[0] == pod.role and row[1] == pod.request_fields), None
        )
        if same is None:
            equal_pods.append((pod.role, pod.request_fields, [pod]))
        else:
            same[2].append(pod)
    groups, names = [], set[str]()
    for role, row, pods in equal_pods:
        name = role if role not in names else f"{role}-{len(names)}"
        names.add(name)
        groups.append({"name": name, "count": len(pods)} | dict(row))
    return groups


def _measure_spread(
    cluster: SlotCluster, position: Mapping[str, int], groups: Sequence[Sequence[str]]
) -> Spread:
    ranked = [[position[node] for node in nodes if node in position] for nodes in groups]
    inside = np.array([index for row in ranked for index in row], dtype=np.int64)
    if not len(inside):
        return Spread(None, {}, {}, ())
    height = cluster.find_height(inside)
    domains = {
        tier.name: len(np.unique(tier.domain_of[inside][tier.domain_of[inside] >= 0]))
        for tier in cluster.tiers
    }
    domains = {"node": len(np.unique(inside))} | domains
    return Spread(
        tier=cluster.tier_name(height),
        domains=domains,
        crossings={
            tier.name: sum(_count_crossings(tier.domain_of, row) for row in ranked)
            for tier in cluster.tiers
        },
        sort_key=(height, *reversed(domains.values())),
    )


def _count_crossings(domain_of: Ints, nodes: Sequence[int]) -> int:
    return sum(
        int(domain_of[previous]) != int(domain_of[following])
        for previous, following in pairwise(nodes)
    )


def _count_moved(job: RunningJob, rows: Sequence[Sequence[str]]) -> int:
    now: dict[str, int] = {}
    for pod in job.pods:
        now[pod.node] = now.get(pod.node, 0) + 1
    moved = 0
    for node in (node for row in rows for node in row):
        if now.get(node, 0):
            now[node] -= 1
        else:
            moved += 1
    return moved


def render_job_location(location: JobLocation) -> dict[str, Any]:
    """Return the document that `toponaut where -o json` prints."""
    return {
        "job": location.job.name,
        **_render_spread(location.spread),
        "pending": location.num_pending,
        "outside": list(location.unknown_nodes),
        "groups": {role: _render_spread(spread) for role, spread in location.groups.items()},
        "pods": [
            {
                "name": pod.name,
                "group": pod.role,
                "node": pod.node or None,
                "domain": domain or None,
            }
            for pod, domain in zip(location.job.pods, location.pod_domains, strict=True)
        ],
        "better": None
        if location.better_placement is None
        else _render_better_placement(location.better_placement),
    }


def _render_spread(spread: Spread) -> dict[str, Any]:
    return {
        "tier": spread.tier,
        "domains": dict(spread.domains),
        "crossings": dict(spread.crossings),
    }


def _render_better_placement(better: BetterPlacement) -> dict[str, Any]:
    return {
        **_render_spread(better.spread),
        "assignment": {role: list(nodes) for role, nodes in better.assignment.items()},
        "moved": better.num_moved,
        "proved": better.is_proved,
    }
