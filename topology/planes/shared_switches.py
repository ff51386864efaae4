"""Whether the cables of two slots of a machine type lead to one network.

Two cables of a host meet at one switch, or above it in one fabric. Rails and the two halves of a
dual-plane fabric may not meet, but divide the hosts alike: hosts that share a switch of one rail
share a switch of the other rail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import numpy as np

from topology.model.fabric import MEDIUM_CODES, FabricColumns, Flags, Index
from topology.model.facts import Medium
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Cables
from topology.planes.machine_types import NO_SWITCH, MachineType

_ALIKE_SHARE: Final = 0.75
"""The share of hosts that must be divided alike; a few cables may be wrong."""


class SharedSwitches:
    """The switches of a fabric, and which of them are in one network."""

    def __init__(self, columns: FabricColumns, cables: Cables) -> None:
        """Read nothing yet: most fabrics have no two slots to compare."""
        self._columns, self._cables = columns, cables

    def meet(self, machine: MachineType, slots: Sequence[int], others: Sequence[int]) -> bool:
        """Return whether cables of both groups lead to one switch on most hosts with both."""
        return _is_usual(machine, slots, others, np.equal)

    def meet_above(self, machine: MachineType, slots: Sequence[int], others: Sequence[int]) -> bool:
        """Return whether cables of both groups lead to one fabric on most hosts with both.

        A fabric is connected InfiniBand switches, or Ethernet switches with a common neighbor:
        further away, all networks of a site are connected.
        """
        is_infiniband = machine.slots[slots[0]].medium is Medium.INFINIBAND
        return _is_usual(
            machine, slots, others, self._share_fabric if is_infiniband else self._share_neighbor
        )

    def divide_alike(self, machine: MachineType, slot: int, other: int) -> bool:
        """Return whether the switches of two slots divide the hosts into the same groups."""
        rows, counts = machine.wirings
        left, right = rows[:, slot], rows[:, other]
        has_both = (left != NO_SWITCH) & (right != NO_SWITCH)
        if not has_both.any():
            return False
        left, right, counts = left[has_both], right[has_both], counts[has_both]
        least = _ALIKE_SHARE * int(counts.sum())
        return all(
            _count_usual(ends, far, counts) >= least for ends, far in ((left, right), (right, left))
        )

    def _share_fabric(self, left: Index, right: Index) -> Flags:
        is_shared: Flags = self._infiniband_fabrics[left] == self._infiniband_fabrics[right]
        return is_shared

    def _share_neighbor(self, left: Index, right: Index) -> Flags:
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        return np.array([bool(self._reach(a) & self._reach(b)) for a, b in pairs], np.bool_)

    def _reach(self, switch: int) -> set[int]:
        """Return a switch with the switches that are cabled to it."""
        ends, starts = self._peers
        return {switch, *ends[starts[switch] : starts[switch + 1]].tolist()}

    @cached_property
    def _peers(self) -> tuple[Index, Index]:
        """The peers of all switches one after the other, and where those of each start."""
        a, b, a_port, b_port = self._cables.switch_edges.columns
        managing = np.fromiter(self._cables.management_ports, np.intp)
        is_used = ~(np.isin(a_port, managing) | np.isin(b_port, managing))
        a, b = a[is_used], b[is_used]
        pairs = count_pairs(np.concatenate([a, b]), np.concatenate([b, a]))
        return pairs.right, np.searchsorted(pairs.left, np.arange(len(self._columns.kinds) + 1))

    @cached_property
    def _infiniband_fabrics(self) -> Index:
        """One entry per device: the lowest number of a switch in its InfiniBand fabric."""
        a, b, a_port, _ = self._cables.switch_edges.columns
        is_infiniband = self._columns.media[a_port] == MEDIUM_CODES[Medium.INFINIBAND]
        a, b = a[is_infiniband], b[is_infiniband]
        labels = np.arange(len(self._columns.kinds))
        while True:
            lowest = labels.copy()
            np.minimum.at(lowest, a, labels[b])
            np.minimum.at(lowest, b, labels[a])
            lowest = lowest[lowest]
            if np.array_equal(lowest, labels):
                return labels
            labels = lowest


def _is_usual(
    machine: MachineType,
    slots: Sequence[int],
    others: Sequence[int],
    is_one: Callable[[Index, Index], Flags],
) -> bool:
    """Return whether a condition on two switches holds on most hosts that have both cables."""
    rows, counts = machine.wirings
    holds, has_both = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_)
    for slot in slots:
        for other in others:
            left, right = rows[:, slot], rows[:, other]
            pairs = np.flatnonzero((left != NO_SWITCH) & (right != NO_SWITCH))
            has_both[pairs] = True
            holds[pairs] |= is_one(left[pairs], right[pairs])
    return 2 * int(counts[holds].sum()) > int(counts[has_both].sum())


def _count_usual(ends: Index, far_ends: Index, counts: Index) -> int:
    """Return the number of hosts at the far end that most hosts with the same end have."""
    pairs = count_pairs(ends, far_ends, counts)
    starts = np.flatnonzero(np.diff(pairs.left, prepend=-1))
    return int(np.maximum.reduceat(pairs.counts, starts).sum())
