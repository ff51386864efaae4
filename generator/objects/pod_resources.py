"""What running pods take from their nodes. Pure.

A pod takes what the scheduler counts: the sum over its containers, or what its init containers
need while they run if that is more, what the pod asks for as a whole in place of both, and the
overhead of its runtime. Source: k8s.io/component-helpers, resource/helpers.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.objects.inventory import SLOTS, Inventory, ListedNode
from generator.objects.quantities import parse_amount
from topology.model.errors import ConfigError, show

PODS_RESOURCE: Final = "pods"
_ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
Amounts = dict[str, Decimal]
_NO_AMOUNTS: Final[Mapping[str, Decimal]] = MappingProxyType({})


class PodUsage(NamedTuple):
    """What one pod takes."""

    node: str
    amounts: Mapping[str, Decimal]


def parse_pod_usage(found: Mapping[str, Any]) -> PodUsage | None:
    """Return what a decoded Pod takes; None where it is on no node, or has ended.

    Raises:
        ConfigError: a field that counts is malformed.
    """
    spec, status = _get_mapping(found, "spec"), _get_mapping(found, "status")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node or status.get("phase") in _ENDED_PHASES:
        return None
    amounts = _compute_pod_request(spec)
    amounts[PODS_RESOURCE] = Decimal(1)
    if any("/" in name and amount for name, amount in amounts.items()):
        # Slots count jobs of whole nodes; what serves every node, without devices, takes none.
        amounts[SLOTS] = Decimal(1)
    return PodUsage(node, _intern_amounts(tuple(sorted(amounts.items()))))


@lru_cache(maxsize=4096)
def _intern_amounts(amounts: tuple[tuple[str, Decimal], ...]) -> Mapping[str, Decimal]:
    """Return one mapping for all pods that take the same, which are most."""
    return dict(amounts)


class _NodeUsage(NamedTuple):
    """What pods leave of one node."""

    node: ListedNode
    used: Mapping[str, Decimal]
    free_node: ListedNode


class FreeCapacity:
    """What pods left of nodes last, so that only nodes are counted again where that changed."""

    def __init__(self) -> None:
        """Nothing was counted yet."""
        self._known: dict[str, _NodeUsage] = {}
        self._last_inventory: Inventory | None = None

    def subtract(self, inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
        """Return the nodes with what pods leave of them; less than nothing is nothing.

        The very same value where it is as last time. Cost: O(pods + nodes), and O(resources) for
        each node that changed.
        """
        taken: dict[str, Amounts] = {}
        for usage in usages:
            if usage is not None:
                _add_amounts(taken.setdefault(usage.node, {}), usage.amounts)
        known = self._known
        found = [
            _compute_free(node, taken.get(node.name, _NO_AMOUNTS), known.get(node.name))
            for node in inventory.nodes
        ]
        self._known = {one.node.name: one for one in found}
        left = inventory._replace(nodes=tuple(one.free_node for one in found))
        if self._last_inventory != left:
            self._last_inventory = left
        return self._last_inventory


def subtract_usage(inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
    """Return the nodes with what pods leave of them, as `FreeCapacity` does, once."""
    return FreeCapacity().subtract(inventory, usages)


def _compute_free(
    node: ListedNode, taken: Mapping[str, Decimal], last: _NodeUsage | None
) -> _NodeUsage:
    if last is not None and last.node is node and last.used == taken:
        return last
    return _NodeUsage(node, taken, _subtract_amounts(node, taken))


def _subtract_amounts(node: ListedNode, taken: Mapping[str, Decimal]) -> ListedNode:
    free = {
        name: max(0, num - int(taken.get(name, Decimal(0)).to_integral_value(ROUND_CEILING)))
        for name, num in node.spec.initial_free.items()
    }
    return replace(node, spec=replace(node.spec, free=free))


def _compute_pod_request(spec: Mapping[str, Any]) -> Amounts:
    total: Amounts = {}
    for container in _get_list(spec, "containers"):
        _add_amounts(total, _parse_container_request(container))
    beside: Amounts = {}
    """Of those init containers that go on running."""
    most: Amounts = {}
    for container in _get_list(spec, "initContainers"):
        own = _parse_container_request(container)
        if container.get("restartPolicy") == "Always":
            _add_amounts(beside, own)
            own = {}
        for name, amount in _sum_amounts(own, beside).items():
            most[name] = max(most.get(name, Decimal(0)), amount)
    total = _sum_amounts(total, beside)
    found = {
        name: max(total.get(name, Decimal(0)), most.get(name, Decimal(0)))
        for name in {*total, *most}
    }
    return _sum_amounts(
        found | _parse_container_request(spec), _parse_amounts(_get_mapping(spec, "overhead"))
    )


def _parse_container_request(holder: Mapping[str, Any]) -> Amounts:
    return _parse_amounts(_get_mapping(_get_mapping(holder, "resources"), "requests"))


def _parse_amounts(found: Mapping[str, Any]) -> Amounts:
    try:
        return {str(name): parse_amount(value) for name, value in found.items()}
    except ValueError as error:
        raise ConfigError(f"requests: {show(str(error))}") from error


def _add_amounts(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _sum_amounts(one: Mapping[str, Decimal], other: Mapping[str, Decimal]) -> Amounts:
    found = dict(one)
    _add_amounts(found, other)
    return found


def _get_mapping(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = found.get(key)
    return part if isinstance(part, Mapping) else {}


def _get_list(found: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    rows = found.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else ()
