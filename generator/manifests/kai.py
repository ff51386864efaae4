"""Translates KAI's PodGroup, and workloads and pods with KAI's annotations.

Source: kai-scheduler/KAI-Scheduler, pkg/apis/scheduling/v2alpha2 and its topology guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.core_workloads import limit_each_pod
from generator.manifests.kinds.object_fields import list_object_fields
from generator.manifests.kinds.pod_sets import (
    Minimum,
    PodSet,
    Workload,
    build_unknown_pods,
    cap_minimum,
    share_minimum,
)
from generator.manifests.kinds.ray import GROUP as RAY
from generator.manifests.kinds.ray import find_minimums
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix, names_scheduler
from generator.manifests.tier_names import LevelNames, build_bounds
from generator.manifests.workloads import (
    describe_missing,
    find_group_pods,
    find_only_group,
    find_workload,
    group_pods,
    mark_equal_annotations,
)
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "scheduling.run.ai"
PREFIX: Final = "kai.scheduler/"
_SUBGROUP: Final = f"{PREFIX}subgroup-name"
_MIN_MEMBER: Final = f"{PREFIX}batch-min-member"
_IN_ORDER: Final = "InOrder"
_SCHEDULERS: Final = frozenset({"kai-scheduler", "runai-scheduler"})
FIELDS: Final[dict[tuple[str, str], FieldTable]] = {
    (GROUP, "PodGroup"): list_object_fields(
        {
            "backoffLimit": "is not read by KAI",
            "completions": "is not read by KAI",
            "markUnschedulable": "says how a failure is reported",
            "parallelism": "is not read by KAI",
            "preemptibility": "says when running pods are evicted",
            "preemptionDelay": "says when the pods start, not where",
            "queue": "chooses a quota; the answer is for the nodes that you give",
            "schedulingBackoff": "says how a failure is reported",
            "stalenessGracePeriod": "says when running pods are evicted",
        }
    )
}
"""A class of priority may matter."""


def is_present(manifests: Manifests) -> bool:
    """Return whether a file names KAI's PodGroup, annotations or scheduler."""
    return any(
        object_.group == GROUP
        or has_key_prefix(object_.field.value, PREFIX)
        or names_scheduler(object_.field.value, _SCHEDULERS)
        for object_ in manifests.objects
        if isinstance(object_.spec.value, dict) and object_.kind != "Topology"
    )


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a required field is malformed.
    """
    group = find_only_group(manifests, GROUP)
    spec = _parse_workload(manifests) if group is None else _parse_pod_group(group, manifests)
    return {"preset": Preset.KAI.value} | spec


def _parse_workload(manifests: Manifests) -> dict[str, Any]:
    workload = find_workload(manifests)
    levels = manifests.levels
    if workload is None:
        if not manifests.pods:
            raise describe_missing(manifests, "a workload, a PodGroup or pods")
        first = manifests.pods[0]
        mark_equal_annotations(manifests.pods, PREFIX)
        sets = group_pods(manifests.pods, _find_subgroup)
        groups = [pod_set.render_group() for pod_set in sets]
        spec = {"gang": first.name, "priority": Workload(first, sets).priority, "groups": groups}
        return _parse_annotated(first.annotations, levels) | spec
    gang = replace(workload, sets=tuple(row for row in workload.sets if not row.joins_later))
    groups = [
        pods.render_group() | _parse_set_tiers(gang.owner, pods, levels) for pods in gang.sets
    ]
    spec = {"gang": gang.owner.name, "priority": gang.priority, "groups": groups}
    tiers = _parse_annotated(gang.owner.annotations, levels)
    alone = limit_each_pod(gang.owner, tiers)
    if alone is not None:
        return spec | {"groups": [row | alone for row in groups]}
    return tiers | spec | _parse_minimum(gang, groups)


def _parse_minimum(gang: Workload, groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Set the minimums of the groups; return that of the gang.

    Source: pkg/podgrouper, the plugins for jobs, jobset, kubeflow and ray.
    """
    field = gang.owner.annotations.get(_MIN_MEMBER)
    if gang.owner.kind == "JobSet":
        return _parse_job_set_minimum(gang, groups, field)
    if gang.owner.group == RAY:
        minimums = find_minimums(gang.owner)
        gang = replace(
            gang, sets=tuple(replace(row, minimum=minimums.get(row.name)) for row in gang.sets)
        )
    elif gang.owner.group in {"apps", "batch"}:
        count = field.integer_from_text() if gang.owner.kind == "Job" else None
        why = "KAI starts each pod as it fits; the answer is for all pods"
        if count is not None:
            gang = replace(gang, minimum=Minimum(count, field))
        elif gang.owner.kind == "Job":
            field.note(f"without it {why}")
        else:
            gang.owner.spec.note(why)
    return gang.apply_minimum(groups)


def _parse_job_set_minimum(
    gang: Workload, groups: Sequence[dict[str, Any]], field: Field
) -> dict[str, Any]:
    """Return the groups with the minimum of complete groups that the annotation sets.

    Without the annotation, one group is enough if the jobs start one after the other.
    """
    for row, pods in zip(groups, gang.sets, strict=True):
        least = (pods.job_annotations or pods.annotations).get(_MIN_MEMBER).integer_from_text()
        if least is not None and pods.replica_size:
            row["min"] = pods.count // pods.replica_size * min(least, pods.replica_size)
    order = gang.owner.spec.get("startupPolicy", "startupPolicyOrder").text()
    count = field.integer_from_text() or (1 if order == _IN_ORDER else len(groups))
    if count >= len(groups):
        return {}
    return {"groups": [{"name": gang.owner.name, "children": list(groups), "min": count}]}


def _parse_set_tiers(owner: KubeObject, pods: PodSet, levels: LevelNames) -> dict[str, Any]:
    """Return the fields with the tiers of a set, which bind each job, Ray group or segment."""
    if owner.group == RAY:
        return _parse_annotated(pods.annotations, levels)
    if pods.job_annotations is not None and pods.replica_size:
        tiers = _parse_annotated(pods.job_annotations, levels)
        if "required" in tiers:
            return {"slices": [{"size": pods.replica_size, "tier": tiers["required"]}]}
    if owner.kind == "LeaderWorkerSet" and not pods.is_leading:
        _warn_of_leader(owner, pods)
    return _parse_segments(pods, levels)


def _warn_of_leader(owner: KubeObject, workers: PodSet) -> None:
    """Warn that KAI counts the leader into the first segment, and Toponaut does not."""
    size = workers.annotations.get(f"{PREFIX}segment-size")
    if size.exists and owner.spec.get("leaderWorkerTemplate", "leaderTemplate").exists:
        size.warn("KAI counts the leader into the first segment, and Toponaut does not")


def _parse_annotated(annotations: Field, levels: LevelNames) -> dict[str, Any]:
    annotations.get(f"{PREFIX}topology").text()
    required = levels.find_tier(annotations.get(f"{PREFIX}topology-required-placement"))
    preferred = levels.find_tier(annotations.get(f"{PREFIX}topology-preferred-placement"))
    return build_bounds(required, [preferred])


def _parse_segments(pods: PodSet, levels: LevelNames) -> dict[str, Any]:
    """Return segments as slices of consecutive pods; the last slice may be short."""
    size = pods.annotations.get(f"{PREFIX}segment-size").integer_from_text()
    if size is None:
        return {}
    required = levels.find_tier(
        pods.annotations.get(f"{PREFIX}segment-topology-required-placement")
    )
    levels.find_tier(pods.annotations.get(f"{PREFIX}segment-topology-preferred-placement"))
    layer: dict[str, Any] = {"size": size, "remainder": "short", "indexed": True}
    return {"slices": [layer | ({"tier": required} if required else {})]}


def _parse_pod_group(group: KubeObject, manifests: Manifests) -> dict[str, Any]:
    sets = _find_pod_sets(group, manifests)
    spec, levels = group.spec, manifests.levels
    rows = spec.get("subGroups").items()
    request_spec = _parse_constraint(spec.get("topologyConstraint"), levels) | {
        "gang": group.name,
        "priority": Workload(group, sets).priority,
    }
    if rows:
        groups = _build_group_tree(rows, {pod_set.name: pod_set for pod_set in sets}, levels)
        return request_spec | {"groups": _require_subgroups(group, groups)}
    minimum = spec.get("minMember").integer(1)
    groups = [pod_set.render_group() for pod_set in sets]
    groups = groups or [build_unknown_pods(group.field, minimum)]
    least = cap_minimum(spec.get("minMember"), minimum, sum(row["count"] for row in groups))
    return request_spec | share_minimum(groups, least)


def _require_subgroups(group: KubeObject, groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outermost subgroups, or one group of them if some may be left out."""
    if group.spec.get("minMember").optional_integer() is not None:
        group.spec.get("minMember").note("KAI reads the minimums of the subgroups instead")
    count = group.spec.get("minSubGroup").integer(len(groups))
    if count >= len(groups):
        return groups
    return [{"name": group.name, "children": groups, "min": count}]


def _find_pod_sets(group: KubeObject, manifests: Manifests) -> tuple[PodSet, ...]:
    workload = find_workload(manifests)
    if workload is not None:
        workload.note_unused_minimum("the PodGroup says the minimum of the gang")
        return workload.sets
    pods = find_group_pods(manifests, group, "pod-group-name")
    return group_pods(pods, _find_subgroup)


def _find_subgroup(pod: KubeObject) -> str:
    return pod.labels.get(_SUBGROUP).text()


def _parse_constraint(field: Field, levels: LevelNames) -> dict[str, Any]:
    field.get("topology").text()
    required = levels.find_tier(field.get("requiredTopologyLevel"))
    return build_bounds(required, [levels.find_tier(field.get("preferredTopologyLevel"))])


def _build_group_tree(
    rows: Sequence[Field], sets: dict[str, PodSet], levels: LevelNames
) -> list[dict[str, Any]]:
    """Return the subgroups as a tree of groups; each leaf has the pods that name it."""
    names = [row.get("name").text() for row in rows]
    parents = [row.get("parent").text() for row in rows]
    parent_of = dict(zip(names, parents, strict=True))
    for row, name in zip(rows, names, strict=True):
        if not name or names.count(name) > 1:
            raise row.get("name").build_error("expected a unique name")
        if parent_of[name] and (parent_of[name] not in parent_of or _is_cycle(name, parent_of)):
            raise row.get("parent").build_error("expected the name of a parent subgroup")
    children_of: dict[str, dict[str, Any]] = {}
    for row, name in zip(rows, names, strict=True):
        children_of[name] = _build_subgroup(row, name, sets, levels, is_leaf=name not in parents)
    for name, parent in zip(names, parents, strict=True):
        if parent:
            children_of[parent].setdefault("children", []).append(children_of[name])
    for name, row in zip(names, rows, strict=True):
        children = children_of[name].get("children", ())
        if children:
            least = row.get("minSubGroup").integer(len(children))
            children_of[name]["min"] = min(least, len(children))
    unknown = sorted(sets.keys() - children_of.keys())
    if unknown:
        raise PlacementRequestError(
            sets[unknown[0]].template.title, f"no subgroup is named '{show(unknown[0])}'"
        )
    return [children_of[name] for name, parent in zip(names, parents, strict=True) if not parent]


def _is_cycle(name: str, parents: dict[str, str]) -> bool:
    visited: set[str] = set()
    while name and name not in visited:
        visited.add(name)
        name = parents.get(name, "")
    return bool(name)


def _build_subgroup(
    row: Field, name: str, sets: dict[str, PodSet], levels: LevelNames, *, is_leaf: bool
) -> dict[str, Any]:
    tiers = _parse_constraint(row.get("topologyConstraint"), levels)
    if not is_leaf:
        return {"name": name} | tiers
    minimum_field = row.get("minMember")
    if name in sets:
        group = sets[name].render_group()
        least = max(minimum_field.integer(1), 1)
        return group | {"min": cap_minimum(minimum_field, least, group["count"])} | tiers
    return build_unknown_pods(minimum_field, minimum_field.integer(1, minimum=1), name) | tiers
