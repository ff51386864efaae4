"""Reads the nodes that a pod may use: node selector, node affinity and tolerations.

Fields that this module does not read are listed as ignored: an operator or an effect of a newer
Kubernetes, and preferences that `node_preference` cannot express.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Final

from generator.manifests.fields import Field
from generator.placement.node_selection import (
    NAME_FIELD,
    NodeOperator,
    TaintEffect,
    TolerationOperator,
    is_integer,
)

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
