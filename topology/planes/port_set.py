"""A set of ports as an array of flags: a plane has tens of thousands of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

import numpy as np

from topology.model.fabric_columns import Flags, Index


class PortSet(AbstractSet[int]):
    """Numbers of ports, ascending. Compares as any set."""

    __slots__ = ("_num", "are_in")

    def __init__(self, are_in: Flags) -> None:
        """Keep the flags.

        Args:
            are_in: one entry per port of the fabric; nobody may write to it any more.
        """
        self.is_member = are_in
        """Which ports are in it, one entry per port of the fabric."""
        self._num = int(np.count_nonzero(are_in))

    @classmethod
    def _from_iterable(cls, found: Iterable[int]) -> frozenset[int]:  # type: ignore[override]
        """Return what operators make of it."""
        return frozenset(found)

    def __contains__(self, port: object) -> bool:
        """Return whether a port is in it."""
        if not isinstance(port, int | np.integer):
            return False
        at = int(port)
        return 0 <= at < len(self.is_member) and bool(self.is_member[at])

    def __iter__(self) -> Iterator[int]:
        """Yield the ports."""
        return iter(self.numbers.tolist())

    def __len__(self) -> int:
        """Return how many there are."""
        return self._num

    @property
    def numbers(self) -> Index:
        """The ports. Cost: O(ports of the fabric)."""
        return np.flatnonzero(self.is_member)
