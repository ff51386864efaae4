"""Translates Koordinator's PodGroup, and gangs of annotated pods.

Source: koordinator-sh/koordinator, apis/extension (gang and network topology annotations).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable, Relevance, find_ignored
from generator.manifests.kinds.object_fields import list_object_fields
from generator.manifests.kinds.pod_sets import (
    Workload,
    build_unknown_pods,
    cap_minimum,
    share_minimum,
)
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix
from generator.manifests.tier_names import LevelNames, build_bounds, join_tiers
from generator.manifests.workloads import (
    describe_missing,
    find_group_pods,
    find_only_group,
    find_workload,
    group_pods,
    mark_equal_annotations,
)
from generator.placement.presets import Preset
from topology.model.ids import natural_key

GROUP: Final = "scheduling.sigs.k8s.io"
PREFIX: Final = "gang.scheduling.koordinator.sh/"
_SPEC: Final = f"{PREFIX}network-topology-spec"
_RANK: Final = f"{PREFIX}network-topology-index"
_MEMBER: Final = "pod-group.scheduling.sigs.k8s.io"
_LAST_RANK: Final = 1 << 62
FIELDS: Final[dict[tuple[str, str], FieldTable]] = {
    (GROUP, "PodGroup"): list_object_fields(
        {
            "minResources": "says when the pods start, not where",
            "scheduleTimeoutSeconds": "says when the scheduler gives up",
        }
    )
}


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has Koordinator's PodGroup or annotations."""
    return any(
        (object_.kind == "PodGroup" and object_.group == GROUP)
        or has_key_prefix(object_.field.value, PREFIX)
        for object_ in manifests.objects
    )


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a required field is malformed.
    """
    group = find_only_group(manifests, GROUP)
    workload = find_workload(manifests)
    if workload is not None:
        owner, sets = group or workload.owner, workload.sets
        annotations = group.annotations if group else workload.sets[0].annotations
    else:
        pods = find_group_pods(manifests, group, _MEMBER) if group else manifests.pods
        ranked = sorted(pods, key=_build_rank_key)
        sets = group_pods(ranked)
        owner = group or _find_first_pod(ranked, manifests)
        annotations = owner.annotations
        mark_equal_annotations(ranked, PREFIX)
    names = [keys.get(f"{PREFIX}name").text() for keys in (annotations, owner.annotations)]
    name = next(filter(None, names), owner.name)
    tiers, multiples = _parse_gather_strategy(annotations.get(_SPEC), manifests.levels)
    groups = [pod_set.render_group() for pod_set in sets]
    if not groups:
        count = owner.spec.get("minMember").integer(1, minimum=1)
        groups = [build_unknown_pods(owner.field, count)]
    if multiples:
        groups = [row | {"multiple_of": multiples} for row in groups]
    _check_total(annotations.get(f"{PREFIX}total-number"), sum(row["count"] for row in groups))
    spec = {"preset": Preset.KOORDINATOR.value, "gang": name} | tiers
    gang = workload or Workload(owner, tuple(sets))
    return spec | {"priority": gang.priority} | _build_gang(owner, annotations, gang, groups)


def _find_first_pod(pods: Sequence[KubeObject], manifests: Manifests) -> KubeObject:
    if not pods:
        raise describe_missing(manifests, "a PodGroup, a workload or pods")
    return pods[0]


def _build_rank_key(pod: KubeObject) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Order by index, pods without a valid index last, then by name."""
    field = pod.annotations.get(_RANK)
    text = str(field.raw() or "")
    return (int(text) if text.isdecimal() and len(text) < 10 else _LAST_RANK, natural_key(pod.name))  # noqa: PLR2004 - digits of a rank


def _check_total(total: Field, listed: int) -> None:
    """Report pods that the gang waits for and that the file does not have."""
    count = total.integer_from_text()
    if count is not None and count > listed:
        total.warn(f"the file has {listed} of its pods, which are placed")


def _build_gang(
    owner: KubeObject, annotations: Field, gang: Workload, groups: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the groups with the minimum of the gang; a PodGroup without a minimum needs no pods.

    Source: pkg/scheduler/plugins/coscheduling/core/gang.go, tryInitByPodGroup.
    """
    if owner.kind == "PodGroup":
        field = owner.spec.get("minMember")
        wanted: int | None = field.integer(0)
    else:
        field = annotations.get(f"{PREFIX}min-available")
        wanted = field.integer_from_text()
    if wanted is None:
        return {"groups": groups} | (gang.apply_minimum(groups) if gang.sets else {})
    gang.note_unused_minimum("Koordinator reads the minimum of the gang")
    total = sum(row["count"] for row in groups)
    minimum = cap_minimum(field, wanted, total)
    if minimum == total:
        return {"groups": groups}
    return share_minimum(groups, minimum)


def _parse_gather_strategy(
    field: Field, levels: LevelNames
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the tiers of the whole gang, and the multiples by tier."""
    if not field.exists:
        return {}, {}
    required: list[str] = []
    preferred: list[str] = []
    multiples: dict[str, int] = {}
    for row in _parse_strategies(field):
        tier = levels.find_tier(row.get("layer"))
        strategy = row.get("strategy").text("PreferGather")
        if strategy not in {"MustGather", "PreferGather"} or not tier:
            raise row.build_error("expected a layer, and MustGather or PreferGather")
        (required if strategy == "MustGather" else preferred).append(tier)
        multiple = row.get("podCountMultiple").integer(1, minimum=1)
        if multiple > 1:
            multiples[tier] = multiple
    if len(required) > 1:
        field.note("of several layers with MustGather, the lowest counts")
    return build_bounds(join_tiers(required), preferred), multiples


def _parse_strategies(field: Field) -> list[Field]:
    inner = field.decode_json("an object", dict)
    rows = inner.get("gatherStrategy").items()
    for row in find_ignored(inner, {"gatherStrategy": "is read below"}):
        if row.relevance is Relevance.POSSIBLE:
            inner.warn(f"{row.path} is not understood")
    return rows
