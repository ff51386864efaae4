"""Selects the neighbors of walked switches that are walked too. Pure.

A neighbor announces its address itself, so it may be false. Only addresses in the listed networks
are tried, with the credentials of the switch that hears the neighbor.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from generator.switches.targets import Discovery, Target
from topology.model.claims import Key, strong_key
from topology.model.facts import Device, Neighbor
from topology.model.ids import Id, IdKind

TargetKey = tuple[str, int]
"""Address and port. Credentials do not count: they do not make another switch."""


def get_target_key(target: Target) -> TargetKey:
    """Return the address and port of a target."""
    return target.address, target.port


class _DiscoveredDevice(NamedTuple):
    """A neighbor that is being walked at one of its addresses."""

    keys: frozenset[Key]
    """The MACs of the switch, which identify it."""
    untried_targets: tuple[Target, ...]
    """The other addresses of the switch."""


class Frontier:
    """The walked targets with their distance from the listed switches, and the next ones."""

    def __init__(self, listed: Iterable[Target], discovery: Discovery | None) -> None:
        """Start with the listed switches; without `discovery` no neighbor is walked."""
        self._discovery = discovery
        self._depths = {get_target_key(target): 0 for target in listed}
        self._known: set[Key] = set()
        self._candidates: dict[TargetKey, _DiscoveredDevice] = {}
        self._discovered: list[Target] = []

    @property
    def discovered(self) -> tuple[Target, ...]:
        """The targets besides the listed ones, in the order of discovery."""
        return tuple(self._discovered)

    def record_walk(self, target: Target, device: Device | None) -> None:
        """Record the result of a walk. Record all ended walks before a call of `find_next`."""
        candidate = self._candidates.get(get_target_key(target))
        if device is not None:
            self._known.update(_collect_keys(device))
        elif candidate is not None:
            self._known -= candidate.keys

    def find_next(self, target: Target, device: Device | None) -> list[Target]:
        """Return the targets that follow from a walk: each new neighbor, at one of its addresses.

        Devices that were walked at another address are recognised by their ids. If the walk gave
        no device, the next address of the same neighbor is returned. O(neighbors).

        Args:
            target: the walked target.
            device: the result of the walk; None: nothing usable.
        """
        target_key = get_target_key(target)
        candidate = self._candidates.pop(target_key, None)
        if self._discovery is None:
            return []
        if device is None:
            return self._try_next_address(candidate, self._depths[target_key]) if candidate else []
        depth = self._depths[target_key] + 1
        neighbors = (neighbor for port in device.ports for neighbor in port.neighbors)
        return [
            next_target
            for neighbor in (neighbors if depth <= self._discovery.max_depth else ())
            for next_target in self._add_neighbor(neighbor, target, depth)
        ]

    def _add_neighbor(self, neighbor: Neighbor, reporter: Target, depth: int) -> list[Target]:
        mac_keys = frozenset(key for id_ in neighbor.device_ids if (key := strong_key(id_)))
        ip_keys = {(IdKind.IP.value, id_.value) for id_ in neighbor.device_ids}
        if self._known & (mac_keys | ip_keys):
            return []
        targets = tuple(
            reporter._replace(address=address, is_expected=False)
            for address in self._find_allowed_addresses(neighbor.device_ids)
        )
        return self._try_next_address(_DiscoveredDevice(mac_keys, targets), depth)

    def _try_next_address(self, candidate: _DiscoveredDevice, depth: int) -> list[Target]:
        """Return the first untried address of a device, empty if there is none."""
        for number, target in enumerate(candidate.untried_targets, 1):
            is_full = (
                self._discovery is None or len(self._discovered) >= self._discovery.max_switches
            )
            if get_target_key(target) in self._depths or is_full:
                continue
            self._depths[get_target_key(target)] = depth
            self._candidates[get_target_key(target)] = candidate._replace(
                untried_targets=candidate.untried_targets[number:]
            )
            self._known |= candidate.keys
            self._discovered.append(target)
            return [target]
        return []

    def _find_allowed_addresses(self, ids: Iterable[Id]) -> Iterator[str]:
        networks = self._discovery.networks if self._discovery else ()
        for id_ in ids:
            if id_.kind is IdKind.IP:
                address = ipaddress.ip_address(id_.value)
                if any(address in network for network in networks):
                    yield id_.value


def _collect_keys(device: Device) -> Iterator[Key]:
    """Yield the keys that identify a walked device: its MACs and its IP addresses."""
    for id_ in device.ids:
        key = strong_key(id_)
        if key is not None:
            yield key
        elif id_.kind is IdKind.IP:
            yield (IdKind.IP.value, id_.value)
