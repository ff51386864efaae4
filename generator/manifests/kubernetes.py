"""Translates the gangs of Kubernetes itself: PodGroup, CompositePodGroup, Workload, and Jobs.

A group names one label key, whose value all of its pods share; groups nest (CompositePodGroup, and
the templates of a Workload).

Source: k8s.io/api v0.35.0 (scheduling.k8s.io/v1alpha1, `podGroups` of a Workload), v0.36.3
(v1alpha2) and v0.37.0 (v1alpha3, v1beta1, and `scheduling` of a Job).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable, Row
from generator.manifests.kinds.object_fields import METADATA, list_object_fields
from generator.manifests.kinds.pod_sets import (
    PodSet,
    build_unknown_pods,
    cap_minimum,
    share_minimum,
)
from generator.manifests.objects import KubeObject, Manifests, find_only
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import find_named_pods, find_workload, group_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "scheduling.k8s.io"
_KINDS: Final = ("PodGroup", "CompositePodGroup", "Workload")
_MAX_DEPTH: Final = 4
"""Levels of groups, the root and the groups of pods included: WorkloadMaxTreeDepth."""
_EVICTED: Final = "says which pods are evicted together"
_OWNER: Final = "says which object the group is made for"
_TEMPLATE_FIELDS: Final[dict[str, Row]] = {"disruptionMode": _EVICTED}
_GROUP_FIELDS: Final[dict[str, Row]] = {
    **_TEMPLATE_FIELDS,
    "podGroupTemplateRef": _OWNER,
    "workloadRef": _OWNER,
}
"""Claims of devices, and classes of priority, may matter."""


def _list_template_fields(depth: int = _MAX_DEPTH) -> dict[str, Row]:
    if not depth:
        return {}
    inner = _list_template_fields(depth - 1)
    composite = {"compositePodGroupTemplates": inner, "podGroupTemplates": _TEMPLATE_FIELDS}
    return {**_TEMPLATE_FIELDS, **composite}


FIELDS: Final[dict[tuple[str, str], FieldTable]] = {
    (GROUP, "PodGroup"): list_object_fields(_GROUP_FIELDS),
    (GROUP, "CompositePodGroup"): list_object_fields(_GROUP_FIELDS),
    (GROUP, "Workload"): {
        "metadata": METADATA,
        "spec": {**_list_template_fields(), "controllerRef": _OWNER},
    },
}


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has a group of Kubernetes, or a Job with one."""
    return bool(manifests.select(*_KINDS, group=GROUP)) or any(
        job.spec.get("scheduling").exists for job in _find_jobs(manifests)
    )


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a required field is malformed, or there are several gangs.
    """
    groups = manifests.select("PodGroup", "CompositePodGroup", group=GROUP)
    workloads = [] if groups else manifests.select("Workload", group=GROUP)
    workload = find_only(workloads, "Workloads")
    if groups:
        found = _parse_groups(groups, manifests)
    elif workload is not None:
        found = _parse_workload(workload, manifests)
    else:
        job = next(job for job in _find_jobs(manifests) if job.spec.get("scheduling").exists)
        found = _parse_job(job, manifests)
    return {"preset": Preset.KUBERNETES.value} | found


def _find_jobs(manifests: Manifests) -> list[KubeObject]:
    jobs = manifests.select("Job", group="batch")
    return [job for job in jobs if isinstance(job.spec.value, Mapping)]


def _parse_job(job: KubeObject, manifests: Manifests) -> dict[str, Any]:
    workload = find_workload(manifests)
    sets = workload.sets if workload else ()
    scheduling = job.spec.get("scheduling")
    if not scheduling.get("schedulingPolicy").exists:  # Only a Job need not have one.
        basic = Field({"basic": {}}, f"{scheduling.path}.schedulingPolicy", scheduling.notes)
        scheduling = scheduling.regroup(**dict(scheduling.entries()) | {"schedulingPolicy": basic})
    return _build_job_spec(job.name, scheduling, sets, manifests.levels)


def _parse_groups(groups: Sequence[KubeObject], manifests: Manifests) -> dict[str, Any]:
    """Return the only tree of groups of a file."""
    parents = {group.name: group.spec.get("parentCompositePodGroupName") for group in groups}
    _check_names(groups)
    names = {group.name for group in groups if group.kind == "CompositePodGroup"}
    roots = [group for group in groups if parents[group.name].text() not in names]
    if len(roots) != 1:
        listed = ", ".join(group.title for group in roots or groups)
        problem = f"the file has {len(roots)} gangs, but one is placed at a time: {listed}"
        raise PlacementRequestError((roots or groups)[-1].title, problem)
    (root,) = roots
    if parents[root.name].exists:
        parents[root.name].warn("is not in the file, so its policy and its key are unknown")
    if root.kind == "PodGroup":
        sets = _find_sets(root, manifests, is_only=True)
        return _build_job_spec(root.name, root.spec, sets, manifests.levels)
    rows = _build_children(root.name, groups, parents, manifests)
    return _build_tree_spec(root.name, root.spec, rows, manifests.levels)


def _check_names(groups: Sequence[KubeObject]) -> None:
    names: set[str] = set()
    for group in groups:
        if group.name in names:
            raise PlacementRequestError(group.title, f"two groups are named '{show(group.name)}'")
        names.add(group.name)


def _build_children(
    parent: str,
    groups: Sequence[KubeObject],
    parents: Mapping[str, Field],
    manifests: Manifests,
    depth: int = 1,
) -> list[dict[str, Any]]:
    """Return the groups inside a composite group."""
    rows = []
    for group in groups:
        if parents[group.name].text() != parent:
            continue
        if group.kind == "PodGroup":
            sets = _find_sets(group, manifests, is_only=False)
            rows.append(_build_group(group.name, group.spec, sets, manifests.levels))
            continue
        if depth + 1 >= _MAX_DEPTH:
            raise parents[group.name].build_error(f"expected at most {_MAX_DEPTH} levels")
        children = _build_children(group.name, groups, parents, manifests, depth + 1)
        rows.append(_build_composite(group.name, group.spec, children, manifests.levels))
    return rows


def _find_sets(group: KubeObject, manifests: Manifests, *, is_only: bool) -> tuple[PodSet, ...]:
    """Return the pods that name a group; pods need not name the only group."""
    workload = find_workload(manifests)
    if workload is not None:
        rows = [(row, _find_group_name(row.template)) for row in workload.sets]
        named = tuple(row for row, name in rows if name == group.name)
        return workload.sets if is_only and not any(name for _, name in rows) else named
    if is_only:
        named_pods = find_named_pods(manifests, group, lambda pod: _find_group_name(pod.field))
    else:
        named_pods = [pod for pod in manifests.pods if _find_group_name(pod.field) == group.name]
    return group_pods(named_pods)


def _find_group_name(pod: Field) -> str:
    return pod.get("spec", "schedulingGroup", "podGroupName").text()


def _parse_workload(workload: KubeObject, manifests: Manifests) -> dict[str, Any]:
    """Return the groups of the templates of a Workload."""
    if workload.spec.get("podGroups").exists:
        return _parse_pod_groups(workload, manifests)
    owner = find_workload(manifests)
    sets = {row.name: row for row in (owner.sets if owner else ())}
    spec, levels = workload.spec, manifests.levels
    leaves = spec.get("podGroupTemplates").items()
    composites = spec.get("compositePodGroupTemplates").items()
    if len(leaves) == 1 and not composites:
        (leaf,) = leaves
        leaf.get("name").text()
        return _build_job_spec(workload.name, leaf, tuple(sets.values()), levels)
    if len(composites) == 1 and not leaves:
        (root,) = composites
        root.get("name").text()
        return _build_tree_spec(workload.name, root, _build_templates(root, sets, levels), levels)
    if not leaves and not composites:
        raise spec.get("podGroupTemplates").build_error("expected at least one template")
    problem = "each template is a separate gang; the file has several, but one is placed at a time"
    raise spec.get("podGroupTemplates").build_error(problem)


def _parse_pod_groups(workload: KubeObject, manifests: Manifests) -> dict[str, Any]:
    """Return the only gang of a Workload of Kubernetes 1.35: one of its groups.

    A group is a gang for each replica key of its pods.
    """
    rows = workload.spec.get("podGroups")
    groups = {row.get("name").text(): row for row in rows.items()}
    members = _find_members(manifests, tuple(groups))
    gangs = [name for name, row in groups.items() if row.get("policy", "gang").exists]
    named = [name for name, _ in members]
    gangs = [name for name in named if name in gangs] or named or gangs
    if len(gangs) != 1 or gangs[0] not in groups:
        problem = (
            f"the file has {len(gangs)} gangs, but one is placed at a time: in v1alpha1 of"
            f" Kubernetes 1.35, each replica of a group is a gang ({', '.join(map(show, gangs))})"
        )
        raise PlacementRequestError(rows.path, problem)
    for name, row in groups.items():
        if name != gangs[0]:
            row.raw()
            row.note("is no gang of pods in the file, and is not placed")
    leaf = groups[gangs[0]]
    spec = leaf.regroup(schedulingPolicy=leaf.get("policy"))
    for template in (pods.template for name, row in members for pods in row if name != gangs[0]):
        template.raw()
        template.note("is no pod of the gang, and is not placed")
    sets = next((rows for name, rows in members if name == gangs[0]), ())
    return _build_job_spec(workload.name, spec, sets, manifests.levels)


def _find_members(
    manifests: Manifests, names: Sequence[str]
) -> list[tuple[str, tuple[PodSet, ...]]]:
    """Return (group, its pods) of each replica of a group; pods need not name the only group."""
    workload, only = find_workload(manifests), names[0] if len(names) == 1 else ""
    found: dict[tuple[str, str], list[Any]] = {}
    for item in workload.sets if workload else manifests.pods:
        pod = item.template if isinstance(item, PodSet) else item.field
        reference = pod.get("spec", "workloadRef")
        reference.get("name").text()
        key = reference.get("podGroupReplicaKey").text()
        found.setdefault((reference.get("podGroup").text(only), key), []).append(item)
    return [
        (name, tuple(rows) if workload else group_pods(rows)) for (name, _), rows in found.items()
    ]


def _build_templates(
    parent: Field, sets: Mapping[str, PodSet], levels: LevelNames, depth: int = 1
) -> list[dict[str, Any]]:
    rows = []
    for leaf in parent.get("podGroupTemplates").items():
        name = leaf.get("name").text()
        named = (sets[name],) if name in sets else ()
        rows.append(_build_group(name, leaf, named, levels))
    for inner in parent.get("compositePodGroupTemplates").items():
        if depth + 1 >= _MAX_DEPTH:
            raise inner.build_error(f"expected at most {_MAX_DEPTH} levels")
        children = _build_templates(inner, sets, levels, depth + 1)
        rows.append(_build_composite(inner.get("name").text(), inner, children, levels))
    return rows


def _build_job_spec(
    gang: str, spec: Field, sets: Sequence[PodSet], levels: LevelNames
) -> dict[str, Any]:
    """Return the spec of a gang that is one group."""
    groups = [row.render_group() for row in sets]
    total = sum(row["count"] for row in groups)
    least = _parse_minimum(spec, "minCount", total)
    if not groups:
        groups, total = [build_unknown_pods(spec, least)], least
    found = {"gang": gang, "priority": _parse_priority(spec, sets)} | _parse_tier(spec, levels)
    return found | share_minimum(groups, _cap_count(spec, least, total))


def _build_tree_spec(
    gang: str, spec: Field, rows: list[dict[str, Any]], levels: LevelNames
) -> dict[str, Any]:
    """Return the spec of a gang of several groups."""
    root = _build_composite(gang, spec, rows, levels)
    tier = {"required": root.pop("required")} if "required" in root else {}
    found = {"gang": gang, "priority": _parse_priority(spec, ())} | tier
    if root["min"] == len(rows):
        return found | {"groups": rows}
    return found | {"groups": [root]}


def _build_group(
    name: str, spec: Field, sets: Sequence[PodSet], levels: LevelNames
) -> dict[str, Any]:
    """Return a group of pods inside another one."""
    tier = _parse_tier(spec, levels)
    groups = [row.render_group() for row in sets]
    total = sum(row["count"] for row in groups)
    least = _parse_minimum(spec, "minCount", total)
    _parse_priority(spec, ())
    if not groups:
        return build_unknown_pods(spec, least, name) | tier
    if len(groups) == 1:
        return groups[0] | {"name": name, "min": _cap_count(spec, least, total)} | tier
    if least < total:
        spec.note("pods of several kinds inside a composite group are placed all or none")
    children = [row | {"name": f"{name}-{at}"} for at, row in enumerate(groups, 1)]
    return {"name": name, "children": children} | tier


def _build_composite(
    name: str, spec: Field, children: list[dict[str, Any]], levels: LevelNames
) -> dict[str, Any]:
    """Return a group of groups."""
    if not children:
        raise spec.build_error("expected groups inside, got none")
    least = _parse_minimum(spec, "minGroupCount", len(children))
    field = spec.get("schedulingPolicy", "gang", "minGroupCount")
    least = cap_minimum(field, least, len(children), what="groups")
    row = {"name": name, "children": children, "min": least}
    return row | _parse_tier(spec, levels)


def _parse_minimum(spec: Field, field: str, total: int) -> int:
    """Return the fewest pods or groups: the minimum in the policy of a gang, else 1.

    A Job may leave the minimum out: then all of its pods are the gang.
    """
    policy = spec.get("schedulingPolicy")
    if policy.get("gang").exists:
        return policy.get("gang", field).integer(total or 1, minimum=1)
    if policy.get("basic").exists:
        policy.note("is not a gang: as many are placed as fit, at least one")
        return 1
    raise policy.build_error("expected gang or basic")


def _cap_count(spec: Field, least: int, total: int) -> int:
    return cap_minimum(spec.get("schedulingPolicy", "gang", "minCount"), least, total)


def _parse_tier(spec: Field, levels: LevelNames) -> dict[str, str]:
    """Return the required tier of a group; Kubernetes allows one label key."""
    rows = spec.get("schedulingConstraints", "topology").items()
    if len(rows) > 1:
        raise rows[1].build_error("expected at most one label key")
    if not rows:
        return {}
    tier = levels.find_tier(rows[0].get("key"))
    if not tier:
        raise rows[0].build_error("expected a label key")
    return {"required": tier}


def _parse_priority(spec: Field, sets: Sequence[PodSet]) -> int:
    """Return the priority of a group, or else the highest of its pods."""
    own = spec.get("priority").optional_integer()
    of_pods = [row.template.get("spec", "priority").integer(0) for row in sets]
    return max(of_pods, default=0) if own is None else own
