"""The ports at which an absent cable belongs, from the ports of the cables that are there.

Most fabrics are cabled by a rule: every leaf has the n-th spine at the same port, and every spine
has the n-th leaf at the same port. Where more than half of the other devices agree, and the port of
this device has no link, the rule says which port the cable is missing at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from functools import cached_property

import numpy as np

from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import Flags, Index
from topology.model.ids import natural_key
from topology.planes.cables import EdgeColumns

MIN_WITNESSES = 2
"""One other device shows no rule."""


class LinkedPorts:
    """The names of the ports of a device that have a link."""

    def __init__(self, fabric: Fabric) -> None:
        """Compute nothing yet: few fabrics lack a cable."""
        self._columns = columns_of(fabric)

    def list_names(self, device: int) -> set[str]:
        """Return the names. Cost: O(ports of the fabric), as arrays."""
        ports = np.flatnonzero((self._columns.port_devices == device) & self._is_linked)
        return {str(self._columns.port_names[port]) for port in ports.tolist()}

    @cached_property
    def _is_linked(self) -> Flags:
        is_linked = np.zeros(len(self._columns.port_devices), bool)
        is_linked[self._columns.links.a] = is_linked[self._columns.links.b] = True
        return is_linked


class UsualPorts:
    """The ports of the cables between two groups of devices."""

    def __init__(
        self,
        fabric: Fabric,
        edges: EdgeColumns,
        groups: tuple[Collection[int], Collection[int]],
        linked: LinkedPorts,
    ) -> None:
        """Read the cables between the groups. Cost: O(cables of the plane), as arrays.

        Args:
            fabric: the names.
            edges: the cables of the plane.
            groups: the near devices, and the far devices.
            linked: the ports with a link.
        """
        self._linked = linked
        near, far, near_ports, far_ports = _join_directions(edges)
        is_between = np.isin(near, [*groups[0]]) & np.isin(far, [*groups[1]])
        names = columns_of(fabric).port_names
        self._near_by_far: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self._far_by_near: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        rows = (column[is_between].tolist() for column in (near, far, near_ports, far_ports))
        for low, high, low_port, high_port in zip(*rows, strict=True):
            self._near_by_far[high][low].add(str(names[low_port]))
            self._far_by_near[low][high].add(str(names[high_port]))

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
        peers: dict[int, set[str]] = defaultdict(set)
        for ports_of in self._near_by_far.values():
            for device, ports in ports_of.items():
                peers[device] |= ports
        return self._find_free(near, peers, num)

    def find_far_device(self, port: str) -> int | None:
        """Return the far device to which most cables from near ports of this name lead."""
        counts = Counter(
            {
                far: sum(port in ports for ports in ports_of.values())
                for far, ports_of in self._near_by_far.items()
            }
        )
        if not counts.total():
            return None
        ((far, count),) = counts.most_common(1)
        return far if count >= MIN_WITNESSES and 2 * count > counts.total() else None

    def _find_free(self, device: int, ports_of: dict[int, set[str]], num: int) -> Sequence[str]:
        """Return the ports that most others use, and that have no link on this device."""
        others = [ports for other, ports in ports_of.items() if other != device]
        counts = Counter(port for ports in others for port in ports)
        usual = {
            port
            for port, count in counts.items()
            if count >= MIN_WITNESSES and 2 * count > len(others)
        }
        free = usual - self._linked.list_names(device) if usual else usual
        return sorted(free, key=natural_key) if len(free) == num else ()


def _join_directions(edges: EdgeColumns) -> tuple[Index, Index, Index, Index]:
    """Return the cables from either end."""
    a, b, a_port, b_port = edges
    return (
        np.concatenate([a, b]),
        np.concatenate([b, a]),
        np.concatenate([a_port, b_port]),
        np.concatenate([b_port, a_port]),
    )
