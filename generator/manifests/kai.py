"""KAI's PodGroup, and workloads and pods with its annotations.

Source: kai-scheduler/KAI-Scheduler, pkg/apis/scheduling/v2alpha2 and its topology guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests, KubeObject, has_key_prefix
from generator.manifests.pod_groups import find_only_group, find_group_pods
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import PodSet, find_workload, group_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "scheduling.run.ai"
PREFIX: Final = "kai.scheduler/"
_SUBGROUP: Final = f"{PREFIX}subgroup-name"
_SCHEDULER: Final = "kai-scheduler"


def is_present(manifests: Manifests) -> bool:
    """Return whether KAI's PodGroup, annotations or scheduler are named."""
    return any(
        one.group == GROUP
        or has_key_prefix(one.field.value, PREFIX)
        or one.spec.get("schedulerName").value == _SCHEDULER
        or one.spec.get("template", "spec", "schedulerName").value == _SCHEDULER
        for one in manifests.objects
        if isinstance(one.spec.value, dict) and one.kind != "Topology"
    )


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a field that counts is malformed.
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
        groups = [one.render_group() for one in sets]
        return _parse_annotated(first, levels) | {"gang": first.name, "groups": groups}
    groups = [one.render_group() | _parse_segments(one, levels) for one in workload.sets]
    wish = _parse_annotated(workload.owner, levels)
    return wish | {
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
    found: dict[str, Any] = {"required": required} if required else {}
    return found | {"preferred": [preferred]} if preferred else found


def _parse_segments(pods: PodSet, levels: LevelNames) -> dict[str, Any]:
    """Return segments as slices of consecutive pods; the last may be short."""
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
    found = _parse_constraint(spec.get("topologyConstraint"), levels) | {"gang": group.name}
    if rows:
        return found | {"groups": _build_group_tree(rows, {one.name: one for one in sets}, levels)}
    least = spec.get("minMember").integer(sum(one.count for one in sets) or 1, minimum=1)
    groups = [one.render_group() for one in sets]
    if not groups:
        group.field.note("no pod of it is in the file: what its pods ask for is not known")
        groups = [{"name": "pods", "count": least}]
    total = sum(row["count"] for row in groups)
    if len(groups) == 1:
        groups[0]["min"] = min(least, total)
        return found | {"groups": groups}
    return found | {"groups": [row | {"min": 0} for row in groups], "min": min(least, total)}


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
    above = dict(zip(names, parents, strict=True))
    for row, name in zip(rows, names, strict=True):
        if not name or names.count(name) > 1:
            raise row.get("name").build_error("expected a name of its own")
        if above[name] and (above[name] not in above or _is_cycle(name, above)):
            raise row.get("parent").build_error("expected a subgroup above")
    made: dict[str, dict[str, Any]] = {}
    for row, name in zip(rows, names, strict=True):
        made[name] = _build_subgroup(row, name, sets, levels, is_leaf=name not in parents)
    for name, parent in zip(names, parents, strict=True):
        if parent:
            made[parent].setdefault("children", []).append(made[name])
    unknown = sorted(sets.keys() - made.keys())
    if unknown:
        raise PlacementRequestError(
            sets[unknown[0]].template.title, f"no subgroup is named '{show(unknown[0])}'"
        )
    return [made[name] for name, parent in zip(names, parents, strict=True) if not parent]


def _is_cycle(name: str, parents: dict[str, str]) -> bool:
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        name = parents.get(name, "")
    return bool(name)


def _build_subgroup(
    row: Field, name: str, sets: dict[str, PodSet], levels: LevelNames, *, is_leaf: bool
) -> dict[str, Any]:
    wish = _parse_constraint(row.get("topologyConstraint"), levels)
    if not is_leaf:
        return {"name": name} | wish
    least = row.get("minMember")
    if name in sets:
        found = sets[name].render_group()
        return found | {"min": min(least.integer(found["count"]), found["count"])} | wish
    least.note("no pod of it is in the file: what its pods ask for is not known")
    return {"name": name, "count": least.integer(1, minimum=1)} | wish
