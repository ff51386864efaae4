"""Which plane each port of hosts is in, and why: an array, because there are many ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from topology.model.fabric_columns import Flags, Index
from topology.planes.policy import PortPlane

_NONE: Final = -1


class PortPlanes(Mapping[int, PortPlane]):
    """Port to its share, ascending; ports that are in no plane are missing."""

    def __init__(self, num_ports: int) -> None:
        """Start with no port in any plane."""
        self._codes = np.full(num_ports, _NONE, np.int16)
        self._kinds: dict[PortPlane, int] = {}

    def put(self, share: PortPlane, ports: Index) -> None:
        """Put ports into a plane, whichever they were in."""
        self._codes[ports] = self._kinds.setdefault(share, len(self._kinds))

    def put_each(self, found: Iterable[tuple[int, PortPlane]]) -> None:
        """Put ports one by one."""
        for at, share in found:
            self._codes[at] = self._kinds.setdefault(share, len(self._kinds))

    def renumber(self, numbers: Index | None, num_ports: int) -> PortPlanes:
        """Return a copy with ports by their new numbers, which are -1 for ports that are no more.

        Args:
            numbers: one entry per port; None where all keep theirs.
            num_ports: how many there are now.
        """
        found = PortPlanes(num_ports)
        found._kinds = dict(self._kinds)
        if numbers is None:
            found._codes = self._codes.copy()
            return found
        known = np.flatnonzero(self.is_assigned() & (numbers >= 0))
        found._codes[numbers[known]] = self._codes[known]
        return found

    def planes(self) -> set[str]:
        """Return the planes that have ports."""
        used = np.bincount(self._codes[self.is_assigned()], minlength=len(self._kinds)).tolist()
        return {share.plane for share, code in self._kinds.items() if used[code]}

    def is_assigned(self) -> Flags:
        """Tell which ports are in a plane, one entry per port of the fabric."""
        known: Flags = self._codes != _NONE
        return known

    def is_in(self, plane: str) -> Flags:
        """Tell which ports are in one plane, one entry per port of the fabric."""
        codes = [code for share, code in self._kinds.items() if share.plane == plane]
        return np.isin(self._codes, codes)

    def __getitem__(self, port: int) -> PortPlane:
        """Return a port's share.

        Raises:
            KeyError: it is in no plane.
        """
        code: int = self._codes.item(port)
        if code == _NONE:
            raise KeyError(port)
        return tuple(self._kinds)[code]

    def __iter__(self) -> Iterator[int]:
        """Yield the ports that are in a plane."""
        return iter(np.flatnonzero(self.is_assigned()).tolist())

    def __len__(self) -> int:
        """Return how many ports are in a plane."""
        return int(np.count_nonzero(self.is_assigned()))
