"""Where a running job is in the tree: its tier, its domains, what crosses them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from generator.jobs.cluster import SlotCluster, Ints
from generator.jobs.running_jobs import RunningJob, JobPod
from generator.placement.answer import Placement
from topology.model.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class Spread:
    """How far pods are apart."""

    tier: str | None
    """Of the lowest domain around them; None where no pod is in the tree."""
    domains: Mapping[str, int]
    """Per tier, bottom-up: domains that hold pods."""
    crossings: Mapping[str, int]
    """Per tier: how often a pod is in another domain than the pod before it in its group."""
    sort_key: tuple[int, ...]
    """Height, then domains from the coarsest tier down: what makes one place better."""


@dataclass(frozen=True, slots=True)
class BetterPlacement:
    """A place that is nearer together, if the job were placed now."""

    spread: Spread
    assignment: Mapping[str, Sequence[str | None]]
    num_moved: int
    """Pods that would be on another node, were equal pods exchanged at will."""
    is_proved: bool


@dataclass(frozen=True, slots=True)
class JobLocation:
    """All that is said of a running job."""

    job: RunningJob
    spread: Spread
    groups: Mapping[str, Spread]
    """Per role."""
    pod_domains: tuple[str, ...]
    """Per pod: its lowest domain, empty where there is none."""
    num_pending: int
    """Pods that are on no node."""
    unknown_nodes: tuple[str, ...]
    """Nodes with pods that the tree lacks, sorted."""
    better_placement: BetterPlacement | None = None


def locate_job(tree: TopologyTree, job: RunningJob) -> JobLocation:
    """Return where a job is; O(nodes + pods)."""
    cluster = SlotCluster(tree, 1)
    position = {name: at for at, name in enumerate(tree.nodes)}
    homes = {
        name: domain.name for domain in reversed(tree.domains) for name in tree.nodes_of(domain)
    }
    roles: dict[str, list[str]] = {}
    for pod in job.pods:
        roles.setdefault(pod.role, []).append(pod.node)
    return JobLocation(
        job=job,
        spread=_measure_spread(cluster, position, list(roles.values())),
        groups={role: _measure_spread(cluster, position, [nodes]) for role, nodes in roles.items()},
        pod_domains=tuple(homes.get(pod.node, "") for pod in job.pods),
        num_pending=sum(not pod.node for pod in job.pods),
        unknown_nodes=tuple(sorted({pod.node for pod in job.pods if pod.node} - position.keys())),
    )


def find_better_placement(
    tree: TopologyTree, job: RunningJob, placement: Placement
) -> BetterPlacement | None:
    """Return a placement of the same pods if it is nearer together than they are now."""
    if not placement.is_feasible:
        return None
    cluster = SlotCluster(tree, 1)
    position = {name: at for at, name in enumerate(tree.nodes)}
    rows = [[node or "" for node in nodes] for nodes in placement.assignment.values()]
    now, then = locate_job(tree, job).spread, _measure_spread(cluster, position, rows)
    if now.tier is not None and then.sort_key >= now.sort_key:
        return None
    return BetterPlacement(then, placement.assignment, _count_moved(job, rows), placement.is_proved)


def build_request_groups(job: RunningJob) -> list[dict[str, Any]]:
    """Return the pods as groups of a request: equal ones of a role are one group."""
    found: list[tuple[str, Mapping[str, Any], list[JobPod]]] = []
    for pod in job.pods:
        same = next(
            (row for row in found if row[0] == pod.role and row[1] == pod.request_fields), None
        )
        if same is None:
            found.append((pod.role, pod.request_fields, [pod]))
        else:
            same[2].append(pod)
    groups, names = [], set[str]()
    for role, row, pods in found:
        name = role if role not in names else f"{role}-{len(names)}"
        names.add(name)
        groups.append({"name": name, "count": len(pods)} | dict(row))
    return groups


def _measure_spread(
    cluster: SlotCluster, position: Mapping[str, int], groups: Sequence[Sequence[str]]
) -> Spread:
    ranked = [[position[node] for node in nodes if node in position] for nodes in groups]
    inside = np.array([at for row in ranked for at in row], dtype=np.int64)
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
    return sum(int(domain_of[one]) != int(domain_of[other]) for one, other in pairwise(nodes))


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


def render_job_location(found: JobLocation) -> dict[str, Any]:
    """Return the document that `toponaut where -o json` prints."""
    return {
        "job": found.job.name,
        **_render_spread(found.spread),
        "pending": found.num_pending,
        "outside": list(found.unknown_nodes),
        "groups": {role: _render_spread(spread) for role, spread in found.groups.items()},
        "pods": [
            {"name": pod.name, "group": pod.role, "node": pod.node or None, "domain": home or None}
            for pod, home in zip(found.job.pods, found.pod_domains, strict=True)
        ],
        "better": None
        if found.better_placement is None
        else _render_better_placement(found.better_placement),
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
