"""Which of the devices that switches hear are to be walked too. Pure.

A neighbor says itself what its address is, so only networks that are listed are tried, with the
credentials of the switch that hears it.
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
"""Address and port: who walks a switch with other credentials walks it at the same place."""


def get_target_key(target: Target) -> TargetKey:
    """Return where a target is walked."""
    return target.address, target.port


class _DiscoveredDevice(NamedTuple):
    """A device that is being tried."""

    keys: frozenset[Key]
    """By which it will be known again."""
    untried_targets: tuple[Target, ...]
    """Its further addresses."""


class Frontier:
    """What was walked already, and how far from the listed switches."""

    def __init__(self, listed: Iterable[Target], discovery: Discovery | None) -> None:
        """Begin with the listed switches; without `discovery` no other is walked."""
        self._discovery = discovery
        self._depths = {get_target_key(target): 0 for target in listed}
        self._known: set[Key] = set()
        self._candidates: dict[TargetKey, _DiscoveredDevice] = {}
        self._discovered: list[Target] = []

    @property
    def discovered(self) -> tuple[Target, ...]:
        """The targets beside the listed ones, in the order of discovery."""
        return tuple(self._discovered)

    def record_walk(self, target: Target, device: Device | None) -> None:
        """Take note of a walk, before asking what follows from it or from another."""
        candidate = self._candidates.get(get_target_key(target))
        if device is not None:
            self._known.update(_collect_keys(device))
        elif candidate is not None:
            self._known -= candidate.keys

    def find_next(self, target: Target, device: Device | None) -> list[Target]:
        """Return what is to be walked next: each device that is heard, at one of its addresses.

        Devices that were walked under another address are known by what they told. Where an
        address told nothing, it is the next one of the same device. O(neighbors).
        """
        place = get_target_key(target)
        candidate = self._candidates.pop(place, None)
        if self._discovery is None:
            return []
        if device is None:
            return self._try_next_address(candidate, self._depths[place]) if candidate else []
        depth = self._depths[place] + 1
        heard = (one for port in device.ports for one in port.neighbors)
        return [
            found
            for neighbor in (heard if depth <= self._discovery.max_depth else ())
            for found in self._add_neighbor(neighbor, target, depth)
        ]

    def _add_neighbor(self, neighbor: Neighbor, hearing: Target, depth: int) -> list[Target]:
        strong = frozenset(key for one in neighbor.device_ids if (key := strong_key(one)))
        told = {(IdKind.IP.value, one.value) for one in neighbor.device_ids}
        if self._known & (strong | told):
            return []
        targets = tuple(
            hearing._replace(address=address, is_expected=False)
            for address in self._find_allowed_addresses(neighbor.device_ids)
        )
        return self._try_next_address(_DiscoveredDevice(strong, targets), depth)

    def _try_next_address(self, candidate: _DiscoveredDevice, depth: int) -> list[Target]:
        """Return the first address of a device that was not tried, if there is one."""
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
        for found in ids:
            if found.kind is IdKind.IP:
                address = ipaddress.ip_address(found.value)
                if any(address in network for network in networks):
                    yield found.value


def _collect_keys(device: Device) -> Iterator[Key]:
    """Yield what a walked device is known by: its MACs, and its own addresses."""
    for found in device.ids:
        key = strong_key(found)
        if key is not None:
            yield key
        elif found.kind is IdKind.IP:
            yield (IdKind.IP.value, found.value)
