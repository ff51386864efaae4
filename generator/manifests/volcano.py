"""Translates Volcano's Job, PodGroup and annotated pods, and its task-topology plugin.

Source: volcano-sh/apis, batch/v1alpha1 and scheduling/v1beta1; the task-topology plugin's guide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.gang_pods import walk_leaves
from generator.manifests.kinds.kubeflow import find_gang_minimum
from generator.manifests.kinds.object_fields import list_object_fields
from generator.manifests.kinds.pod_sets import (
    Minimum,
    PodSet,
    Workload,
    build_unknown_pods,
    cap_minimum,
)
from generator.manifests.kinds.ray import GROUP as RAY
from generator.manifests.kinds.trainer import RUNTIMES, find_runtime, find_volcano_policy
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix
from generator.manifests.pods import parse_priority
from generator.manifests.tier_names import render_highest_tier
from generator.manifests.workloads import (
    describe_missing,
    find_group_pods,
    find_only_group,
    find_workload,
    group_pods,
    mark_equal_annotations,
)
from generator.objects.document import mapping_at
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
_ROLE: Final = "volcano.sh/task-spec"
_MIN_MEMBER: Final = f"{SCHEDULING}/group-min-member"
FIELDS: Final[dict[tuple[str, str], FieldTable]] = {
    (SCHEDULING, "PodGroup"): list_object_fields(
        {
            "minResources": "says when the pods start, not where",
            "queue": "chooses a quota; the answer is for the nodes that you give",
        }
    )
}
"""A class of priority may matter."""


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has kinds or annotations of Volcano."""
    return any(
        object_.group == BATCH
        or (object_.kind == "PodGroup" and object_.group == SCHEDULING)
        or has_key_prefix(object_.field.value, _ANNOTATION)
        or (object_.kind in RUNTIMES and find_volcano_policy(object_).exists)
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
    job = workload.owner
    tasks = {
        task.get("name").text(f"task{index}"): task
        for index, task in enumerate(job.spec.get("tasks").items())
    }
    groups = []
    for pods in workload.sets:
        task = tasks[pods.name]
        done = task.get("replicas").integer(1) - pods.count
        minimum = max(_parse_task_minimum(task, pods.count + done) - done, 0)
        row = pods.render_group() | {"min": min(minimum, pods.count)}
        groups.append(row | _parse_partitions(task.get("partitionPolicy"), pods, manifests))
    wanted = sum(task.get("replicas").integer(1) for task in tasks.values())
    least = job.spec.get("minAvailable").optional_integer() or None
    if least is not None and least > wanted:  # as Volcano's webhook
        problem = f"expected at most {wanted}, the replicas of all tasks"
        raise job.spec.get("minAvailable").build_error(problem)
    if least is not None:  # Pods that have completed count for it.
        least = max(least - wanted + sum(row["count"] for row in groups), 0)
    _apply_minimum(groups, least)
    tiers = _parse_tiers(job.spec.get("networkTopology"), manifests)
    return tiers | {
        "gang": job.name,
        "priority": workload.priority,
        "groups": groups,
        "min": sum(row["min"] for row in groups) if least is None else least,
    }


def _parse_task_minimum(task: Field, replicas: int) -> int:
    """Return the fewest pods of a task, as Volcano's webhook sets it: of its partitions, or all."""
    policy = task.get("partitionPolicy")
    pods = policy.get("minPartitions").integer(0) * policy.get("partitionSize").integer(0)
    return task.get("minAvailable").integer(pods or replicas)


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
    minimum = spec.get("minMember").integer(0)
    policies = spec.get("subGroupPolicy").items()
    if workload is not None:
        workload.note_unused_minimum("the PodGroup says the minimum of the gang")
        groups = [pod_set.render_group() for pod_set in workload.sets]
    elif pods:
        groups = _build_subgroups(pods, _SubgroupPolicies(policies, manifests), spec)
    else:
        groups = _build_groups_without_pods(group, policies, manifests)
    _apply_task_minimums(groups, spec.get("minTaskMember"), minimum)
    for row in groups:
        least = 0 if len(groups) > 1 or "children" in row else min(minimum, row["count"])
        row.setdefault("min", least)
    tiers = _parse_tiers(spec.get("networkTopology"), manifests)
    parsed: dict[str, Any] = tiers | {"gang": group.name, "groups": groups}
    priorities = [parse_priority(pod.field) for pod in pods]
    if workload:
        priorities.append(workload.priority)
    parsed["priority"] = max(priorities, default=0)
    total = sum(leaf["count"] for leaf in walk_leaves(groups))
    return parsed | {"min": cap_minimum(spec.get("minMember"), minimum, total)}


def _apply_task_minimums(groups: Sequence[dict[str, Any]], field: Field, minimum: int) -> None:
    """Set the minimums of the roles of pods; Volcano ignores them if they exceed that of the group.

    Source: JobInfo.CheckTaskValid.
    """
    by_role = {name: (row, row.integer(0)) for name, row in field.entries()}
    if sum(least for _, least in by_role.values()) > minimum:
        field.note("is more than minMember, so Volcano ignores it")
        return
    named = {row["name"]: row for row in groups}
    for name, (role, least) in by_role.items():
        if name in named and "children" not in named[name]:
            row = named[name]
            row["min"] = cap_minimum(role, least, row["count"])
        elif least:
            role.warn("no group of pods in the file has this role alone")


class _SubgroupPolicies:
    """The subgroup of each pod, by the subgroup policies of a PodGroup."""

    def __init__(self, policies: Sequence[Field], manifests: Manifests) -> None:
        self._policies = policies
        self._manifests = manifests
        self.policy_of: dict[str, int] = {}
        """Index of its policy, by name of a subgroup."""

    def assign_subgroup(self, pod: KubeObject) -> str:
        """Return the subgroup of a pod, and remember its policy.

        The first policy that selects the pod, and whose matchLabelKeys the pod has, counts. The
        name is the policy's name and the pod's values of these keys; empty without such a policy.
        """
        labels = mapping_at(pod.labels.value)
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
            self.policy_of[name] = index
            return name
        return ""

    def parse_bounds(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tiers and the fewest pods of a subgroup."""
        index = self.policy_of.get(row["name"])
        if index is None:
            return {"min": 0} if self._policies else {}
        policy = self._policies[index]
        size = policy.get("subGroupSize").integer(1, minimum=1)
        tiers = _parse_tiers(policy.get("networkTopology"), self._manifests)
        return tiers | {"min": min(size, row["count"])}

    def build_parents(self, groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the subgroups of each policy as one group with a minimum of complete subgroups."""
        rows = [row for row in groups if row["name"] not in self.policy_of]
        for index, policy in enumerate(self._policies):
            children = [row for row in groups if self.policy_of.get(row["name"]) == index]
            least = policy.get("minSubGroups").integer(0)
            name = f"{policy.get('name').text(f'part{index}')}-subgroups"
            if children:
                least = min(least, len(children))
                rows.append({"name": name, "children": children, "min": least})
        return rows


def _build_subgroups(
    pods: Sequence[KubeObject], policies: _SubgroupPolicies, spec: Field
) -> list[dict[str, Any]]:
    """Return the pods as groups: those of a subgroup are placed as soon as it has its size.

    Pods whose roles have minimums are grouped by role.
    """
    has_roles = spec.get("minTaskMember").exists and not spec.get("subGroupPolicy").items()
    split = _find_role if has_roles else policies.assign_subgroup
    rows = [pod_set.render_group() for pod_set in group_pods(pods, split)]
    return policies.build_parents([row | policies.parse_bounds(row) for row in rows])


def _find_role(pod: KubeObject) -> str:
    return pod.annotations.get(_ROLE).text() or pod.labels.get(_ROLE).text()


def _build_groups_without_pods(
    group: KubeObject, policies: Sequence[Field], manifests: Manifests
) -> list[dict[str, Any]]:
    """Return groups from counts alone: the minimum, or the requested subgroups."""
    unknown = build_unknown_pods(group.field, group.spec.get("minMember").integer(1, minimum=1))
    groups = []
    for index, policy in enumerate(policies):
        size = policy.get("subGroupSize").integer(1, minimum=1)
        least = policy.get("minSubGroups").integer(0)
        layer = {"size": size, "min": least}
        count = size * (least or -(-unknown["count"] // size))
        row = {"name": policy.get("name").text(f"part{index}"), "count": count}
        groups.append(
            row | _build_slices(layer, _parse_tiers(policy.get("networkTopology"), manifests))
        )
    return groups or [unknown]


def _parse_annotated(workload: Workload | None, manifests: Manifests) -> dict[str, Any]:
    """Return the spec of pods or of another workload, with topology annotations on the pods."""
    if workload is None and not manifests.pods:
        raise describe_missing(manifests, "a Job, a PodGroup, a workload or pods")
    if workload is None:
        mark_equal_annotations(manifests.pods, _ANNOTATION)
        gang = Workload(manifests.pods[0], group_pods(manifests.pods))
    else:
        gang = replace(workload, sets=tuple(row for row in workload.sets if not row.joins_later))
    groups = [pod_set.render_group() for pod_set in gang.sets]
    spec = {"gang": gang.owner.name, "priority": gang.priority, "groups": groups}
    runtime = find_runtime(gang.owner, manifests) if gang.owner.kind == "TrainJob" else None
    if runtime is not None:
        policy = find_volcano_policy(runtime)
        return _parse_tiers(policy.get("networkTopology"), manifests) | spec
    return _parse_annotated_tiers(gang) | spec | _parse_annotated_minimum(gang, groups)


def _parse_annotated_tiers(gang: Workload) -> dict[str, Any]:
    """Return the tiers that pods name; for Ray, those that the labels of the cluster name."""
    named = [row for row in gang.sets if has_key_prefix(row.annotations.value, _ANNOTATION)]
    mark_equal_annotations(named, _ANNOTATION)
    keys, key = (named or gang.sets)[0].annotations, _TIER
    if gang.owner.group == RAY and has_key_prefix(gang.owner.labels.value, _ANNOTATION):
        keys, key = gang.owner.labels, f"{_TIER}-allowed"
    tier = keys.get(key).integer_from_text(minimum=0)
    if keys.get(_MODE).text("hard") == "soft":
        return {"preferred": [_LOWEST]}
    return {} if tier is None else {"required": render_highest_tier(tier)}


def _parse_annotated_minimum(gang: Workload, groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    field = gang.owner.annotations.get(_MIN_MEMBER)
    count = field.integer_from_text()
    if count is not None:
        gang = replace(gang, minimum=Minimum(count, field))
    elif gang.owner.group in {"apps", "batch"}:
        field.note("without it Volcano starts each pod as it fits; the answer is for all pods")
    elif gang.minimum is not None and not find_gang_minimum(gang.owner).exists:
        gang.minimum.field.note("the PodGroup of the job asks for all pods")
        gang = replace(gang, minimum=None)
    return gang.apply_minimum(groups)


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
