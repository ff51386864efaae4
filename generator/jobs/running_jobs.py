"""Running jobs: the pods of one job among the pods of a cluster, in order of their ranks. Pure.

A job is found by any of its names: the name of its pod group, of its batch object or of an owner
of its pods, alone or as NAMESPACE/NAME.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from generator.manifests.fields import ROOT, Field
from generator.manifests.pods import parse_pod_fields
from generator.manifests.resource_units import ONE_SLOT
from generator.objects.document import mapping_at
from generator.placement.cluster.nodes import RunningGang
from generator.placement.quantities import render_quantities
from topology.model.errors import ConfigError, list_some, show
from topology.model.ids import natural_key

_JOB_NAME_KEYS: Final = (
    "scheduling.k8s.io/group-name",
    "volcano.sh/job-name",
    "pod-group.scheduling.sigs.k8s.io",
    "gang.scheduling.koordinator.sh/name",
    "godel.bytedance.com/pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "kueue.x-k8s.io/pod-group-name",
    "pod-group-name",
    "batch.kubernetes.io/job-name",
    "job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "leaderworkerset.sigs.k8s.io/name",
    "ray.io/cluster",
)
"""Labels or annotations with a name of the job."""
_ROLE_KEYS: Final = (
    "volcano.sh/task-spec",
    "jobset.sigs.k8s.io/replicatedjob-name",
    "training.kubeflow.org/replica-type",
    "kai.scheduler/subgroup-name",
    "leaderworkerset.sigs.k8s.io/group-index",
)
_RANK_KEYS: Final = (
    "volcano.sh/task-index",
    "jobset.sigs.k8s.io/job-global-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "kueue.x-k8s.io/pod-group-pod-index",
    "gang.scheduling.koordinator.sh/network-topology-index",
    "batch.kubernetes.io/job-completion-index",
    "apps.kubernetes.io/pod-index",
)
_ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
_NUMBER = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
_UNKNOWN_RANK: Final = 1 << 30
_MAX_NAMES_SHOWN: Final = 6


class JobPod(NamedTuple):
    """One pod that has not ended."""

    namespace: str
    name: str
    node: str
    """Empty while the pod is pending."""
    role: str
    rank: tuple[int, ...]
    """Ranks from its labels; a huge number for a missing label."""
    request_fields: Mapping[str, Any]
    """The resources of the pod, as fields of a group in a placement request."""
    job_names: frozenset[str]
    """All names of its job."""
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
    metadata, spec, status = (mapping_at(document, key) for key in ("metadata", "spec", "status"))
    if status.get("phase") in _ENDED_PHASES:
        return None
    name = str(metadata.get("name"))
    marks = {**mapping_at(metadata, "labels"), **mapping_at(metadata, "annotations")}
    return JobPod(
        namespace=str(metadata.get("namespace") or "default"),
        name=name,
        node=str(spec.get("nodeName") or ""),
        role=next((str(marks[key]) for key in _ROLE_KEYS if key in marks), "pods"),
        rank=tuple(_parse_rank(marks.get(key)) for key in _RANK_KEYS),
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
                role=role,
                rank=(index,),
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
    return JobPod("default", name, node, "pods", (), row, frozenset(), {})


def _sort_pods(pods: Iterable[JobPod]) -> tuple[JobPod, ...]:
    return tuple(
        sorted(pods, key=lambda pod: (natural_key(pod.role), pod.rank, natural_key(pod.name)))
    )


def _find_label_values(metadata: Mapping[str, Any], marks: Mapping[str, Any]) -> Iterable[str]:
    for key in _JOB_NAME_KEYS:
        if isinstance(marks.get(key), str) and marks[key]:
            yield marks[key]
    owners = metadata.get("ownerReferences")
    for owner in owners if isinstance(owners, list) else ():
        if isinstance(owner, Mapping) and owner.get("kind") != "Node":
            yield str(owner.get("name"))
            yield f"{owner.get('kind')}.{owner.get('name')}"


def _parse_rank(value: object) -> int:
    text = str(value)
    return int(text) if _NUMBER.match(text) else _UNKNOWN_RANK
