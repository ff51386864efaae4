"""The ports at which an absent cable belongs, from the ports of the cables that are there.

Most fabrics are cabled by a rule: every leaf has the n-th spine at the same port, and every spine
has the n-th leaf at the same port. Where more than half of the other devices agree, and the port of
this device has no link, the rule says which port the cable is missing at.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeVar

import numpy as np

from topology.model.fabric import Fabric, Index
from topology.model.ids import natural_key
from topology.planes.cables import EdgeColumns

MIN_WITNESSES: Final = 2
"""One other device shows no rule."""
_NUMBERED: Final = re.compile(r"(|.*\D)(0|[1-9]\d{0,8})", re.ASCII)
"""A port name that ends in a number without padding."""


class _PortUse:
    """The ports that devices use for one purpose, and how many devices use each port."""

    def __init__(self) -> None:
        self._ports: dict[int, set[str]] = defaultdict(set)
        self._counts: Counter[str] = Counter()

    def add(self, device: int, port: str) -> None:
        if port not in self._ports[device]:
            self._ports[device].add(port)
            self._counts[port] += 1

    def list_usual(self, device: int) -> set[str]:
        """Return the ports that more than half of the other devices use. Cost: O(ports)."""
        least = max(MIN_WITNESSES, self._count_others(device) // 2 + 1)
        users = self._count_other_users(device)
        return {port for port, num_users in users.items() if num_users >= least}

    def list_all(self, device: int) -> set[str]:
        """Return the ports that others use; none if there is one other. Cost: O(ports)."""
        if self._count_others(device) < MIN_WITNESSES:
            return set()
        return set(self._count_other_users(device))

    def _count_others(self, device: int) -> int:
        return len(self._ports) - 1 if device in self._ports else len(self._ports)

    def _count_other_users(self, device: int) -> Counter[str]:
        """Return how many other devices use each port; ports without any are left out."""
        return self._counts - Counter(self._ports.get(device, ()))

    @property
    def num_devices(self) -> int:
        """How many devices use a port."""
        return len(self._ports)

    def list_common(self) -> set[str]:
        """Return the ports that all devices use."""
        return {port for port, count in self._counts.items() if count == len(self._ports)}


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
        columns = self._fabric.columns
        ports = np.concatenate([columns.links.a, columns.links.b])
        devices = columns.port_devices[ports]
        order = np.argsort(devices, kind="stable")
        bounds = np.searchsorted(devices[order], np.arange(len(self._fabric.devices) + 1))
        return bounds.tolist(), _list_names(self._fabric, ports[order])


class Shift(NamedTuple):
    """How the ports at one end of a bundle follow from those at the other."""

    letters: str
    other_letters: str
    distance: int

    def move(self, port: str) -> str:
        """Return the port at the other end; empty if it has no such name."""
        number = _NUMBERED.fullmatch(port)
        if number is None or number[1] != self.letters:
            return ""
        other = f"{self.other_letters}{int(number[2]) + self.distance}"
        return other if _NUMBERED.fullmatch(other) else ""

    def reverse(self) -> Shift:
        """Return how the ports at this end follow from the others."""
        return Shift(self.other_letters, self.letters, -self.distance)


def measure_shift(port: str, other: str) -> Shift | None:
    """Return how one port follows from another; None if a name has no number."""
    one, two = _NUMBERED.fullmatch(port), _NUMBERED.fullmatch(other)
    return Shift(one[1], two[1], int(two[2]) - int(one[2])) if one and two else None


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
            cables: the cables of the plane.
            groups: the near devices, and the far devices.
            linked: the ports with a link.
        """
        self._linked = linked
        self._near_by_far: dict[int, _PortUse] = defaultdict(_PortUse)
        self._far_by_near: dict[int, _PortUse] = defaultdict(_PortUse)
        self._near, self._far = _PortUse(), _PortUse()
        self._bundles: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
        self._far_counts: dict[str, Counter[int]] = defaultdict(Counter)
        """The number of cables to each far device, by the name of the near port."""
        self._near_counts: dict[str, Counter[int]] = defaultdict(Counter)
        """The number of cables to each near device, by the name of the far port."""
        self._far_ports: dict[str, Counter[str]] = defaultdict(Counter)
        """The number of cables to far ports of each name, by the name of the near port."""
        nears, fars = groups[0], frozenset(groups[1])
        for near in nears:
            for far, near_port, far_port in cables.list_cables(near):
                if far in fars:
                    self._near_by_far[far].add(near, near_port)
                    self._far_by_near[near].add(far, far_port)
                    self._near.add(near, near_port)
                    self._far.add(far, far_port)
                    self._bundles[near, far].append((near_port, far_port))
                    self._far_counts[near_port][far] += 1
                    self._near_counts[far_port][near] += 1
                    self._far_ports[near_port][far_port] += 1

    def find_near_ports(self, near: int, num: int) -> Sequence[str]:
        """Return the free ports of a near device that its peers use; none unless they are `num`."""
        free = self.list_free_near_ports(near)
        return free if len(free) == num else ()

    def list_free_near_ports(self, near: int) -> Sequence[str]:
        """Return the ports of a near device that have no link and that most of its peers use."""
        return self._drop_linked(near, self._near.list_usual(near))

    def find_far_port_of(self, near: int, far: int) -> str:
        """Return the far port at which most peers have the near device; empty if none shows it."""
        use = self._far_by_near[near]
        aligned = use.list_common() if self._is_aligned else set()
        free = self._drop_linked(far, use.list_usual(far) or aligned)
        return free[0] if len(free) == 1 else ""

    @cached_property
    def _is_aligned(self) -> bool:
        """Whether most near devices use one port name at all of their far devices."""
        common = [use.list_common() for use in self._far_by_near.values() if use.num_devices > 1]
        num = sum(len(ports) == 1 for ports in common)
        return num >= MIN_WITNESSES and 2 * num > len(common)

    def list_near_choices(self, near: int, far: int) -> Iterator[Sequence[str]]:
        """Yield free near ports that most peers use for the far device, then that any peer uses."""
        yield self._drop_linked(near, self._near_by_far[far].list_usual(near))
        yield self._drop_linked(near, self._near.list_all(near))

    def list_far_choices(self, near: int, far: int) -> Iterator[Sequence[str]]:
        """Yield free far ports that most peers use for the near device, then that any peer uses."""
        yield self._drop_linked(far, self._far_by_near[near].list_usual(far))
        yield self._drop_linked(far, self._far.list_all(far))

    def find_far_port(self, near_port: str, far: int) -> str:
        """Return the free far port to which most cables from near ports of a name lead, or nothing.

        The n-th spines of a pod are cabled to different cores, but at ports of the same names.
        """
        port = _find_most(self._far_ports.get(near_port)) or ""
        return port if self.is_free(far, port) else ""

    def find_far_device(self, near_port: str) -> int | None:
        """Return the far device to which most cables from near ports of a name lead."""
        return _find_most(self._far_counts.get(near_port))

    def find_near_device(self, far_port: str) -> int | None:
        """Return the near device to which most cables from far ports of a name lead."""
        return _find_most(self._near_counts.get(far_port))

    def find_shift(self, near: int, far: int) -> Shift | None:
        """Return how the far ports follow from the near ones; None if no other cable shows it."""
        bundle = self._bundles.get((near, far), ())
        shifts = {measure_shift(*ends) for ends in bundle}
        least = 1 if self._has_even_bundles else MIN_WITNESSES
        return shifts.pop() if len(bundle) >= least and len(shifts) == 1 else None

    @cached_property
    def _has_even_bundles(self) -> bool:
        """Whether the far ports of most bundles follow from the near ones."""
        shifts = [
            {measure_shift(*ends) for ends in bundle}
            for bundle in self._bundles.values()
            if len(bundle) > 1
        ]
        num_even = sum(len(row) == 1 and None not in row for row in shifts)
        return num_even >= MIN_WITNESSES and 2 * num_even > len(shifts)

    def is_free(self, device: int, port: str) -> bool:
        """Return whether no link is known at a port."""
        return port not in self._linked.list_names(device)

    def _drop_linked(self, device: int, ports: set[str]) -> Sequence[str]:
        free = ports.difference(self._linked.list_names(device)) if ports else ports
        return sorted(free, key=natural_key)


_FoundT = TypeVar("_FoundT")


def _find_most(counts: Counter[_FoundT] | None) -> _FoundT | None:
    """Return what most cables show; None if they differ, or a single cable is all."""
    if not counts:
        return None
    ((found, count),) = counts.most_common(1)
    return found if count >= MIN_WITNESSES and 2 * count > counts.total() else None


def _list_names(fabric: Fabric, ports: Index) -> list[str]:
    codes, texts = fabric.columns.port_names.code(ports)
    return [str(texts[code]) for code in codes.tolist()]


def _join_directions(edges: EdgeColumns) -> tuple[Index, Index, Index, Index]:
    """Return each cable twice: from one end, and from the other."""
    a, b, a_port, b_port = edges
    return (
        np.concatenate([a, b]),
        np.concatenate([b, a]),
        np.concatenate([a_port, b_port]),
        np.concatenate([b_port, a_port]),
    )
