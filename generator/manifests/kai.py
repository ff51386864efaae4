"""KAI's PodGroup, and workloads and pods with its annotations.

Source: kai-scheduler/KAI-Scheduler, pkg/apis/scheduling/v2alpha2 and its topology guide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests, Object, mentions
from generator.manifests.pod_groups import lone_group, pods_of_group
from generator.manifests.tier_names import Levels
from generator.manifests.workloads import PodSet, find_workload, sets_of_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "scheduling.run.ai"
PREFIX: Final = "kai.scheduler/"
_SUBGROUP: Final = f"{PREFIX}subgroup-name"
_SCHEDULER: Final = "kai-scheduler"


def is_mine(manifests: Manifests) -> bool:
    """Return whether KAI's PodGroup, annotations or scheduler are named."""
    return any(
        one.group == GROUP
        or mentions(one.field.value, PREFIX)
        or one.spec.at("schedulerName").value == _SCHEDULER
        or one.spec.at("template", "spec", "schedulerName").value == _SCHEDULER
        for one in manifests.objects
        if isinstance(one.spec.value, dict) and one.kind != "Topology"
    )


def read(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a field that counts is malformed.
    """
    group = lone_group(manifests, GROUP)
    spec = _workload(manifests) if group is None else _pod_group(group, manifests)
    return {"preset": Preset.KAI.value} | spec


def _workload(manifests: Manifests) -> dict[str, Any]:
    workload = find_workload(manifests)
    levels = manifests.levels
    if workload is None:
        if not manifests.pods:
            raise PlacementRequestError("the file", "expected a workload, a PodGroup or pods")
        first = manifests.pods[0]
        sets = sets_of_pods(manifests.pods, _subgroup_of)
        groups = [one.row() for one in sets]
        return _annotated(first, levels) | {"gang": first.name, "groups": groups}
    groups = [one.row() | _segments(one, levels) for one in workload.sets]
    wish = _annotated(workload.owner, levels)
    return wish | {
        "gang": workload.owner.name,
        "priority": workload.priority,
        "groups": groups,
    }


def _annotated(owner: Object, levels: Levels) -> dict[str, Any]:
    annotations = owner.annotations
    annotations.at(f"{PREFIX}topology").text()
    required = levels.tier(annotations.at(f"{PREFIX}topology-required-placement"))
    preferred = levels.tier(annotations.at(f"{PREFIX}topology-preferred-placement"))
    return _tiers(required, preferred)


def _tiers(required: str, preferred: str) -> dict[str, Any]:
    found: dict[str, Any] = {"required": required} if required else {}
    return found | {"preferred": [preferred]} if preferred else found


def _segments(pods: PodSet, levels: Levels) -> dict[str, Any]:
    """Return segments as slices of consecutive pods; the last may be short."""
    size = pods.annotations.at(f"{PREFIX}segment-size").numeral()
    if size is None:
        return {}
    required = levels.tier(pods.annotations.at(f"{PREFIX}segment-topology-required-placement"))
    levels.tier(pods.annotations.at(f"{PREFIX}segment-topology-preferred-placement"))
    layer: dict[str, Any] = {"size": size, "remainder": "short", "indexed": True}
    return {"slices": [layer | ({"tier": required} if required else {})]}


def _pod_group(group: Object, manifests: Manifests) -> dict[str, Any]:
    sets = _sets(group, manifests)
    spec, levels = group.spec, manifests.levels
    rows = spec.at("subGroups").items()
    found = _constraint(spec.at("topologyConstraint"), levels) | {"gang": group.name}
    if rows:
        return found | {"groups": _tree(rows, {one.name: one for one in sets}, levels)}
    least = spec.at("minMember").whole(sum(one.count for one in sets) or 1, least=1)
    groups = [one.row() for one in sets]
    if not groups:
        group.field.note("no pod of it is in the file: what its pods ask for is not known")
        groups = [{"name": "pods", "count": least}]
    total = sum(row["count"] for row in groups)
    if len(groups) == 1:
        groups[0]["min"] = min(least, total)
        return found | {"groups": groups}
    return found | {"groups": [row | {"min": 0} for row in groups], "min": min(least, total)}


def _sets(group: Object, manifests: Manifests) -> tuple[PodSet, ...]:
    workload = find_workload(manifests)
    if workload is not None:
        return workload.sets
    pods = pods_of_group(manifests, group, "pod-group-name")
    return sets_of_pods(pods, _subgroup_of)


def _subgroup_of(pod: Object) -> str:
    return pod.labels.at(_SUBGROUP).text()


def _constraint(field: Field, levels: Levels) -> dict[str, Any]:
    field.at("topology").text()
    required = levels.tier(field.at("requiredTopologyLevel"))
    return _tiers(required, levels.tier(field.at("preferredTopologyLevel")))


def _tree(rows: Sequence[Field], sets: dict[str, PodSet], levels: Levels) -> list[dict[str, Any]]:
    """Return the subgroups as a tree of groups; each leaf has the pods that name it."""
    names = [row.at("name").text() for row in rows]
    parents = [row.at("parent").text() for row in rows]
    above = dict(zip(names, parents, strict=True))
    for row, name in zip(rows, names, strict=True):
        if not name or names.count(name) > 1:
            raise row.at("name").fault("expected a name of its own")
        if above[name] and (above[name] not in above or _is_circle(name, above)):
            raise row.at("parent").fault("expected a subgroup above")
    made: dict[str, dict[str, Any]] = {}
    for row, name in zip(rows, names, strict=True):
        made[name] = _subgroup(row, name, sets, levels, is_leaf=name not in parents)
    for name, parent in zip(names, parents, strict=True):
        if parent:
            made[parent].setdefault("children", []).append(made[name])
    unknown = sorted(sets.keys() - made.keys())
    if unknown:
        raise PlacementRequestError(
            sets[unknown[0]].template.title, f"no subgroup is named '{show(unknown[0])}'"
        )
    return [made[name] for name, parent in zip(names, parents, strict=True) if not parent]


def _is_circle(name: str, parents: dict[str, str]) -> bool:
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        name = parents.get(name, "")
    return bool(name)


def _subgroup(
    row: Field, name: str, sets: dict[str, PodSet], levels: Levels, *, is_leaf: bool
) -> dict[str, Any]:
    wish = _constraint(row.at("topologyConstraint"), levels)
    if not is_leaf:
        return {"name": name} | wish
    least = row.at("minMember")
    if name in sets:
        found = sets[name].row()
        return found | {"min": min(least.whole(found["count"]), found["count"])} | wish
    least.note("no pod of it is in the file: what its pods ask for is not known")
    return {"name": name, "count": least.whole(1, least=1)} | wish
