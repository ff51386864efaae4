"""Volcano's Job, PodGroup and annotated pods, and its task-topology plugin.

Source: volcano-sh/apis, batch/v1alpha1 and scheduling/v1beta1; the task-topology plugin's guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests, KubeObject, has_key_prefix
from generator.manifests.pod_groups import find_only_group, find_group_pods
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
    """Return whether Volcano's kinds or annotations are there."""
    return any(
        one.group == BATCH
        or (one.kind == "PodGroup" and one.group == SCHEDULING)
        or has_key_prefix(one.field.value, _ANNOTATION)
        for one in manifests.objects
    )


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a field that counts is malformed, or says what Volcano refuses.
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
    by_name = {one.name: one for one in workload.sets}
    groups = []
    for at, task in enumerate(tasks):
        found = by_name.get(task.get("name").text(f"task{at}"))
        if found is None:
            continue
        least = task.get("minAvailable").integer(found.count)
        row = found.render_group() | {"min": min(least, found.count)}
        groups.append(row | _parse_partitions(task.get("partitionPolicy"), found, manifests))
    _apply_minimum(groups, job.spec.get("minAvailable").optional_integer())
    least = job.spec.get("minAvailable").integer(sum(row["min"] for row in groups))
    wish = _parse_tiers(job.spec.get("networkTopology"), manifests)
    return wish | {
        "gang": job.name,
        "priority": workload.priority,
        "groups": groups,
        "min": least,
    }


def _apply_minimum(groups: Sequence[dict[str, Any]], least: int | None) -> None:
    """Forget minimums of tasks where the job's is smaller: then Volcano does not look at them."""
    if least is None or least >= sum(row["min"] for row in groups):
        return
    for row in groups:
        row["min"] = least if len(groups) == 1 else 0


def _parse_partitions(policy: Field, pods: PodSet, manifests: Manifests) -> dict[str, Any]:
    if not policy.exists:
        return {}
    total = policy.get("totalPartitions").integer(0, minimum=1)
    size = policy.get("partitionSize").integer(0, minimum=1)
    if total * size != pods.count:
        problem = f"{total} partitions of {size} are not the {pods.count} replicas"
        raise PlacementRequestError(policy.path, problem)
    wish = _parse_tiers(policy.get("networkTopology"), manifests)
    layer = {"size": size, "indexed": True, "min": policy.get("minPartitions").integer(0)}
    return _build_slices(layer, wish)


def _build_slices(layer: dict[str, Any], wish: Mapping[str, Any]) -> dict[str, Any]:
    """Return a wish for every part of a set: hard as a layer's tier, soft as a mere grouping."""
    if not layer["min"]:
        del layer["min"]
    if "required" in wish:
        layer["tier"] = wish["required"]
    return {"slices": [layer]}


def _parse_tiers(field: Field, manifests: Manifests) -> dict[str, Any]:
    """Return `required` for mode hard, `preferred` for soft.

    Hard without a tier is no constraint to Volcano; that is noted.
    """
    if not field.exists:
        return {}
    mode = field.get("mode").text("hard")
    number = field.get("highestTierAllowed").optional_integer()
    named = manifests.levels.find_tier(field.get("highestTierName"))
    if number is not None and named:
        problem = "highestTierAllowed and highestTierName exclude each other"
        raise PlacementRequestError(field.path, problem)
    if mode == "soft":
        return {"preferred": [_LOWEST]}
    if mode != "hard":
        raise field.get("mode").build_error("expected hard or soft")
    tier = named or ("" if number is None else str(number))
    if not tier:
        field.note("hard without a tier constrains nothing, to Volcano either")
        return {}
    return {"required": tier}


def _parse_pod_group(
    group: KubeObject, workload: Workload | None, manifests: Manifests
) -> dict[str, Any]:
    spec = group.spec
    pods = find_group_pods(manifests, group, GROUP_NAME)
    least = spec.get("minMember").optional_integer()
    per_task = {name: row.integer(0) for name, row in spec.get("minTaskMember").entries()}
    policies = spec.get("subGroupPolicy").items()
    if workload is not None:
        sets: tuple[PodSet, ...] = workload.sets
        groups = [one.render_group() for one in sets]
    elif pods:
        parts = _SubgroupPolicies(policies, manifests)
        sets = group_pods(pods, parts.find_subgroup)
        groups = [one.render_group() | parts.find_tiers(one.name) for one in sets]
    else:
        groups = _build_groups_without_pods(group, policies, manifests)
    for row in groups:
        if row["name"] in per_task:
            row["min"] = min(per_task[row["name"]], row["count"])
    if least is not None:
        for row in groups:
            row.setdefault("min", 0 if len(groups) > 1 else min(least, row["count"]))
    wish = _parse_tiers(spec.get("networkTopology"), manifests)
    found: dict[str, Any] = wish | {"gang": group.name, "groups": groups}
    return (
        found
        if least is None
        else found | {"min": _parse_capped_minimum(groups, spec.get("minMember"))}
    )


def _parse_capped_minimum(groups: Sequence[Mapping[str, Any]], field: Field) -> int:
    total: int = sum(row["count"] for row in groups)
    least = field.integer(0)
    if least > total:
        field.note(f"only {total} pods are in the file")
    return min(least, total)


class _SubgroupPolicies:
    """Which subgroup a pod is of, by the policies of a PodGroup."""

    def __init__(self, policies: Sequence[Field], manifests: Manifests) -> None:
        self._policies = policies
        self._tiers: dict[str, dict[str, Any]] = {}
        self._manifests = manifests

    def find_subgroup(self, pod: KubeObject) -> str:
        """Return the name of the first policy that selects the pod, with its partition."""
        labels = _as_mapping(pod.labels.value)
        for at, policy in enumerate(self._policies):
            keys = [key.text() for key in policy.get("matchLabelKeys").items()]
            wanted = {
                key: value.text()
                for key, value in policy.get("labelSelector", "matchLabels").entries()
            }
            is_selected = all(labels.get(key) == value for key, value in wanted.items())
            if not is_selected or not keys or any(key not in labels for key in keys):
                continue
            name = "-".join(
                (policy.get("name").text(f"part{at}"), *(str(labels[key]) for key in keys))
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
    """Return groups by numbers alone: the minimum, or the subgroups that are asked for."""
    spec, groups = group.spec, []
    for at, policy in enumerate(policies):
        size = policy.get("subGroupSize").integer(1, minimum=1)
        num = policy.get("minSubGroups").integer(1) or 1
        layer = {"size": size, "min": 0}
        row = {"name": policy.get("name").text(f"part{at}"), "count": size * num}
        groups.append(
            row | _build_slices(layer, _parse_tiers(policy.get("networkTopology"), manifests))
        )
    if not groups:
        groups.append({"name": "pods", "count": spec.get("minMember").integer(1, minimum=1)})
    group.field.note("no pod of it is in the file: what its pods ask for is not known")
    return groups


def _parse_annotated(workload: Workload | None, manifests: Manifests) -> dict[str, Any]:
    """Return pods, or a workload of another system, whose pods carry the topology themselves."""
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
        wish: dict[str, Any] = {"preferred": [_LOWEST]}
    else:
        wish = {} if tier is None else {"required": str(tier)}
    return wish | {"gang": name, "groups": [one.render_group() for one in sets]}


def _parse_task_topology(
    manifests: Manifests, groups: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the task-topology plugin's affinity, which makes that plugin the preset."""
    affinity: dict[str, Any] = {}
    for one in manifests.select("Job", "PodGroup"):
        for key, kind in (("affinity", "attract"), ("anti-affinity", "repel")):
            text = one.annotations.get(_TASK_TOPOLOGY + key).text()
            if text.strip():
                affinity[kind] = [_split_names(part) for part in text.split(";") if part.strip()]
        order = one.annotations.get(_TASK_TOPOLOGY + "task-order").text()
        if order.strip():
            affinity["order"] = _split_names(order)
    names = {row["name"] for row in groups}
    roles = {role for key in ("attract", "repel") for row in affinity.get(key, ()) for role in row}
    unknown = sorted(roles - names)
    if unknown:
        raise PlacementRequestError("task-topology", f"no task is named '{show(unknown[0])}'")
    if not roles:
        return {}
    return {"preset": Preset.TASK_TOPOLOGY.value, "affinity": affinity}


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
