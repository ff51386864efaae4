"""The ports at which an absent cable belongs, from the ports of the cables that are there.

Most fabrics are cabled by a rule: every leaf has the n-th spine at the same port, and every spine
has the n-th leaf at the same port. Where more than half of the other devices agree, and the port of
this device has no link, the rule says which port the cable is missing at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import Index, name_codes
from topology.model.ids import natural_key
from topology.planes.cables import EdgeColumns

MIN_WITNESSES: Final = 2
"""One other device shows no rule."""


class _PortUse:
    """The ports that some devices use for one purpose, and how many devices use each."""

    def __init__(self) -> None:
        self._ports: dict[int, set[str]] = defaultdict(set)
        self._counts: Counter[str] = Counter()

    def add(self, device: int, port: str) -> None:
        if port not in self._ports[device]:
            self._ports[device].add(port)
            self._counts[port] += 1

    def list_usual(self, device: int) -> set[str]:
        """Return the ports that more than half of the other devices use. Cost: O(ports)."""
        own = self._ports.get(device, set())
        num_others = len(self._ports) - (device in self._ports)
        least = max(MIN_WITNESSES, num_others // 2 + 1)
        return {port for port, count in self._counts.items() if count - (port in own) >= least}


class CableIndex:
    """Cables by the device at one end, sorted once: few fabrics lack a cable, but some lack many.

    Cost: O(cables log cables) when it is first read, then O(cables of a device).
    """

    def __init__(self, fabric: Fabric, edges: EdgeColumns) -> None:
        """Sort nothing yet.

        Args:
            fabric: the names.
            edges: the cables.
        """
        self._fabric = fabric
        self._edges = edges

    def list_cables(self, device: int) -> Iterator[tuple[int, str, str]]:
        """Yield the far device, the port of this device and the far port, for each cable."""
        bounds, far, near_names, far_names = self._rows
        start, stop = bounds[device], bounds[device + 1]
        return zip(far[start:stop], near_names[start:stop], far_names[start:stop], strict=True)

    @cached_property
    def _rows(self) -> tuple[list[int], list[int], list[str], list[str]]:
        near, far, near_ports, far_ports = _join_directions(self._edges)
        order = np.argsort(near, kind="stable")
        bounds = np.searchsorted(near[order], np.arange(len(self._fabric.devices) + 1))
        return (
            bounds.tolist(),
            far[order].tolist(),
            _list_names(self._fabric, near_ports[order]),
            _list_names(self._fabric, far_ports[order]),
        )


class LinkedPorts:
    """The names of the ports of each device that have a link, in any plane."""

    def __init__(self, fabric: Fabric) -> None:
        """Sort nothing yet."""
        self._fabric = fabric

    def list_names(self, device: int) -> Collection[str]:
        """Return the names. Cost: O(ports of the device)."""
        bounds, names = self._rows
        return names[bounds[device] : bounds[device + 1]]

    @cached_property
    def _rows(self) -> tuple[list[int], list[str]]:
        columns = columns_of(self._fabric)
        ports = np.concatenate([columns.links.a, columns.links.b])
        devices = columns.port_devices[ports]
        order = np.argsort(devices, kind="stable")
        bounds = np.searchsorted(devices[order], np.arange(len(self._fabric.devices) + 1))
        return bounds.tolist(), _list_names(self._fabric, ports[order])


class UsualPorts:
    """Infers the ports of an absent cable between two groups from those of existing cables."""

    def __init__(
        self,
        cables: CableIndex,
        groups: tuple[Collection[int], Collection[int]],
        linked: LinkedPorts,
    ) -> None:
        """Read the cables between the groups. Cost: O(cables of the near devices).

        Args:
            cables: of the plane.
            groups: the near devices, and the far devices.
            linked: the ports with a link.
        """
        self._linked = linked
        self._near_by_far: dict[int, _PortUse] = defaultdict(_PortUse)
        self._far_by_near: dict[int, _PortUse] = defaultdict(_PortUse)
        self._near = _PortUse()
        self._far_counts: dict[str, Counter[int]] = defaultdict(Counter)
        """The number of cables to each far device, by the name of the near port."""
        self._far_ports: dict[str, Counter[str]] = defaultdict(Counter)
        """The number of cables to far ports of each name, by the name of the near port."""
        nears, fars = groups[0], frozenset(groups[1])
        for near in nears:
            for far, near_port, far_port in cables.list_cables(near):
                if far in fars:
                    self._near_by_far[far].add(near, near_port)
                    self._far_by_near[near].add(far, far_port)
                    self._near.add(near, near_port)
                    self._far_counts[near_port][far] += 1
                    self._far_ports[near_port][far_port] += 1

    def find_ends(self, near: int, far: int, num: int) -> tuple[Sequence[str], Sequence[str]]:
        """Return the ports of the near and of the far device at which some cables are absent.

        Either is empty if no rule says it.

        Args:
            near: a near device.
            far: a far device.
            num: how many cables are absent between the two.
        """
        return (
            self._find_free(near, self._near_by_far[far], num),
            self._find_free(far, self._far_by_near[near], num),
        )

    def find_near_ports(self, near: int, num: int) -> Sequence[str]:
        """Return the ports of a near device that its peers use for any far device."""
        return self._find_free(near, self._near, num)

    def find_parallel_ends(
        self, near: int, far: int, num: int
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Return the ports of an absent cable by near devices with cables to other far devices.

        The n-th spines of a pod are cabled to different cores, but at ports of the same names.
        """
        own = self._find_free(near, self._near, num)
        if len(own) != 1:
            return own, ()
        counts = self._far_ports[own[0]]
        port, count = max(counts.items(), key=lambda row: row[1])
        is_usual = 2 * count > counts.total() and port not in self._linked.list_names(far)
        return own, [port] if is_usual else ()

    def find_far_device(self, port: str) -> int | None:
        """Return the far device to which most cables from near ports of this name lead."""
        counts = self._far_counts.get(port)
        if not counts:
            return None
        ((far, count),) = counts.most_common(1)
        return far if count >= MIN_WITNESSES and 2 * count > counts.total() else None

    def _find_free(self, device: int, use: _PortUse, num: int) -> Sequence[str]:
        """Return the ports that most others use, and that have no link on this device."""
        usual = use.list_usual(device)
        free = usual.difference(self._linked.list_names(device)) if usual else usual
        return sorted(free, key=natural_key) if len(free) == num else ()


def _list_names(fabric: Fabric, ports: Index) -> list[str]:
    codes, texts = name_codes(columns_of(fabric).port_names, ports)
    return [str(texts[code]) for code in codes.tolist()]


def _join_directions(edges: EdgeColumns) -> tuple[Index, Index, Index, Index]:
    """Return the cables from either end."""
    a, b, a_port, b_port = edges
    return (
        np.concatenate([a, b]),
        np.concatenate([b, a]),
        np.concatenate([a_port, b_port]),
        np.concatenate([b_port, a_port]),
    )
