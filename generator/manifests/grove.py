"""Translates Grove's PodCliqueSet: cliques of pods, and scaling groups of cliques.

A replica of the set is a gang. Of a scaling group, `minAvailable` replicas belong to that gang, and
each further replica is a gang of its own.

Source: ai-dynamo/grove, operator/api/core/v1alpha1/podcliqueset.go, of August 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.objects import Manifests
from generator.manifests.pods import parse_priority
from generator.manifests.tier_names import LevelNames
from generator.manifests.workloads import PodSet
from generator.placement.presets import Preset
from topology.model.errors import PlacementRequestError, show

GROUP: Final = "grove.io"
KIND: Final = "PodCliqueSet"
_MAX_REPLICAS: Final = 256
"""Of a scaling group in one gang; each is a group of the request."""


def is_present(manifests: Manifests) -> bool:
    """Return whether a file has a PodCliqueSet."""
    return bool(manifests.select(KIND, group=GROUP))


def parse_spec(manifests: Manifests) -> dict[str, Any]:
    """Return the spec of the request for one replica.

    Raises:
        PlacementRequestError: a required field is malformed, or there are several sets.
    """
    sets = manifests.select(KIND, group=GROUP)
    if len(sets) > 1:
        problem = f"the file has {len(sets)} sets, but one is placed at a time"
        raise PlacementRequestError(sets[1].title, problem)
    (owner,) = sets
    replicas = owner.spec.get("replicas")
    if replicas.integer(1) > 1:
        replicas.note("each replica is a separate gang; the answer is for one replica")
    template, levels = owner.spec.get("template"), manifests.levels
    cliques = _read_cliques(template.get("cliques"))
    used: set[str] = set()
    groups = [
        _build_scaling_group(row, cliques, used, levels)
        for row in template.get("podCliqueScalingGroups").items()
    ]
    single = [name for name in cliques if name not in used]
    rows = [_build_clique(name, cliques[name], levels) for name in single] + groups
    if not rows:
        raise template.get("cliques").build_error("expected at least one clique")
    priority = max(parse_priority(_find_pods(name, row).template) for name, row in cliques.items())
    return {
        "preset": Preset.KAI.value,
        "gang": owner.name,
        "priority": priority,
        "groups": rows,
    } | _parse_tiers(template.get("topologyConstraint"), levels)


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
    least = spec.get("minAvailable").integer(group["count"], minimum=1)
    tiers = _parse_tiers(row.get("topologyConstraint"), levels)
    return group | {"min": min(least, group["count"])} | tiers


def _build_scaling_group(
    row: Field, cliques: Mapping[str, Field], used: set[str], levels: LevelNames
) -> dict[str, Any]:
    """Return the replicas of a scaling group that belong to the gang."""
    name = row.get("name").text()
    replicas = row.get("replicas").integer(1, minimum=1)
    least = min(row.get("minAvailable").integer(1, minimum=1), replicas)
    if least > _MAX_REPLICAS:
        raise row.get("minAvailable").build_error(f"expected at most {_MAX_REPLICAS}")
    if least < replicas:
        row.get("replicas").note(
            f"{least} of {replicas} are in the gang; each other is its own gang"
        )
    members = []
    for field in row.get("cliqueNames").items():
        clique = field.text()
        if clique not in cliques or clique in used:
            raise field.build_error(f"expected a clique of no other group, got {show(clique)}")
        used.add(clique)
        members.append(clique)
    if not members:
        raise row.get("cliqueNames").build_error("expected at least one clique")
    tiers = _parse_tiers(row.get("topologyConstraint"), levels)
    replicas_rows = [
        {
            "name": f"{name}-{replica}",
            "children": [
                _build_clique(clique, cliques[clique], levels)
                | {"name": f"{clique}-{name}-{replica}"}
                for clique in members
            ],
        }
        | tiers
        for replica in range(least)
    ]
    return replicas_rows[0] if least == 1 else {"name": name, "children": replicas_rows}


def _parse_tiers(field: Field, levels: LevelNames) -> dict[str, Any]:
    """Return the tiers of each replica; `packDomain` is the older name of `pack.required`."""
    field.get("topologyName").text()
    pack = field.get("pack")
    required = levels.find_tier(pack.get("required")) or levels.find_tier(field.get("packDomain"))
    preferred = levels.find_tier(pack.get("preferred"))
    tiers: dict[str, Any] = {"required": required} if required else {}
    return tiers | {"preferred": [preferred]} if preferred else tiers
