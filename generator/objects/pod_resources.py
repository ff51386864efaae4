"""The resources that running pods use, and the free capacity of their nodes. Pure.

A pod uses what the scheduler counts: the sum of its containers' requests, or the peak of its init
containers if that is higher. Requests at pod level replace both, and the overhead of the runtime
is added. Source: k8s.io/component-helpers, resource/helpers.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.objects.document import mapping_at
from generator.objects.inventory import SLOTS, Inventory, ListedNode
from generator.placement.cluster.nodes import PODS
from generator.placement.quantities import count_units, parse_amount
from topology.model.errors import ConfigError, show

_ENDED_PHASES: Final = frozenset({"Succeeded", "Failed"})
Amounts = dict[str, Decimal]
Units = Mapping[str, int]
_NO_UNITS: Final[Units] = MappingProxyType({})


class PodUsage(NamedTuple):
    """The resources that one pod uses on its node."""

    node: str
    units: Units
    """By resource, rounded up to units of `quantities`; pods with devices use one slot each."""


def parse_pod_usage(pod: Mapping[str, Any]) -> PodUsage | None:
    """Return the resources that a decoded Pod uses; None if it has no node or has ended.

    Raises:
        ConfigError: a field that is read is malformed.
    """
    spec, status = mapping_at(pod, "spec"), mapping_at(pod, "status")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node or status.get("phase") in _ENDED_PHASES:
        return None
    request = _compute_pod_request(spec)
    units = {name: count_units(name, amount) for name, amount in request.items()}
    units[PODS] = 1
    if any("/" in name and num for name, num in units.items()):
        # A slot is a job's share of a node. Pods without devices, such as those of DaemonSets,
        # use none.
        units[SLOTS] = 1
    return PodUsage(node, _intern_units(tuple(sorted(units.items()))))


@lru_cache(maxsize=4096)
def _intern_units(units: tuple[tuple[str, int], ...]) -> Units:
    """Return one shared mapping for equal units: most pods of a cluster are alike."""
    return dict(units)


class _NodeUsage(NamedTuple):
    """The usage and the free capacity of one node."""

    node: ListedNode
    used: Units
    free_node: ListedNode
    """The node with its free capacity."""


class FreeInventory:
    """Computes the free capacity of nodes; nodes whose usage did not change are not recomputed."""

    def __init__(self) -> None:
        """Start empty."""
        self._known: dict[str, _NodeUsage] = {}
        self._last_inventory: Inventory | None = None

    def subtract(self, inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
        """Return the inventory with the capacity that pods leave free, clamped at zero.

        An unchanged result is the identical object. Cost: O(pods + nodes), and O(resources) for
        each node that changed.
        """
        used: dict[str, Counter[str]] = {}
        for usage in usages:
            if usage is not None:
                used.setdefault(usage.node, Counter()).update(usage.units)
        previous = self._known
        node_usages = [
            _compute_free(node, used.get(node.name, _NO_UNITS), previous.get(node.name))
            for node in inventory.nodes
        ]
        self._known = {node_usage.node.name: node_usage for node_usage in node_usages}
        free = inventory._replace(nodes=tuple(node_usage.free_node for node_usage in node_usages))
        if self._last_inventory != free:
            self._last_inventory = free
        return self._last_inventory


def subtract_usage(inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
    """Return the inventory with its free capacity, as `FreeInventory` does, for one call."""
    return FreeInventory().subtract(inventory, usages)


def _compute_free(node: ListedNode, used: Units, last: _NodeUsage | None) -> _NodeUsage:
    if last is not None and last.node is node and last.used == used:
        return last
    return _NodeUsage(node, used, _subtract_units(node, used))


def _subtract_units(node: ListedNode, used: Units) -> ListedNode:
    free = {name: max(0, num - used.get(name, 0)) for name, num in node.spec.initial_free.items()}
    return replace(node, spec=replace(node.spec, free=free))


def _compute_pod_request(spec: Mapping[str, Any]) -> Amounts:
    total: Amounts = {}
    for container in _get_list(spec, "containers"):
        _add_amounts(total, _parse_container_request(container))
    sidecars: Amounts = {}
    """Of sidecars: init containers that keep running."""
    init_peak: Amounts = {}
    for container in _get_list(spec, "initContainers"):
        own = _parse_container_request(container)
        if container.get("restartPolicy") == "Always":
            _add_amounts(sidecars, own)
            own = {}
        for name, amount in _sum_amounts(own, sidecars).items():
            init_peak[name] = max(init_peak.get(name, Decimal(0)), amount)
    total = _sum_amounts(total, sidecars)
    request = {
        name: max(total.get(name, Decimal(0)), init_peak.get(name, Decimal(0)))
        for name in {*total, *init_peak}
    }
    return _sum_amounts(
        request | _parse_container_request(spec), _parse_amounts(mapping_at(spec, "overhead"))
    )


def _parse_container_request(holder: Mapping[str, Any]) -> Amounts:
    return _parse_amounts(mapping_at(mapping_at(holder, "resources"), "requests"))


def _parse_amounts(quantities: Mapping[str, Any]) -> Amounts:
    try:
        return {str(name): parse_amount(value) for name, value in quantities.items()}
    except ValueError as error:
        raise ConfigError(f"requests: {show(str(error))}") from error


def _add_amounts(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _sum_amounts(first: Mapping[str, Decimal], second: Mapping[str, Decimal]) -> Amounts:
    total = dict(first)
    _add_amounts(total, second)
    return total


def _get_list(parent: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    rows = parent.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else ()
