"""Reads a pod template: its requests, its priority, the nodes that it may use, and its affinity.

Fields that this module does not read are listed as ignored: an operator or an effect of a newer
Kubernetes, and preferences that `node_preference` cannot express.

Anti-affinity among the pods of a group makes each pod a slice, so that no two share a domain of the
tier. Affinity is a required tier. Terms about other pods are listed as ignored, because only the
cluster knows where these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from typing import Any, Final

from generator.manifests.fields import Field
from generator.manifests.gang_pods import PODS
from generator.manifests.tier_names import LevelNames, join_tiers
from generator.objects.pods import combine_requests
from generator.placement.node_selection import (
    NAME_FIELD,
    NodeOperator,
    TaintEffect,
    TolerationOperator,
    is_integer,
)
from generator.placement.quantities import count_units, parse_amount, render_quantity


def parse_pod_fields(template: Field) -> dict[str, Any]:
    """Return the fields of a request's group that equal pods share.

    Quantities are rounded up to units, as free capacity on nodes is rounded down.

    Raises:
        PlacementRequestError: a required field is malformed.
    """
    spec = template.get("spec")
    return {"request": _compute_request(spec), **parse_node_constraints(spec)}


def parse_priority(template: Field) -> int:
    """Return the pods' priority; the value of a priority class is known only in the cluster."""
    return template.get("spec", "priority").integer(0)


def _compute_request(spec: Field) -> dict[str, int | str]:
    """Return the effective request of a pod. Source: the KEPs on sidecars and pod resources."""
    init = spec.get("initContainers").items()
    total = combine_requests(
        map(_parse_requests, spec.get("containers").items()),
        [(_parse_requests(row), row.get("restartPolicy").text() == "Always") for row in init],
        pod=_parse_requests(spec),
        overhead=_parse_amounts(spec.get("overhead")),
    )
    return {name: _round_amount(spec, name, total[name]) for name in sorted(total) if total[name]}


def _round_amount(spec: Field, name: str, amount: Decimal) -> int | str:
    quantity = render_quantity(name, count_units(name, amount))
    if parse_amount(quantity) != amount:
        spec.note(f"{name} of {amount.normalize():f} is rounded up to {quantity}")
    return quantity


def _parse_requests(container: Field) -> dict[str, Decimal]:
    """Return requests; a limit replaces a missing request."""
    container.get("name").raw()
    resources = container.get("resources")
    return _parse_amounts(resources.get("limits")) | _parse_amounts(resources.get("requests"))


def _parse_amounts(field: Field) -> dict[str, Decimal]:
    amounts: dict[str, Decimal] = {}
    for name, quantity in field.entries():
        try:
            amounts[name] = parse_amount(quantity.raw())
        except ValueError as error:
            problem = str(error).partition(", got ")[0]  # build_error appends the value
            raise quantity.build_error(problem) from error
    return amounts


Terms = list[list[dict[str, Any]]]
"""Terms of the field `node_affinity` of a group."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_ANY_VALUES: Final = frozenset({NodeOperator.IN, NodeOperator.NOT_IN})
_ONE_INTEGER: Final = frozenset({NodeOperator.GT, NodeOperator.LT})
_NODE_FAILURES: Final = frozenset(
    {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
)
"""Kubernetes adds a toleration of these taints, for 300 s, to every pod. It keeps pods on a node
that fails for a short time, and is no reason to place pods there.
Source: Kubernetes, plugin/pkg/admission/defaulttolerationseconds."""


def parse_node_constraints(spec: Field) -> dict[str, Any]:
    """Return the fields of a group that say which nodes its pods may use; empty ones are left out.

    Raises:
        PlacementRequestError: a field is malformed.
    """
    affinity = spec.get("affinity", "nodeAffinity")
    rows = {
        "node_selector": {key: value.text() for key, value in spec.get("nodeSelector").entries()},
        "node_affinity": parse_node_selector(affinity.get(_REQUIRED)),
        "tolerations": sorted(_parse_tolerations(spec.get("tolerations")), key=str),
        "node_preference": _parse_preference(affinity.get(_PREFERRED).items()),
    }
    return {name: value for name, value in rows.items() if value}


def join_terms(first: Terms, second: Terms) -> Terms:
    """Return the terms that nodes meet if they meet both."""
    if not first or not second:
        return first or second
    return [[*left, *right] for left, right in product(first, second)]


def parse_node_selector(field: Field) -> Terms:
    """Return the terms of a NodeSelector; a term without requirements matches no node.

    Raises:
        PlacementRequestError: no term matches any node, or a requirement is malformed.
    """
    if not field.exists:
        return []
    terms = []
    for term in field.get("nodeSelectorTerms").items():
        expressions, fields = term.get("matchExpressions").items(), term.get("matchFields").items()
        if not expressions and not fields:
            term.note("has no requirement, so it matches no node")
            continue
        rows = [_parse_requirement(row, "key") for row in expressions]
        rows += [_parse_requirement(row, "field") for row in fields]
        terms.append([row for row in rows if row])
    if not terms:
        raise field.get("nodeSelectorTerms").build_error("expected a term with requirements")
    return [term for term in terms if term]


def _parse_requirement(row: Field, name: str) -> dict[str, Any]:
    """Return a requirement on a label (`key`) or a `field`; empty if its operator is not known."""
    operator, values = row.get("operator"), row.get("values")
    if operator.value not in list(NodeOperator):
        return {}
    key, texts = row.get("key").text(), [value.text() for value in values.items()]
    kind = NodeOperator(operator.text())
    if name == "field" and (key != NAME_FIELD or kind not in _ANY_VALUES):
        raise row.build_error(f"expected the field {NAME_FIELD}, and In or NotIn")
    if not key:
        raise row.get("key").build_error("expected the key of a label")
    if kind in _ONE_INTEGER and not (len(texts) == 1 and is_integer(texts[0])):
        raise values.build_error(f"expected one integer for {kind}")
    if (kind in _ANY_VALUES) != bool(texts) and kind not in _ONE_INTEGER:
        number = "at least one value" if kind in _ANY_VALUES else "no value"
        raise values.build_error(f"expected {number} for {kind}")
    return {name: key, "operator": kind.value} | ({"values": texts} if texts else {})


def _parse_tolerations(field: Field) -> Iterator[str | dict[str, str]]:
    """Yield the tolerations; those for a short time only are left out, or noted."""
    for row in field.items():
        operator, effect = row.get("operator"), row.get("effect")
        is_known = (operator.value or "Equal") in list(TolerationOperator)
        if not is_known or (effect.value or "NoSchedule") not in list(TaintEffect):
            continue
        found = {
            "key": row.get("key").text(),
            "operator": operator.text() or "Equal",
            "value": row.get("value").text(),
            "effect": effect.text(),
        }
        _check_toleration(row, found)
        if _lasts(row, found["key"]):
            yield _render_toleration(found)


def _check_toleration(row: Field, found: dict[str, str]) -> None:
    if found["operator"] == TolerationOperator.EXISTS:
        found["value"] = ""  # Kubernetes compares none
    elif not found["key"]:
        raise row.build_error("expected a key, or the operator Exists")
    elif found["operator"] != TolerationOperator.EQUAL and not is_integer(found["value"]):
        raise row.get("value").build_error(f"expected an integer for {found['operator']}")


def _lasts(row: Field, key: str) -> bool:
    """Return whether pods stay on a node with a taint that they tolerate."""
    seconds = row.get("tolerationSeconds").raw()
    if seconds is None:
        return True
    if isinstance(seconds, bool) or not isinstance(seconds, int):
        raise row.get("tolerationSeconds").build_error("expected an integer")
    if key in _NODE_FAILURES:
        return False
    if seconds <= 0:
        row.note("pods are evicted at once, so the taint counts as not tolerated")
        return False
    row.note(f"pods on a node with this taint are evicted after {seconds} s")
    return True


def _render_toleration(found: dict[str, str]) -> str | dict[str, str]:
    """Return a toleration as `key` or `key=value` if it is for every effect."""
    key, operator, value, effect = found.values()
    is_text = not effect and "=" not in key
    if is_text and key and operator == TolerationOperator.EXISTS:
        return key
    if is_text and operator == TolerationOperator.EQUAL:
        return f"{key}={value}"
    return {name: text for name, text in found.items() if text}


def _parse_preference(terms: Sequence[Field]) -> dict[str, str]:
    """Return preferred labels with one value, each of which counts the same."""
    preference: dict[str, str] = {}
    for term in terms:
        rows = term.get("preference", "matchExpressions").items()
        if len(rows) != 1 or term.get("preference", "matchFields").exists:
            continue
        key, operator, values = (rows[0].get(name) for name in ("key", "operator", "values"))
        is_new = key.value not in list(preference)
        if is_new and operator.value == NodeOperator.IN and len(values.items()) == 1:
            preference[key.text()] = values.items()[0].text()
            operator.text()
    weights = [term.get("weight") for term in terms]
    if all(weight.value == weights[0].value for weight in weights):
        for weight in weights:
            weight.raw()
    return preference


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
    """Yield the required terms that select the pods of a template, and of no other template."""
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
