"""The plane and reason of each host port, as an array, because a fabric has many ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from topology.model.fabric import Flags, Index
from topology.planes.policy import PortPlane

_NONE: Final = -1


class PortPlaneMap(Mapping[int, PortPlane]):
    """Port number to `PortPlane`, ascending; ports without a plane are absent."""

    def __init__(self, num_ports: int) -> None:
        """Start with no port in any plane."""
        self._codes = np.full(num_ports, _NONE, np.int16)
        self._kinds: dict[PortPlane, int] = {}

    def put(self, port_plane: PortPlane, ports: Index | int) -> None:
        """Assign ports, or one port, to a plane; an earlier assignment is replaced."""
        self._codes[ports] = self._kinds.setdefault(port_plane, len(self._kinds))

    def renumber(self, numbers: Index | None, num_ports: int) -> PortPlaneMap:
        """Return a copy for ports with new numbers.

        Args:
            numbers: one entry per old port: its new number, -1 for a removed port; None if all
                numbers stay.
            num_ports: the new number of ports.
        """
        renumbered = PortPlaneMap(num_ports)
        renumbered._kinds = dict(self._kinds)
        if numbers is None:
            renumbered._codes = self._codes.copy()
            return renumbered
        remaining = np.flatnonzero(self.is_assigned() & (numbers >= 0))
        renumbered._codes[numbers[remaining]] = self._codes[remaining]
        return renumbered

    @property
    def codes(self) -> Index:
        """One entry per port of the fabric: the index of its plane in `kinds`, -1 for none."""
        return self._codes.astype(np.intp)

    @property
    def kinds(self) -> tuple[PortPlane, ...]:
        """The planes and reasons that ports may have."""
        return tuple(self._kinds)

    def planes(self) -> set[str]:
        """Return the planes that have ports."""
        used = np.bincount(self._codes[self.is_assigned()], minlength=len(self._kinds)).tolist()
        return {port_plane.plane for port_plane, code in self._kinds.items() if used[code]}

    def is_assigned(self) -> Flags:
        """Return one flag per port of the fabric: whether it is in any plane."""
        is_assigned: Flags = self._codes != _NONE
        return is_assigned

    def list_open(self, ports: Index) -> Index:
        """Return the ports, of these, that are in no plane."""
        is_open: Flags = self._codes[ports] == _NONE
        return ports[is_open]

    def is_in(self, plane: str) -> Flags:
        """Return one flag per port of the fabric: whether it is in this plane."""
        codes = [code for port_plane, code in self._kinds.items() if port_plane.plane == plane]
        return np.isin(self._codes, codes)

    def __getitem__(self, port: int) -> PortPlane:
        """Return the plane of a port and the reason.

        Raises:
            KeyError: the port is in no plane.
        """
        code: int = self._codes.item(port)
        if code == _NONE:
            raise KeyError(port)
        return self.kinds[code]

    def __iter__(self) -> Iterator[int]:
        """Yield the ports that are in any plane."""
        return iter(np.flatnonzero(self.is_assigned()).tolist())

    def __len__(self) -> int:
        """Return the number of ports that are in any plane."""
        return int(np.count_nonzero(self.is_assigned()))
