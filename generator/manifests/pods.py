"""Reads a pod template: its resource requests, the nodes that it may use, and its priority."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from generator.manifests.affinity import parse_node_constraints
from generator.manifests.fields import Field
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
