"""Translates Koordinator's PodGroup, and gangs of annotated pods.

Source: koordinator-sh/koordinator, apis/extension (gang and network topology annotations).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import KubeObject, Manifests, has_key_prefix
from generator.manifests.pod_groups import find_group_pods, find_only_group
from generator.manifests.pods import parse_priority
from generator.manifests.tier_names import LevelNames, join_tiers
from generator.manifests.workloads import PodSet, find_workload, group_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError
from topology.model.ids import natural_key

GROUP: Final = "scheduling.sigs.k8s.io"
PREFIX: Final = "gang.scheduling.koordinator.sh/"
_SPEC: Final = f"{PREFIX}network-topology-spec"
_RANK: Final = f"{PREFIX}network-topology-index"
_MEMBER: Final = "pod-group.scheduling.sigs.k8s.io"
_LAST_RANK: Final = 1 << 62


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
        sets = group_pods(ranked, lambda _: "")
        owner = group or _find_first_pod(ranked)
        annotations = owner.annotations
    spec = {"preset": Preset.KOORDINATOR.value, "gang": _find_gang_name(owner)}
    tiers, multiples = _parse_gather_strategy(annotations.get(_SPEC), manifests.levels)
    groups = _build_groups(owner, sets)
    if multiples:
        groups = [row | {"multiple_of": multiples} for row in groups]
    return spec | tiers | _parse_minimum(owner, groups, sets)


def _find_first_pod(pods: Sequence[KubeObject]) -> KubeObject:
    if not pods:
        raise PlacementRequestError("the file", "expected a PodGroup, a workload or pods")
    return pods[0]


def _find_gang_name(owner: KubeObject) -> str:
    return owner.annotations.get(f"{PREFIX}name").text(owner.name)


def _build_rank_key(pod: KubeObject) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Order by index, pods without a valid index last, then by name."""
    field = pod.annotations.get(_RANK)
    text = str(field.raw() or "")
    return (int(text) if text.isdecimal() and len(text) < 10 else _LAST_RANK, natural_key(pod.name))  # noqa: PLR2004 - digits of a rank


def _build_groups(owner: KubeObject, sets: Sequence[PodSet]) -> list[dict[str, Any]]:
    if sets:
        return [pod_set.render_group() for pod_set in sets]
    owner.field.note("the file has none of its pods, so their resource requests are unknown")
    return [{"name": "pods", "count": owner.spec.get("minMember").integer(1, minimum=1)}]


def _parse_minimum(
    owner: KubeObject, groups: list[dict[str, Any]], sets: Sequence[PodSet]
) -> dict[str, Any]:
    priority = max((parse_priority(pod_set.template) for pod_set in sets), default=0)
    minimum = owner.spec.get("minMember").optional_integer() if owner.kind == "PodGroup" else None
    if minimum is None:
        minimum = owner.annotations.get(f"{PREFIX}min-available").integer_from_text()
    spec: dict[str, Any] = {"priority": priority, "groups": groups}
    total = sum(row["count"] for row in groups)
    if minimum is None or minimum >= total:
        return spec
    if len(groups) == 1:
        groups[0]["min"] = minimum
        return spec
    for row in groups:
        row["min"] = 0
    return spec | {"min": minimum}


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
    tiers: dict[str, Any] = {"required": join_tiers(required)} if required else {}
    if len(required) > 1:
        field.note("of several layers with MustGather, the lowest counts")
    return tiers | {"preferred": preferred} if preferred else tiers, multiples


def _parse_strategies(field: Field) -> list[Field]:
    try:
        decoded = json.loads(field.text())
    except (ValueError, RecursionError) as error:
        raise field.build_error("expected an object in JSON") from error
    inner = Field(decoded, field.path, field.notes)
    rows = inner.get("gatherStrategy").items()
    for path in inner.find_unread():
        if not path.startswith(f"{inner.path}.gatherStrategy"):
            inner.note(f"{path} is not understood")
    return rows
