"""Translates Volcano's Job, PodGroup and annotated pods, and its task-topology plugin.

Source: volcano-sh/apis, batch/v1alpha1 and scheduling/v1beta1; the task-topology plugin's guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix
from generator.manifests.pod_groups import find_group_pods, find_only_group
from generator.manifests.tier_names import render_highest_tier
from generator.manifests.workloads import PodSet, Workload, find_workload, group_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

BATCH: Final = "batch.volcano.sh"
SCHEDULING: Final = "scheduling.volcano.sh"
GROUP_NAME: Final = "scheduling.k8s.io/group-name"
_ANNOTATION: Final = "volcano.sh/network-topology-"
_MODE: Final = f"{_ANNOTATION}mode"
_TIER: Final = f"{_ANNOTATION}highest-tier"
_TASK_TOPOLOGY: Final = "volcano.sh/task-topology-"
_LOWEST: Final = "1"


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has kinds or annotations of Volcano."""
    return any(
        object_.group == BATCH
        or (object_.kind == "PodGroup" and object_.group == SCHEDULING)
        or has_key_prefix(object_.field.value, _ANNOTATION)
        for object_ in manifests.objects
    )


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a required field is malformed, or Volcano would refuse it.
    """
    workload = find_workload(manifests)
    group = find_only_group(manifests, SCHEDULING)
    if workload is not None and workload.owner.group == BATCH:
        spec = _parse_job(workload, manifests)
    elif group is not None:
        spec = _parse_pod_group(group, workload, manifests)
    else:
        spec = _parse_annotated(workload, manifests)
    return {"preset": Preset.VOLCANO.value} | spec | _parse_task_topology(manifests, spec["groups"])


def _parse_job(workload: Workload, manifests: Manifests) -> dict[str, Any]:
    job, tasks = workload.owner, workload.owner.spec.get("tasks").items()
    by_name = {pod_set.name: pod_set for pod_set in workload.sets}
    groups = []
    for index, task in enumerate(tasks):
        pod_set = by_name.get(task.get("name").text(f"task{index}"))
        if pod_set is None:
            continue
        minimum = task.get("minAvailable").integer(pod_set.count)
        row = pod_set.render_group() | {"min": min(minimum, pod_set.count)}
        groups.append(row | _parse_partitions(task.get("partitionPolicy"), pod_set, manifests))
    _apply_minimum(groups, job.spec.get("minAvailable").optional_integer())
    minimum = job.spec.get("minAvailable").integer(sum(row["min"] for row in groups))
    tiers = _parse_tiers(job.spec.get("networkTopology"), manifests)
    return tiers | {
        "gang": job.name,
        "priority": workload.priority,
        "groups": groups,
        "min": minimum,
    }


def _apply_minimum(groups: Sequence[dict[str, Any]], minimum: int | None) -> None:
    """Drop the minimums of tasks if the job's minimum is smaller, because Volcano ignores them."""
    if minimum is None or minimum >= sum(row["min"] for row in groups):
        return
    for row in groups:
        row["min"] = minimum if len(groups) == 1 else 0


def _parse_partitions(policy: Field, pods: PodSet, manifests: Manifests) -> dict[str, Any]:
    if not policy.exists:
        return {}
    total = policy.get("totalPartitions").integer(0, minimum=1)
    size = policy.get("partitionSize").integer(0, minimum=1)
    if total * size != pods.count:
        problem = f"{total} partitions of {size} pods do not add up to {pods.count} replicas"
        raise PlacementRequestError(policy.path, problem)
    tiers = _parse_tiers(policy.get("networkTopology"), manifests)
    layer = {"size": size, "indexed": True, "min": policy.get("minPartitions").integer(0)}
    return _build_slices(layer, tiers)


def _build_slices(layer: dict[str, Any], tiers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the slices of a set: a hard constraint sets their tier, a soft one only groups."""
    if not layer["min"]:
        del layer["min"]
    if "required" in tiers:
        layer["tier"] = tiers["required"]
    return {"slices": [layer]}


def _parse_tiers(field: Field, manifests: Manifests) -> dict[str, Any]:
    """Return `required` for mode hard, `preferred` for soft.

    Volcano ignores hard without a tier, and so does this; a note says so.
    """
    if not field.exists:
        return {}
    mode = field.get("mode").text("hard")
    number = field.get("highestTierAllowed").optional_integer()
    named_tier = manifests.levels.find_tier(field.get("highestTierName"))
    if number is not None and named_tier:
        problem = "highestTierAllowed and highestTierName exclude each other"
        raise PlacementRequestError(field.path, problem)
    if mode == "soft":
        return {"preferred": [_LOWEST]}
    if mode != "hard":
        raise field.get("mode").build_error("expected hard or soft")
    tier = named_tier or ("" if number is None else render_highest_tier(number))
    if not tier:
        field.note("mode hard without a tier has no effect, here or in Volcano")
        return {}
    return {"required": tier}


def _parse_pod_group(
    group: KubeObject, workload: Workload | None, manifests: Manifests
) -> dict[str, Any]:
    spec = group.spec
    pods = find_group_pods(manifests, group, GROUP_NAME)
    minimum = spec.get("minMember").optional_integer()
    min_by_task = {name: row.integer(0) for name, row in spec.get("minTaskMember").entries()}
    policies = spec.get("subGroupPolicy").items()
    if workload is not None:
        sets: tuple[PodSet, ...] = workload.sets
        groups = [pod_set.render_group() for pod_set in sets]
    elif pods:
        subgroups = _SubgroupPolicies(policies, manifests)
        sets = group_pods(pods, subgroups.find_subgroup)
        groups = [pod_set.render_group() | subgroups.find_tiers(pod_set.name) for pod_set in sets]
    else:
        groups = _build_groups_without_pods(group, policies, manifests)
    for row in groups:
        if row["name"] in min_by_task:
            row["min"] = min(min_by_task[row["name"]], row["count"])
    if minimum is not None:
        for row in groups:
            row.setdefault("min", 0 if len(groups) > 1 else min(minimum, row["count"]))
    tiers = _parse_tiers(spec.get("networkTopology"), manifests)
    parsed: dict[str, Any] = tiers | {"gang": group.name, "groups": groups}
    return (
        parsed
        if minimum is None
        else parsed | {"min": _parse_capped_minimum(groups, spec.get("minMember"))}
    )


def _parse_capped_minimum(groups: Sequence[Mapping[str, Any]], field: Field) -> int:
    total: int = sum(row["count"] for row in groups)
    minimum = field.integer(0)
    if minimum > total:
        field.note(f"the file has only {total} pods")
    return min(minimum, total)


class _SubgroupPolicies:
    """The subgroup of each pod, by the subgroup policies of a PodGroup."""

    def __init__(self, policies: Sequence[Field], manifests: Manifests) -> None:
        self._policies = policies
        self._tiers: dict[str, dict[str, Any]] = {}
        self._manifests = manifests

    def find_subgroup(self, pod: KubeObject) -> str:
        """Return the name of the first policy that selects the pod, with its partition."""
        labels = _as_mapping(pod.labels.value)
        for index, policy in enumerate(self._policies):
            keys = [key.text() for key in policy.get("matchLabelKeys").items()]
            match_labels = {
                key: value.text()
                for key, value in policy.get("labelSelector", "matchLabels").entries()
            }
            is_selected = all(labels.get(key) == value for key, value in match_labels.items())
            if not is_selected or not keys or any(key not in labels for key in keys):
                continue
            name = "-".join(
                (policy.get("name").text(f"part{index}"), *(str(labels[key]) for key in keys))
            )
            self._tiers[name] = _parse_tiers(policy.get("networkTopology"), self._manifests)
            return name
        return ""

    def find_tiers(self, name: str) -> dict[str, Any]:
        """Return the tiers of a subgroup."""
        return self._tiers.get(name, {})


def _build_groups_without_pods(
    group: KubeObject, policies: Sequence[Field], manifests: Manifests
) -> list[dict[str, Any]]:
    """Return groups from counts alone: the minimum, or the requested subgroups."""
    spec, groups = group.spec, []
    for index, policy in enumerate(policies):
        size = policy.get("subGroupSize").integer(1, minimum=1)
        num = policy.get("minSubGroups").integer(1) or 1
        layer = {"size": size, "min": 0}
        row = {"name": policy.get("name").text(f"part{index}"), "count": size * num}
        groups.append(
            row | _build_slices(layer, _parse_tiers(policy.get("networkTopology"), manifests))
        )
    if not groups:
        groups.append({"name": "pods", "count": spec.get("minMember").integer(1, minimum=1)})
    group.field.note("the file has none of its pods, so their resource requests are unknown")
    return groups


def _parse_annotated(workload: Workload | None, manifests: Manifests) -> dict[str, Any]:
    """Return the spec of pods or of another workload, with topology annotations on the pods."""
    if workload is not None:
        name, sets = workload.owner.name, workload.sets
    elif manifests.pods:
        name, sets = manifests.pods[0].name, group_pods(manifests.pods, lambda _: "")
    else:
        raise PlacementRequestError("the file", "expected a Job, a PodGroup, a workload or pods")
    annotations = sets[0].annotations
    tier = annotations.get(_TIER).integer_from_text(minimum=0)
    mode = annotations.get(_MODE).text("hard")
    if mode == "soft":
        tiers: dict[str, Any] = {"preferred": [_LOWEST]}
    else:
        tiers = {} if tier is None else {"required": render_highest_tier(tier)}
    return tiers | {"gang": name, "groups": [pod_set.render_group() for pod_set in sets]}


def _parse_task_topology(
    manifests: Manifests, groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the affinity for the task-topology plugin; if set, that plugin is the preset."""
    affinity: dict[str, Any] = {}
    for object_ in manifests.select("Job", "PodGroup"):
        for key, kind in (("affinity", "attract"), ("anti-affinity", "repel")):
            text = object_.annotations.get(_TASK_TOPOLOGY + key).text()
            if text.strip():
                affinity[kind] = [_split_names(part) for part in text.split(";") if part.strip()]
        order = object_.annotations.get(_TASK_TOPOLOGY + "task-order").text()
        if order.strip():
            affinity["order"] = _split_names(order)
    names = {row["name"] for row in groups}
    roles = {role for key in ("attract", "repel") for row in affinity.get(key, ()) for role in row}
    unknown = sorted(roles - names)
    if unknown:
        raise PlacementRequestError("task-topology", f"no task has the name '{show(unknown[0])}'")
    if not roles:
        return {}
    return {"preset": Preset.TASK_TOPOLOGY.value, "affinity": affinity}


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
