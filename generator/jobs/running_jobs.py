"""Running jobs: the pods of one job among those of a cluster, and where they are in the tree. Pure.

A job is found by any of its names: the name of its pod group, of its batch object or of an owner
of its pods, alone or as NAMESPACE/NAME. Its pods are in order of their ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from generator.jobs.cluster import Ints, SlotCluster
from generator.manifests.fields import ROOT, Field
from generator.manifests.pods import parse_pod_fields
from generator.manifests.resource_units import ONE_SLOT
from generator.objects.document import mapping_at, rows_at
from generator.objects.pod_ranks import UNRANKED, PodRank, parse_pod_rank
from generator.objects.pods import GANG_KEYS, has_ended
from generator.placement.answer import Placement
from generator.placement.cluster.nodes import RunningGang
from generator.placement.quantities import render_quantities
from topology.model.errors import ConfigError, list_some, show
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

_JOB_NAME_KEYS: Final = (
    *GANG_KEYS,
    "volcano.sh/job-name",
    "gang.scheduling.koordinator.sh/name",
    "godel.bytedance.com/pod-group-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
)
"""Labels or annotations with a name of the job."""
_MAX_NAMES_SHOWN: Final = 6


class JobPod(NamedTuple):
    """One pod that has not ended."""

    namespace: str
    name: str
    node: str
    """Empty while the pod is pending."""
    rank: PodRank
    request_fields: Mapping[str, Any]
    """The resources of the pod, as fields of a group in a placement request."""
    job_names: frozenset[str]
    """All names of the pod's job."""
    document: Mapping[str, Any]
    """The decoded Pod."""


@dataclass(frozen=True, slots=True)
class RunningJob:
    """The pods of one job, and all other known pods."""

    name: str
    pods: tuple[JobPod, ...]
    """Sorted by role, then by rank, then by name."""
    other_pods: tuple[JobPod, ...] = ()
    """All other known pods, in any order."""


def parse_job_pod(document: Mapping[str, Any]) -> JobPod | None:
    """Parse a decoded Pod; return None if it has ended.

    Raises:
        PlacementRequestError: a field that the placement needs is malformed.
    """
    metadata, spec = mapping_at(document, "metadata"), mapping_at(document, "spec")
    if has_ended(document):
        return None
    name = str(metadata.get("name"))
    marks = {**mapping_at(metadata, "labels"), **mapping_at(metadata, "annotations")}
    return JobPod(
        namespace=str(metadata.get("namespace") or "default"),
        name=name,
        node=str(spec.get("nodeName") or ""),
        rank=parse_pod_rank(document),
        request_fields=_parse_request_fields(Field(document, f"Pod '{show(name)}'{ROOT}")),
        job_names=frozenset(_find_label_values(metadata, marks)),
        document=document,
    )


def find_job(name: str, pods: Iterable[JobPod]) -> RunningJob:
    """Return the job with a name among pods.

    Raises:
        ConfigError: no job has the name, or jobs in several namespaces have it.
    """
    all_pods = list(pods)
    space, _, job_name = name.rpartition("/")
    own = [pod for pod in all_pods if job_name in pod.job_names and space in ("", pod.namespace)]
    spaces = sorted({pod.namespace for pod in own})
    if not own:
        known = sorted({job for pod in all_pods for job in pod.job_names}, key=natural_key)
        shown = list_some((show(job, 64) for job in known), _MAX_NAMES_SHOWN) or "none"
        raise ConfigError(f"no pod belongs to job '{show(name)}'; names of jobs: {shown}")
    if len(spaces) > 1:
        shown = " or ".join(f"{show(namespace, 64)}/{show(job_name)}" for namespace in spaces)
        raise ConfigError(f"job '{show(name)}' is in several namespaces; use {shown}")
    own_pods = {id(pod) for pod in own}
    others = tuple(pod for pod in all_pods if id(pod) not in own_pods)
    return RunningJob(f"{spaces[0]}/{job_name}", _sort_pods(own), others)


def build_job_from_nodes(name: str, nodes: Mapping[str, str]) -> RunningJob:
    """Return a job from the nodes of its pods: one slot per pod, ranks in order of names."""
    return RunningJob(name, _sort_pods([_build_slot_pod(pod, node) for pod, node in nodes.items()]))


def find_job_in_gangs(name: str, gangs: Sequence[RunningGang]) -> RunningJob:
    """Return the gang with a name as a job; the ranks follow the order of its list of pods.

    Raises:
        ConfigError: there is no such gang.
    """
    pods: dict[bool, list[JobPod]] = {True: [], False: []}
    for gang in gangs:
        for index, row in enumerate(gang.pods):
            role = row.group or "pods"
            pod = _build_slot_pod(f"{gang.gang}-{role}", row.node)._replace(
                rank=PodRank(role, (index,)),
                request_fields={"request": render_quantities(row.request.items())},
                job_names=frozenset({gang.gang}),
            )
            pods[gang.gang == name].extend([pod] * row.count)
    if not pods[True]:
        find_job(name, pods[False])
    return RunningJob(name, _sort_pods(pods[True]), tuple(pods[False]))


def _parse_request_fields(template: Field) -> dict[str, Any]:
    row = parse_pod_fields(template)
    return row if row["request"] else row | {"request": dict(ONE_SLOT)}


def _build_slot_pod(name: str, node: str) -> JobPod:
    row = {"request": dict(ONE_SLOT)}
    return JobPod("default", name, node, UNRANKED, row, frozenset(), {})


def _sort_pods(pods: Iterable[JobPod]) -> tuple[JobPod, ...]:
    return tuple(
        sorted(
            pods,
            key=lambda pod: (
                natural_key(pod.rank.role),
                pod.rank.indices,
                natural_key(pod.name),
            ),
        )
    )


def _find_label_values(metadata: Mapping[str, Any], marks: Mapping[str, Any]) -> Iterable[str]:
    for key in _JOB_NAME_KEYS:
        if isinstance(marks.get(key), str) and marks[key]:
            yield marks[key]
    for owner in rows_at(metadata, "ownerReferences"):
        if owner.get("kind") != "Node":
            yield str(owner.get("name"))
            yield f"{owner.get('kind')}.{owner.get('name')}"


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
    domain_of_node = tree.lowest_domains()
    roles: dict[str, list[str]] = {}
    for pod in job.pods:
        roles.setdefault(pod.rank.role, []).append(pod.node)
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
            (row for row in equal_pods if row[0] == pod.rank.role and row[1] == pod.request_fields),
            None,
        )
        if same is None:
            equal_pods.append((pod.rank.role, pod.request_fields, [pod]))
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
                "group": pod.rank.role,
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
