"""What a pod template says of places: resources, node selection, tolerations, priority."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from generator.manifests.fields import Field
from generator.objects.quantities import parse_amount

_EFFECTS: Final = frozenset({"", "NoSchedule", "NoExecute"})
_AFFINITY: Final = ("affinity", "nodeAffinity")


def pod_row(template: Field) -> dict[str, Any]:
    """Return the fields of a request's group that equal pods share.

    Quantities are rounded up to whole base units, as room on nodes is rounded down.

    Raises:
        PlacementRequestError: a field that counts is malformed.
    """
    spec = template.at("spec")
    selector = _selector(spec)
    tolerations = sorted(_tolerations(spec))
    preference = _preference(spec)
    row: dict[str, Any] = {"request": _request(spec)}
    if selector:
        row["node_selector"] = selector
    if tolerations:
        row["tolerations"] = tolerations
    if preference:
        row["node_preference"] = preference
    return row


def priority_of(template: Field) -> int:
    """Return the pods' priority; a class without a number stands in the cluster alone."""
    return template.at("spec", "priority").whole(0)


def _request(spec: Field) -> dict[str, int]:
    """Return what the kubelet must set aside. Source: the KEPs on sidecars and pod resources."""
    main = _total(spec.at("containers").items())
    first: dict[str, Decimal] = {}
    sidecars: dict[str, Decimal] = {}
    for container in spec.at("initContainers").items():
        asked = _asked(container)
        if container.at("restartPolicy").text() == "Always":
            sidecars = _sum(sidecars, asked)
        else:
            first = _largest(first, _sum(sidecars, asked))
    whole = _largest(_sum(main, sidecars), first) | _asked(spec)
    whole = _sum(whole, _amounts(spec.at("overhead")))
    return {name: _rounded(spec, name, whole[name]) for name in sorted(whole) if whole[name]}


def _rounded(spec: Field, name: str, amount: Decimal) -> int:
    units = math.ceil(amount)
    if units != amount:
        spec.note(f"{name} of {amount.normalize():f} is rounded up to {units}")
    return units


def _total(containers: list[Field]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for container in containers:
        total = _sum(total, _asked(container))
    return total


def _asked(container: Field) -> dict[str, Decimal]:
    """Return requests; a limit stands for a request that is not made."""
    container.at("name").raw()
    resources = container.at("resources")
    return _amounts(resources.at("limits")) | _amounts(resources.at("requests"))


def _amounts(field: Field) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for name, quantity in field.entries():
        try:
            found[name] = parse_amount(quantity.raw())
        except ValueError as error:
            problem = str(error).partition(", got ")[0]  # the fault says what it got
            raise quantity.fault(problem) from error
    return found


def _sum(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> dict[str, Decimal]:
    zero = Decimal(0)
    return {
        name: left.get(name, zero) + right.get(name, zero) for name in left.keys() | right.keys()
    }


def _largest(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> dict[str, Decimal]:
    zero = Decimal(0)
    return {
        name: max(left.get(name, zero), right.get(name, zero))
        for name in left.keys() | right.keys()
    }


def _selector(spec: Field) -> dict[str, str | list[str]]:
    found: dict[str, str | list[str]] = {
        key: value.text() for key, value in spec.at("nodeSelector").entries()
    }
    required = spec.at(*_AFFINITY, "requiredDuringSchedulingIgnoredDuringExecution")
    return found | dict(selector_terms(required))


def selector_terms(field: Field) -> Iterator[tuple[str, list[str]]]:
    """Yield (label, values) of a NodeSelector of one term; others stay unread."""
    terms = field.at("nodeSelectorTerms").items()
    if len(terms) != 1:
        return
    for expression in terms[0].at("matchExpressions").items():
        values = expression.at("values")
        if expression.at("operator").value == "In" and values.items():
            expression.at("operator").text()
            yield expression.at("key").text(), [value.text() for value in values.items()]


def _preference(spec: Field) -> dict[str, str]:
    """Return wished labels that have one value; others stay unread."""
    wishes = spec.at(*_AFFINITY, "preferredDuringSchedulingIgnoredDuringExecution").items()
    found: dict[str, str] = {}
    for wish in wishes:
        expressions = wish.at("preference", "matchExpressions").items()
        if len(expressions) != 1:
            continue
        values = expressions[0].at("values").items()
        if expressions[0].at("operator").value == "In" and len(values) == 1:
            found[expressions[0].at("key").text()] = values[0].text()
            expressions[0].at("operator").text()
            wish.at("weight").raw()
    return found


def _tolerations(spec: Field) -> Iterator[str]:
    """Yield `key` or `key=value`; what tolerates every taint stays unread."""
    for row in spec.at("tolerations").items():
        key, effect = row.at("key").value, row.at("effect").value or ""
        if not key or effect not in _EFFECTS:
            continue
        row.at("effect").text()
        operator, value = row.at("operator").text("Equal"), row.at("value").text()
        row.at("tolerationSeconds").raw()
        name = row.at("key").text()
        yield name if operator == "Exists" else f"{name}={value}"
