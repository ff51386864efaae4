"""Reads a pod template: resource requests, node selection, tolerations and priority."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from generator.manifests.fields import Field
from generator.placement.quantities import count_units, parse_amount, render_quantity

_EFFECTS: Final = frozenset({"", "NoSchedule", "NoExecute"})
_AFFINITY: Final = ("affinity", "nodeAffinity")


def parse_pod_fields(template: Field) -> dict[str, Any]:
    """Return the fields of a request's group that equal pods share.

    Quantities are rounded up to units, as free capacity on nodes is rounded down.

    Raises:
        PlacementRequestError: a required field is malformed.
    """
    spec = template.get("spec")
    selector = _parse_selector(spec)
    tolerations = sorted(_parse_tolerations(spec))
    preference = _parse_preference(spec)
    row: dict[str, Any] = {"request": _compute_request(spec)}
    if selector:
        row["node_selector"] = selector
    if tolerations:
        row["tolerations"] = tolerations
    if preference:
        row["node_preference"] = preference
    return row


def parse_priority(template: Field) -> int:
    """Return the pods' priority; the value of a priority class is known only in the cluster."""
    return template.get("spec", "priority").integer(0)


def _compute_request(spec: Field) -> dict[str, int | str]:
    """Return the effective request of a pod. Source: the KEPs on sidecars and pod resources."""
    main = _sum_containers(spec.get("containers").items())
    init: dict[str, Decimal] = {}
    sidecars: dict[str, Decimal] = {}
    for container in spec.get("initContainers").items():
        request = _parse_requests(container)
        if container.get("restartPolicy").text() == "Always":
            sidecars = _add_amounts(sidecars, request)
        else:
            init = _max_amounts(init, _add_amounts(sidecars, request))
    total = _max_amounts(_add_amounts(main, sidecars), init) | _parse_requests(spec)
    total = _add_amounts(total, _parse_amounts(spec.get("overhead")))
    return {name: _round_amount(spec, name, total[name]) for name in sorted(total) if total[name]}


def _round_amount(spec: Field, name: str, amount: Decimal) -> int | str:
    quantity = render_quantity(name, count_units(name, amount))
    if parse_amount(quantity) != amount:
        spec.note(f"{name} of {amount.normalize():f} is rounded up to {quantity}")
    return quantity


def _sum_containers(containers: list[Field]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = {}
    for container in containers:
        total = _add_amounts(total, _parse_requests(container))
    return total


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


def _add_amounts(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> dict[str, Decimal]:
    zero = Decimal(0)
    return {
        name: left.get(name, zero) + right.get(name, zero) for name in left.keys() | right.keys()
    }


def _max_amounts(left: Mapping[str, Decimal], right: Mapping[str, Decimal]) -> dict[str, Decimal]:
    zero = Decimal(0)
    return {
        name: max(left.get(name, zero), right.get(name, zero))
        for name in left.keys() | right.keys()
    }


def _parse_selector(spec: Field) -> dict[str, str | list[str]]:
    selector: dict[str, str | list[str]] = {
        key: value.text() for key, value in spec.get("nodeSelector").entries()
    }
    required = spec.get(*_AFFINITY, "requiredDuringSchedulingIgnoredDuringExecution")
    return selector | dict(parse_selector_terms(required, known=selector))


def parse_selector_terms(
    field: Field, *, known: Collection[str] = ()
) -> Iterator[tuple[str, list[str]]]:
    """Yield (label, values) of a NodeSelector with one term; other selectors stay unread.

    So does a second condition on a label, after one here or in `known`.
    """
    labels = set(known)
    terms = field.get("nodeSelectorTerms").items()
    if len(terms) != 1:
        return
    for expression in terms[0].get("matchExpressions").items():
        values = expression.get("values")
        label = expression.get("key").value
        if label in labels:
            continue
        if expression.get("operator").value == "In" and values.items():
            labels.add(str(label))
            expression.get("operator").text()
            yield expression.get("key").text(), [value.text() for value in values.items()]


def _parse_preference(spec: Field) -> dict[str, str]:
    """Return preferred labels with one value; other preferences stay unread."""
    terms = spec.get(*_AFFINITY, "preferredDuringSchedulingIgnoredDuringExecution").items()
    preference: dict[str, str] = {}
    for term in terms:
        expressions = term.get("preference", "matchExpressions").items()
        if len(expressions) != 1:
            continue
        values = expressions[0].get("values").items()
        key = expressions[0].get("key")
        is_new = key.value not in preference
        if is_new and expressions[0].get("operator").value == "In" and len(values) == 1:
            preference[key.text()] = values[0].text()
            expressions[0].get("operator").text()
            if len(terms) == 1:  # nothing else to weigh it against
                term.get("weight").raw()
    return preference


def _parse_tolerations(spec: Field) -> Iterator[str]:
    """Yield `key` or `key=value`; a toleration of every taint stays unread."""
    for row in spec.get("tolerations").items():
        key, effect = row.get("key").value, row.get("effect").value or ""
        if not key or effect not in _EFFECTS:
            continue
        row.get("effect").text()
        operator, value = row.get("operator").text("Equal"), row.get("value").text()
        row.get("tolerationSeconds").raw()
        name = row.get("key").text()
        yield name if operator == "Exists" else f"{name}={value}"
