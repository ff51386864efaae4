"""Koordinator's PodGroup and gangs of annotated pods.

Source: koordinator-sh/koordinator, apis/extension (gang and network topology annotations).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests, Object, mentions
from generator.manifests.pod_groups import lone_group, pods_of_group
from generator.manifests.pods import priority_of
from generator.manifests.tier_names import Levels, finest
from generator.manifests.workloads import PodSet, find_workload, sets_of_pods
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError
from topology.model.ids import natural_key

GROUP: Final = "scheduling.sigs.k8s.io"
PREFIX: Final = "gang.scheduling.koordinator.sh/"
_SPEC: Final = f"{PREFIX}network-topology-spec"
_RANK: Final = f"{PREFIX}network-topology-index"
_MEMBER: Final = "pod-group.scheduling.sigs.k8s.io"
_LAST: Final = 1 << 62


def is_mine(manifests: Manifests) -> bool:
    """Return whether its PodGroup or its annotations are there."""
    return any(
        (one.kind == "PodGroup" and one.group == GROUP) or mentions(one.field.value, PREFIX)
        for one in manifests.objects
    )


def read(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request.

    Raises:
        PlacementRequestError: a field that counts is malformed.
    """
    group = lone_group(manifests, GROUP)
    workload = find_workload(manifests)
    if workload is not None:
        owner, sets = group or workload.owner, workload.sets
        bearer = group.annotations if group else workload.sets[0].annotations
    else:
        pods = pods_of_group(manifests, group, _MEMBER) if group else manifests.pods
        ranked = sorted(pods, key=_rank)
        sets = sets_of_pods(ranked, lambda _: "")
        owner = group or _first(ranked)
        bearer = owner.annotations
    spec = {"preset": Preset.KOORDINATOR.value, "gang": _name(owner)}
    wish, multiples = _gathering(bearer.at(_SPEC), manifests.levels)
    groups = _groups(owner, sets)
    if multiples:
        groups = [row | {"multiple_of": multiples} for row in groups]
    return spec | wish | _minimum(owner, groups, sets)


def _first(pods: Sequence[Object]) -> Object:
    if not pods:
        raise PlacementRequestError("the file", "expected a PodGroup, a workload or pods")
    return pods[0]


def _name(owner: Object) -> str:
    return owner.annotations.at(f"{PREFIX}name").text(owner.name)


def _rank(pod: Object) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """Order by index, pods without a usable one after the others, then by name."""
    field = pod.annotations.at(_RANK)
    text = str(field.raw() or "")
    return (int(text) if text.isdecimal() and len(text) < 10 else _LAST, natural_key(pod.name))  # noqa: PLR2004 - digits of a rank


def _groups(owner: Object, sets: Sequence[PodSet]) -> list[dict[str, Any]]:
    if sets:
        return [one.row() for one in sets]
    owner.field.note("no pod of it is in the file: what its pods ask for is not known")
    return [{"name": "pods", "count": owner.spec.at("minMember").whole(1, least=1)}]


def _minimum(owner: Object, groups: list[dict[str, Any]], sets: Sequence[PodSet]) -> dict[str, Any]:
    priority = max((priority_of(one.template) for one in sets), default=0)
    least = owner.spec.at("minMember").maybe_whole() if owner.kind == "PodGroup" else None
    if least is None:
        least = owner.annotations.at(f"{PREFIX}min-available").numeral()
    found: dict[str, Any] = {"priority": priority, "groups": groups}
    total = sum(row["count"] for row in groups)
    if least is None or least >= total:
        return found
    if len(groups) == 1:
        groups[0]["min"] = least
        return found
    for row in groups:
        row["min"] = 0
    return found | {"min": least}


def _gathering(field: Field, levels: Levels) -> tuple[dict[str, Any], dict[str, int]]:
    """Return what the whole gang wishes, and the multiples per tier."""
    if not field.exists:
        return {}, {}
    must: list[str] = []
    wished: list[str] = []
    multiples: dict[str, int] = {}
    for row in _strategies(field):
        tier = levels.tier(row.at("layer"))
        strategy = row.at("strategy").text("PreferGather")
        if strategy not in {"MustGather", "PreferGather"} or not tier:
            raise row.fault("expected a layer, and MustGather or PreferGather")
        (must if strategy == "MustGather" else wished).append(tier)
        multiple = row.at("podCountMultiple").whole(1, least=1)
        if multiple > 1:
            multiples[tier] = multiple
    found: dict[str, Any] = {"required": finest(must)} if must else {}
    if len(must) > 1:
        field.note(f"of several layers that must gather, '{found['required']}' is the lowest")
    return found | {"preferred": wished} if wished else found, multiples


def _strategies(field: Field) -> list[Field]:
    try:
        decoded = json.loads(field.text())
    except (ValueError, RecursionError) as error:
        raise field.fault("expected an object in JSON") from error
    inner = Field(decoded, field.path, field.notes)
    rows = inner.at("gatherStrategy").items()
    for path in inner.unread():
        if not path.startswith(f"{inner.path}.gatherStrategy"):
            inner.note(f"{path} is not understood")
    return rows
