"""Reads the affinity and anti-affinity of the pods of a gang to each other.

Anti-affinity among the pods of a group makes each pod a slice, so that no two share a domain of the
tier. Affinity is a required tier. Terms about other pods are listed as ignored, because only the
cluster knows where these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.gang_pods.running_pods import PODS
from generator.manifests.tier_names import LevelNames, join_tiers

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TERM_FIELDS: Final = frozenset({"labelSelector", "topologyKey"})
"""A term with other fields is not read: they select pods by what only the cluster knows."""
_SELECTOR_FIELDS: Final = frozenset({"matchExpressions", "matchLabels"})


def add_pod_affinity(rows: Sequence[dict[str, Any]], levels: LevelNames) -> None:
    """Add to groups what the affinity among their own pods asks for.

    Args:
        rows: all groups of pods of the gang.
        levels: tiers by label key.

    Raises:
        PlacementRequestError: a term is malformed.
    """
    templates = [row[PODS].template for row in rows if PODS in row]
    for row in rows:
        template = row[PODS].template if PODS in row else None
        if template is not None and templates.count(template) == 1:
            others = [other for other in templates if other is not template]
            row.update(_parse_affinity(row, template, others, levels))


def _parse_affinity(
    row: Mapping[str, Any], template: Field, others: Sequence[Field], levels: LevelNames
) -> dict[str, Any]:
    affinity = template.get("spec", "affinity")
    found: dict[str, Any] = {}
    read = list(_find_own_terms(affinity.get("podAffinity"), template, others))
    if read:
        tiers = [levels.find_tier(term.get("topologyKey")) for term in read]
        found["required"] = join_tiers([*filter(None, [row.get("required")]), *tiers])
    repelling = list(_find_own_terms(affinity.get("podAntiAffinity"), template, others))
    if len(repelling) == 1 and "slices" not in row:
        tier = levels.find_tier(repelling[0].get("topologyKey"))
        found["slices"] = [{"size": 1, "tier": tier, "placement": "spread"}]
        read += repelling
    for term in read:
        term.raw()
        term.note("counts the pods of the gang; others with such labels are not known")
    return found


def _find_own_terms(field: Field, template: Field, others: Sequence[Field]) -> Iterator[Field]:
    """Yield the required terms that select the pods of a template, and of no other one."""
    for term in field.get(_REQUIRED).items():
        if not isinstance(term.value, dict) or term.value.keys() != _TERM_FIELDS:
            continue
        selected = [_selects(term.get("labelSelector"), pods) for pods in (template, *others)]
        if selected[0] and sum(selected) == 1:
            yield term


def _selects(selector: Field, template: Field) -> bool:
    """Return whether a selector selects the pods of a template, as far as it is understood."""
    labels = {key: value.value for key, value in template.get("metadata", "labels").entries()}
    if not {key for key, _ in selector.entries()} <= _SELECTOR_FIELDS:
        return False
    named = selector.get("matchLabels").entries()
    rows = selector.get("matchExpressions").items()
    return all(labels.get(key) == value.value for key, value in named) and all(
        _meets(row, labels) for row in rows
    )


def _meets(row: Field, labels: Mapping[str, object]) -> bool:
    value = labels.get(str(row.get("key").value))
    is_named = value in [item.value for item in row.get("values").items()]
    match row.get("operator").value:
        case "In":
            return is_named
        case "NotIn":
            return not is_named
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return False
