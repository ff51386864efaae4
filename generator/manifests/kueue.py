"""Translates Jobs, JobSets, Workloads and pod groups with Kueue's topology annotations.

Source: kubernetes-sigs/kueue 0.20, apis/kueue/v1beta2 (PodSetTopologyRequest), its validation in
pkg/controller/jobframework (tas_validation.go), and the guide to topology-aware scheduling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from generator.manifests.fields import MAX_INTEGER, Field
from generator.manifests.gang_pods import keep_members
from generator.manifests.kinds.core_workloads import limit_each_pod
from generator.manifests.kinds.job_sets import add_exclusive_tiers
from generator.manifests.kinds.pod_sets import Minimum, PodSet, Workload, cap_minimum
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix
from generator.manifests.tier_names import LevelNames, build_bounds
from generator.manifests.workloads import (
    describe_missing,
    find_workload,
    group_pods,
    mark_equal_annotations,
)
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

PREFIX: Final = "kueue.x-k8s.io/"
_GROUP_OF_WORKLOADS: Final = "kueue.x-k8s.io"
_REQUIRED: Final = "podset-required-topology"
_PREFERRED: Final = "podset-preferred-topology"
_UNCONSTRAINED: Final = "podset-unconstrained-topology"
_SLICE: Final = "podset-slice-required-topology"
_SIZE: Final = "podset-slice-size"
_LAYERS: Final = "podset-slice-required-topology-constraints"
_GROUP: Final = "podset-group-name"
_RANK: Final = "pod-group-pod-index"
_MIN_PARALLELISM: Final = "job-min-parallelism"
_SPREADING: Final = "podset-topology-spreading"
_MAX_NOT_READY: Final = "pod-group-max-not-ready-count"
_FIELDS: Final = {
    _REQUIRED: "required",
    _PREFERRED: "preferred",
    _UNCONSTRAINED: "unconstrained",
    _SLICE: "podSetSliceRequiredTopology",
    _SIZE: "podSetSliceSize",
    _LAYERS: "podsetSliceRequiredTopologyConstraints",
    _GROUP: "podSetGroupName",
}
"""Annotations of pods, and the fields of a Workload that they become."""
_MAX_LAYERS: Final = 3


def is_present(manifests: Manifests) -> bool:
    """Return whether a file names Kueue's queues or annotations outside Kueue's own settings."""
    return any(
        object_.group == _GROUP_OF_WORKLOADS or has_key_prefix(object_.field.value, PREFIX)
        for object_ in manifests.objects
        if not _is_kueue_setting(object_)
    )


def _is_kueue_setting(object_: KubeObject) -> bool:
    return object_.kind in {"Topology", "ResourceFlavor", "ClusterQueue", "LocalQueue"}


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a required field is malformed, or Kueue would refuse it.
    """
    workload = find_workload(manifests) or _find_pod_group(manifests)
    groups = []
    for pods in workload.sets:
        tiers = _parse_tiers(_TopologyAnnotations(pods, manifests.levels))
        alone = limit_each_pod(workload.owner, tiers)
        row = pods.render_group() | (tiers if alone is None else alone)
        row |= _parse_minimum(workload.owner, pods)
        _allow_partial_slice(row)
        _note_other_annotations(pods.annotations)
        groups.append(row)
    if workload.owner.group != _GROUP_OF_WORKLOADS:
        workload.note_unused_minimum("Kueue does not read it and admits all pods together")
    _link_leaders(workload.sets, groups)
    _note_admission(workload.owner)
    _warn_of_annotated_job(workload.owner)
    spec: dict[str, Any] = {
        "preset": Preset.KUEUE.value,
        "gang": workload.owner.name,
        "priority": _find_priority(workload),
        "groups": groups,
    }
    spec = add_exclusive_tiers(spec, workload, manifests.levels)
    if workload.owner.group == _GROUP_OF_WORKLOADS:
        spec = spec | {"groups": _order_leaders(spec["groups"])}
    return spec


def _order_leaders(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the groups in the order of ranks: a leader before its workers."""
    places = {row["name"]: at for at, row in enumerate(groups)}

    def find_place(row: dict[str, Any]) -> tuple[int, bool]:
        return places[row.get("leader_of", row["name"])], "leader_of" not in row

    return sorted(groups, key=find_place)


def _warn_of_annotated_job(owner: KubeObject) -> None:
    """Warn of annotations that are on a job, because Kueue reads them on its pod templates."""
    if (owner.group, owner.kind) not in {("batch", "Job"), ("jobset.x-k8s.io", "JobSet")}:
        return
    for name in _FIELDS:
        annotation = owner.annotations.get(PREFIX + name)
        if annotation.exists:
            annotation.raw()
            annotation.warn("Kueue reads this annotation on pod templates only; move it there")


def _find_priority(workload: Workload) -> int:
    """Return the priority that Kueue has found for a Workload, else that of its pods."""
    number = None
    if workload.owner.group == _GROUP_OF_WORKLOADS:
        number = workload.owner.spec.get("priority").optional_integer(minimum=-MAX_INTEGER)
    return workload.priority if number is None else number


def _parse_minimum(owner: KubeObject, pods: PodSet) -> dict[str, int]:
    """Return the fewest pods of a set, if Kueue may admit a part of them."""
    minimum = pods.minimum if owner.group == _GROUP_OF_WORKLOADS else None
    if (owner.group, owner.kind) == ("batch", "Job"):
        field = owner.annotations.get(PREFIX + _MIN_PARALLELISM)
        count = field.integer_from_text()
        minimum = None if count is None else Minimum(count, field)
    if minimum is None:
        return {}
    return {"min": cap_minimum(minimum.field, minimum.num_pods, pods.count)}


def _find_pod_group(manifests: Manifests) -> Workload:
    """Return the pods of one group, ordered by rank."""
    if not manifests.pods:
        raise describe_missing(manifests, "a workload, or pods of one group")
    pods = sorted(keep_members(manifests.pods, _find_group_name), key=_parse_rank)
    sets = group_pods(pods)
    example = next(pod for pod in pods if pod.field is sets[0].template)
    mark_equal_annotations([example, *(pod for pod in pods if pod is not example)], PREFIX)
    owner = KubeObject("", "Pod", _find_group_name(example) or example.name, example.field)
    return Workload(owner, _complete_group(owner, sets))


def _complete_group(owner: KubeObject, sets: tuple[PodSet, ...]) -> tuple[PodSet, ...]:
    """Return the pods of a group; with fast admission, missing pods are like the first."""
    total = owner.annotations.get(PREFIX + "pod-group-total-count")
    is_fast = owner.annotations.get(PREFIX + "pod-group-fast-admission").raw() == "true"
    listed = sum(pods.count for pods in sets)
    count = total.integer_from_text() or listed
    if count == listed:
        return sets
    if count > listed and is_fast and len(sets) == 1:
        total.note(f"the file has {listed} of its pods; the others are like the first")
        return (replace(sets[0], count=count),)
    problem = f"the file has {listed} of its pods, which are placed"
    (total.warn if count > listed else total.note)(problem)
    return sets


def _find_group_name(pod: KubeObject) -> str:
    return pod.labels.get(PREFIX + "pod-group-name").text()


def _parse_rank(pod: KubeObject) -> int:
    key = PREFIX + _RANK
    rank = pod.annotations.get(key).integer_from_text(minimum=0)
    return (rank if rank is not None else pod.labels.get(key).integer_from_text(minimum=0)) or 0


class _TopologyAnnotations:
    """Kueue's topology settings of one set of pods, from annotations or a Workload."""

    def __init__(self, pods: PodSet, levels: LevelNames) -> None:
        self.pods = pods
        self.levels = levels

    def get(self, key: str) -> Field:
        """Return the field of a setting."""
        if self.pods.topology is not None and self.pods.topology.exists and key in _FIELDS:
            return self.pods.topology.get(_FIELDS[key])
        return self.pods.annotations.get(PREFIX + key)

    def find_tier(self, key: str) -> str:
        """Return the tier in a setting; empty if it is not set."""
        return self.levels.find_tier(self.get(key))


def _parse_tiers(annotations: _TopologyAnnotations) -> dict[str, Any]:
    required, preferred = annotations.find_tier(_REQUIRED), annotations.find_tier(_PREFERRED)
    anywhere = str(annotations.get(_UNCONSTRAINED).raw() or "").lower() == "true"
    if (bool(required), bool(preferred), anywhere).count(True) > 1:
        problem = "required, preferred and unconstrained exclude each other"
        raise PlacementRequestError(annotations.get(_REQUIRED).path, problem)
    tiers, layers = build_bounds(required, [preferred]), _parse_layers(annotations)
    return tiers | {"slices": layers} if layers else tiers


def _allow_partial_slice(row: dict[str, Any]) -> None:
    """Let the last slice be short where Kueue 0.20 does: with one layer, and pods for one slice."""
    layers = row.get("slices", [])
    if len(layers) != 1 or layers[0]["size"] > row["count"]:
        return
    if row["count"] % layers[0]["size"] or row.get("min", row["count"]) < row["count"]:
        layers[0] |= {"remainder": "short", "indexed": True}


def _note_other_annotations(annotations: Field) -> None:
    """Say why an annotation of Kueue 0.20 has no effect on the placement of this gang."""
    spreading = annotations.get(PREFIX + _SPREADING)
    if spreading.exists:
        # It stays unread, so it is listed among the fields that may matter.
        spreading.note(
            "limits the share of other workloads in each domain, which the request does not list; "
            "Kueue follows it with the feature gate TASTopologySpreading"
        )
    not_ready = annotations.get(PREFIX + _MAX_NOT_READY)
    if not_ready.exists:
        count = show(str(not_ready.raw()))
        not_ready.note(f"no effect on placement: all pods get a place, {count} may be not ready")


def _note_admission(owner: KubeObject) -> None:
    """Say that the pods of an admitted Workload have nodes already."""
    if owner.kind == "Workload" and owner.field.get("status", "admission").exists:
        admission = owner.field.get("status", "admission")
        admission.raw()
        admission.note("Kueue has admitted it; the answer is for its pods as if they had no nodes")


def _parse_layers(annotations: _TopologyAnnotations) -> list[dict[str, Any]]:
    """Return the layers of slices, coarse to fine."""
    tier, size = annotations.find_tier(_SLICE), annotations.get(_SIZE).integer_from_text()
    constraints = annotations.get(_LAYERS)
    if constraints.exists:
        if tier:
            problem = f"expected one of {_SLICE} and {_LAYERS}"
            raise PlacementRequestError(constraints.path, problem)
        return _parse_listed_layers(constraints, annotations.levels)
    if not tier:
        return []
    size = size or annotations.pods.replica_size
    if size is None:
        raise PlacementRequestError(annotations.get(_SIZE).path, f"is required with {_SLICE}")
    return [{"size": size, "tier": tier}]


def _parse_listed_layers(field: Field, levels: LevelNames) -> list[dict[str, Any]]:
    # A list in a Workload, or the JSON of one in an annotation.
    listed = field if isinstance(field.value, list) else field.decode_json("a list", list)
    rows = listed.items()
    if not 1 <= len(rows) <= _MAX_LAYERS:
        raise field.build_error(f"expected 1 to {_MAX_LAYERS} layers")
    layers: list[dict[str, Any]] = []
    for layer in rows:
        size = layer.get("size").optional_integer(minimum=1)
        tier = levels.find_tier(layer.get("topology"))
        if size is None or not tier:
            raise layer.build_error("expected a topology and a size")
        layers.append({"size": size, "tier": tier})
    return layers


def _link_leaders(sets: Sequence[PodSet], groups: Sequence[dict[str, Any]]) -> None:
    """Link each leader to its workers: two sets of one group, one of them a single pod."""
    members_by_group: dict[str, list[int]] = {}
    for index, pods in enumerate(sets):
        field = _TopologyAnnotations(pods, LevelNames()).get(_GROUP)
        if field.text():
            members_by_group.setdefault(field.text(), []).append(index)
    for name, members in members_by_group.items():
        field = _TopologyAnnotations(sets[members[0]], LevelNames()).get(_GROUP)
        singles = [index for index in members if sets[index].count == 1]
        if len(members) == len(singles) == 1:
            continue  # a leader whose workers are none
        if len(members) != 2 or not singles:  # noqa: PLR2004 - a leader and its workers
            problem = f"expected two sets in group {name}, one of them of one pod"
            raise PlacementRequestError(field.path, problem)
        leader = singles[0]
        worker = members[1] if leader == members[0] else members[0]
        groups[leader]["leader_of"] = groups[worker]["name"]
