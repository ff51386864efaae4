"""Translates KAI's PodGroup, and workloads and pods with KAI's annotations.

Source: kai-scheduler/KAI-Scheduler, pkg/apis/scheduling/v2alpha2 and its topology guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix
from generator.manifests.pod_groups import find_group_pods, find_only_group
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import PodSet, find_workload, group_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "scheduling.run.ai"
PREFIX: Final = "kai.scheduler/"
_SUBGROUP: Final = f"{PREFIX}subgroup-name"
_SCHEDULER: Final = "kai-scheduler"


def is_present(manifests: Manifests) -> bool:
    """Return whether a file names KAI's PodGroup, annotations or scheduler."""
    return any(
        object_.group == GROUP
        or has_key_prefix(object_.field.value, PREFIX)
        or object_.spec.get("schedulerName").value == _SCHEDULER
        or object_.spec.get("template", "spec", "schedulerName").value == _SCHEDULER
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
            raise PlacementRequestError("the file", "expected a workload, a PodGroup or pods")
        first = manifests.pods[0]
        sets = group_pods(manifests.pods, _find_subgroup)
        groups = [pod_set.render_group() for pod_set in sets]
        return _parse_annotated(first, levels) | {"gang": first.name, "groups": groups}
    groups = [
        pod_set.render_group() | _parse_segments(pod_set, levels) for pod_set in workload.sets
    ]
    tiers = _parse_annotated(workload.owner, levels)
    return tiers | {
        "gang": workload.owner.name,
        "priority": workload.priority,
        "groups": groups,
    }


def _parse_annotated(owner: KubeObject, levels: LevelNames) -> dict[str, Any]:
    annotations = owner.annotations
    annotations.get(f"{PREFIX}topology").text()
    required = levels.find_tier(annotations.get(f"{PREFIX}topology-required-placement"))
    preferred = levels.find_tier(annotations.get(f"{PREFIX}topology-preferred-placement"))
    return _parse_tiers(required, preferred)


def _parse_tiers(required: str, preferred: str) -> dict[str, Any]:
    tiers: dict[str, Any] = {"required": required} if required else {}
    return tiers | {"preferred": [preferred]} if preferred else tiers


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
    request_spec = _parse_constraint(spec.get("topologyConstraint"), levels) | {"gang": group.name}
    if rows:
        return request_spec | {
            "groups": _build_group_tree(rows, {pod_set.name: pod_set for pod_set in sets}, levels)
        }
    minimum = spec.get("minMember").integer(sum(pod_set.count for pod_set in sets) or 1, minimum=1)
    groups = [pod_set.render_group() for pod_set in sets]
    if not groups:
        group.field.note("the file has none of its pods, so their resource requests are unknown")
        groups = [{"name": "pods", "count": minimum}]
    total = sum(row["count"] for row in groups)
    if len(groups) == 1:
        groups[0]["min"] = min(minimum, total)
        return request_spec | {"groups": groups}
    return request_spec | {
        "groups": [row | {"min": 0} for row in groups],
        "min": min(minimum, total),
    }


def _find_pod_sets(group: KubeObject, manifests: Manifests) -> tuple[PodSet, ...]:
    workload = find_workload(manifests)
    if workload is not None:
        return workload.sets
    pods = find_group_pods(manifests, group, "pod-group-name")
    return group_pods(pods, _find_subgroup)


def _find_subgroup(pod: KubeObject) -> str:
    return pod.labels.get(_SUBGROUP).text()


def _parse_constraint(field: Field, levels: LevelNames) -> dict[str, Any]:
    field.get("topology").text()
    required = levels.find_tier(field.get("requiredTopologyLevel"))
    return _parse_tiers(required, levels.find_tier(field.get("preferredTopologyLevel")))


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
        return group | {"min": min(minimum_field.integer(group["count"]), group["count"])} | tiers
    minimum_field.note("the file has none of its pods, so their resource requests are unknown")
    return {"name": name, "count": minimum_field.integer(1, minimum=1)} | tiers
