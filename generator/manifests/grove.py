"""Translates Grove's PodCliqueSet: cliques of pods, and scaling groups of cliques.

A replica of the set is a gang. Of a scaling group, `minAvailable` replicas belong to that gang, and
each further replica is a gang of its own. A bound of the whole set holds for all of them together,
so they are then placed as far as the domain has room, and the domain with the most room wins. KAI
bounds each gang alone: see ai-dynamo/grove, issue 648.

Source: ai-dynamo/grove, operator/api/core/v1alpha1/podcliqueset.go, of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.fields import Field, FieldTable
from generator.manifests.kinds.object_fields import (
    ENDS,
    NAMES,
    POD_SPEC,
    find_key_row,
    list_object_fields,
)
from generator.manifests.kinds.pod_sets import PodSet, cap_minimum
from generator.manifests.objects import Manifests, find_only
from generator.manifests.pods import parse_priority
from generator.manifests.tier_names import LevelNames, build_bounds
from generator.manifests.workloads import describe_missing
from generator.placement.presets import Preset
from generator.placement.wire import MAX_GROUPS
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "grove.io"
KIND: Final = "PodCliqueSet"
_START: Final = "says in which order pods start"
_GROWS: Final = "says how far the set may grow later"
FIELDS: Final[dict[tuple[str, str], FieldTable]] = {
    (GROUP, KIND): list_object_fields(
        {
            "template": {
                "cliqueStartupType": _START,
                "cliques": {
                    "annotations": find_key_row,
                    "labels": find_key_row,
                    "spec": {
                        "autoScalingConfig": _GROWS,
                        "podSpec": POD_SPEC,
                        "roleName": "names a role",
                        "startsAfter": _START,
                    },
                },
                "headlessServiceConfig": NAMES,
                "podCliqueScalingGroups": {"annotations": find_key_row, "scaleConfig": _GROWS},
                "terminationDelay": ENDS,
            },
            "updateStrategy": "says how pods are replaced by newer ones",
        }
    )
}
"""A class of priority, and shared claims of devices, may matter."""


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has a PodCliqueSet."""
    return bool(manifests.select(KIND, group=GROUP))


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request for one replica.

    Raises:
        PlacementRequestError: a required field is malformed, or there are several sets.
    """
    owner = find_only(manifests.select(KIND, group=GROUP), "sets")
    if owner is None:
        raise describe_missing(manifests, f"a {KIND}")
    replicas = owner.spec.get("replicas")
    if not replicas.integer(1):
        raise PlacementRequestError(owner.title, "has no pods to place")
    if replicas.integer(1) > 1:
        replicas.note("each replica is a separate gang; the answer is for one replica")
    template, levels = owner.spec.get("template"), manifests.levels
    cliques = _read_cliques(template.get("cliques"))
    tiers = _parse_tiers(template.get("topologyConstraint"), levels)
    scaled = template.get("podCliqueScalingGroups").items()
    is_whole = "required" in tiers
    used: set[str] = set()
    groups = [_build_scaling_group(row, cliques, used, levels, is_whole=is_whole) for row in scaled]
    single = [name for name in cliques if name not in used]
    rows = [_build_clique(name, cliques[name], levels) for name in single] + groups
    if not rows:
        raise template.get("cliques").build_error("expected at least one clique")
    priority = max(parse_priority(_find_pods(name, row).template) for name, row in cliques.items())
    has_more = any(row.get("min", 0) < len(row["children"]) for row in groups if "min" in row)
    return {
        "preset": (Preset.OPTIMAL if has_more else Preset.KAI).value,
        "gang": owner.name,
        "priority": priority,
        "groups": rows,
    } | tiers


def _read_cliques(field: Field) -> dict[str, Field]:
    """Return the cliques by name."""
    cliques: dict[str, Field] = {}
    for row in field.items():
        name = row.get("name").text()
        if not name or name in cliques:
            raise row.get("name").build_error("expected a unique name")
        cliques[name] = row
    return cliques


def _find_pods(name: str, row: Field) -> PodSet:
    """Return the pods of a clique; its `podSpec` is the spec of a pod template."""
    spec = row.get("spec")
    template = row.regroup(metadata=row, spec=spec.get("podSpec"))
    return PodSet(name, spec.get("replicas").integer(1, minimum=1), template)


def _build_clique(name: str, row: Field, levels: LevelNames) -> dict[str, Any]:
    """Return the group of a clique; without `minAvailable`, all of its pods are needed."""
    spec = row.get("spec")
    group = _find_pods(name, row).render_group()
    field, count = spec.get("minAvailable"), group["count"]
    least = cap_minimum(field, field.integer(count, minimum=1), count)
    return group | {"min": least} | _parse_tiers(row.get("topologyConstraint"), levels)


def _build_scaling_group(
    row: Field, cliques: Mapping[str, Field], used: set[str], levels: LevelNames, *, is_whole: bool
) -> dict[str, Any]:
    """Return the replicas of a scaling group.

    Args:
        row: the scaling group.
        cliques: the cliques, by name.
        used: names of cliques that are in a scaling group; grows.
        levels: tiers by level name.
        is_whole: whether all replicas share a bound, not only those in the gang.
    """
    name = row.get("name").text()
    replicas = row.get("replicas").integer(1, minimum=1)
    least = min(row.get("minAvailable").integer(1, minimum=1), replicas)
    members = _find_members(row.get("cliqueNames"), cliques, used)
    count = replicas if is_whole else least
    if count * len(members) > MAX_GROUPS:
        limit = MAX_GROUPS // len(members)
        field = "replicas" if is_whole else "minAvailable"
        raise row.get(field).build_error(f"expected at most {limit}")
    if least < replicas:
        others = "share the bound of the set" if is_whole else "are gangs of their own"
        row.get("replicas").note(f"{least} of {replicas} are in the gang; the others {others}")
    tiers = _parse_tiers(row.get("topologyConstraint"), levels)
    rows = [
        {
            "name": f"{name}-{replica}",
            "children": [
                _build_clique(clique, cliques[clique], levels)
                | {"name": f"{clique}-{name}-{replica}"}
                for clique in members
            ],
        }
        | tiers
        for replica in range(count)
    ]
    return rows[0] if count == 1 else {"name": name, "children": rows, "min": least}


def _find_members(field: Field, cliques: Mapping[str, Field], used: set[str]) -> list[str]:
    members = []
    for row in field.items():
        clique = row.text()
        if clique not in cliques or clique in used:
            raise row.build_error(f"expected a clique of no other group, got {show(clique)}")
        used.add(clique)
        members.append(clique)
    if not members:
        raise field.build_error("expected at least one clique")
    return members


def _parse_tiers(field: Field, levels: LevelNames) -> dict[str, Any]:
    """Return the tiers of each replica; `packDomain` is the older name of `pack.required`."""
    field.get("topologyName").text()
    pack = field.get("pack")
    required = levels.find_tier(pack.get("required")) or levels.find_tier(field.get("packDomain"))
    return build_bounds(required, [levels.find_tier(pack.get("preferred"))])
