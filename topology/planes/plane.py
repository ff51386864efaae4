"""One plane: a network of a fabric that jobs can use, with its hosts, switches and links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from topology.model.fabric import Flags, Index
from topology.planes.cables import EdgeRows


@dataclass(frozen=True, slots=True, eq=False)
class PortSet(AbstractSet[int]):
    """Port numbers, ascending. Compares like any set."""

    is_member: Flags
    """One flag per port of the fabric: whether it is in the set; nobody changes it."""

    @classmethod
    def _from_iterable(cls, ports: Iterable[int]) -> frozenset[int]:  # type: ignore[override]
        """Return the result of a set operator."""
        return frozenset(ports)

    def __contains__(self, port: object) -> bool:
        """Return whether a port is in the set."""
        if not isinstance(port, int | np.integer):
            return False
        number = int(port)
        return 0 <= number < len(self.is_member) and bool(self.is_member[number])

    def __iter__(self) -> Iterator[int]:
        """Yield the ports, ascending."""
        return iter(self.numbers.tolist())

    def __len__(self) -> int:
        """Return the number of ports. Cost: O(ports of the fabric)."""
        return int(np.count_nonzero(self.is_member))

    @property
    def numbers(self) -> Index:
        """The ports as an array, ascending. Cost: O(ports of the fabric)."""
        return np.flatnonzero(self.is_member)


@dataclass(frozen=True, slots=True)
class Plane:
    """One network of a fabric: hosts, switches and the links between them."""

    name: str
    hosts: tuple[int, ...]
    """Device numbers of all hosts of the fabric, ascending; also hosts outside the cluster."""
    switches: tuple[int, ...]
    """Device numbers, ascending."""
    host_edges: EdgeRows
    """`a` is the host, `b` the switch. `columns` holds them as arrays."""
    switch_edges: EdgeRows
    ports: PortSet
    """Ports of hosts that are assigned to this plane, with or without a link."""
