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

PODS: Final = "pods"
_ENDED: Final = frozenset({"Succeeded", "Failed"})
Amounts = dict[str, Decimal]
_NOTHING: Final[Mapping[str, Decimal]] = MappingProxyType({})


class PodUsage(NamedTuple):
    """What one pod takes."""

    node: str
    amounts: Mapping[str, Decimal]


def parse_pod_usage(found: Mapping[str, Any]) -> PodUsage | None:
    """Return what a decoded Pod takes; None where it is on no node, or has ended.

    Raises:
        ConfigError: a field that counts is malformed.
    """
    spec, status = _part(found, "spec"), _part(found, "status")
    node = spec.get("nodeName")
    if not isinstance(node, str) or not node or status.get("phase") in _ENDED:
        return None
    amounts = _requests_of(spec)
    amounts[PODS] = Decimal(1)
    if any("/" in name and amount for name, amount in amounts.items()):
        # Slots count jobs of whole nodes; what serves every node, without devices, takes none.
        amounts[SLOTS] = Decimal(1)
    return PodUsage(node, _shared(tuple(sorted(amounts.items()))))


@lru_cache(maxsize=4096)
def _shared(amounts: tuple[tuple[str, Decimal], ...]) -> Mapping[str, Decimal]:
    """Return one mapping for all pods that take the same, which are most."""
    return dict(amounts)


class _Left(NamedTuple):
    """What pods leave of one node."""

    node: ListedNode
    taken: Mapping[str, Decimal]
    left: ListedNode


class Leavings:
    """What pods left of nodes last, so that only nodes are counted again where that changed."""

    def __init__(self) -> None:
        """Nothing was counted yet."""
        self._known: dict[str, _Left] = {}
        self._last: Inventory | None = None

    def of(self, inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
        """Return the nodes with what pods leave of them; less than nothing is nothing.

        The very same value where it is as last time. Cost: O(pods + nodes), and O(resources) for
        each node that changed.
        """
        taken: dict[str, Amounts] = {}
        for usage in usages:
            if usage is not None:
                _add(taken.setdefault(usage.node, {}), usage.amounts)
        known = self._known
        found = [
            _left(node, taken.get(node.name, _NOTHING), known.get(node.name))
            for node in inventory.nodes
        ]
        self._known = {one.node.name: one for one in found}
        left = inventory._replace(nodes=tuple(one.left for one in found))
        if self._last != left:
            self._last = left
        return self._last


def less_usage(inventory: Inventory, usages: Iterable[PodUsage | None]) -> Inventory:
    """Return the nodes with what pods leave of them, as `Leavings` does, once."""
    return Leavings().of(inventory, usages)


def _left(node: ListedNode, taken: Mapping[str, Decimal], last: _Left | None) -> _Left:
    if last is not None and last.node is node and last.taken == taken:
        return last
    return _Left(node, taken, _less(node, taken))


def _less(node: ListedNode, taken: Mapping[str, Decimal]) -> ListedNode:
    free = {
        name: max(0, num - int(taken.get(name, Decimal(0)).to_integral_value(ROUND_CEILING)))
        for name, num in node.spec.idle.items()
    }
    return replace(node, spec=replace(node.spec, free=free))


def _requests_of(spec: Mapping[str, Any]) -> Amounts:
    total: Amounts = {}
    for container in _list(spec, "containers"):
        _add(total, _requests(container))
    beside: Amounts = {}
    """Of those init containers that go on running."""
    most: Amounts = {}
    for container in _list(spec, "initContainers"):
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(beside, own)
            own = {}
        for name, amount in _sum(own, beside).items():
            most[name] = max(most.get(name, Decimal(0)), amount)
    total = _sum(total, beside)
    found = {
        name: max(total.get(name, Decimal(0)), most.get(name, Decimal(0)))
        for name in {*total, *most}
    }
    return _sum(found | _requests(spec), _amounts(_part(spec, "overhead")))


def _requests(holder: Mapping[str, Any]) -> Amounts:
    return _amounts(_part(_part(holder, "resources"), "requests"))


def _amounts(found: Mapping[str, Any]) -> Amounts:
    try:
        return {str(name): parse_amount(value) for name, value in found.items()}
    except ValueError as error:
        raise ConfigError(f"requests: {show(str(error))}") from error


def _add(total: Amounts, more: Mapping[str, Decimal]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Decimal(0)) + amount


def _sum(one: Mapping[str, Decimal], other: Mapping[str, Decimal]) -> Amounts:
    found = dict(one)
    _add(found, other)
    return found


def _part(found: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = found.get(key)
    return part if isinstance(part, Mapping) else {}


def _list(found: Mapping[str, Any], key: str) -> Iterable[Mapping[str, Any]]:
    rows = found.get(key)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else ()
