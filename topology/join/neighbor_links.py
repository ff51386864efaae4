"""Pair neighbor entries to links, as arrays."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric_columns import UNKNOWN_RATE, Flags, Index, LinkColumns, Rates

Numbers: TypeAlias = NDArray[np.int32]
"""Half the size of an index, because a fabric has millions of numbers."""
NO_PORT = -1
_HALF = 32
"""Bits for one of the two port numbers in a key."""


class NeighborRows(NamedTuple):
    """Every neighbor entry of a fabric, one entry per row."""

    near: Numbers
    """The hearing port; NO_PORT if several ports share its names."""
    far: Numbers
    """The port that is heard; NO_PORT if `near` is NO_PORT."""
    can_confirm: Flags
    """Whether the peer would report this cable."""
    is_swept: Flags
    """Whether a sweep reports the entry; its lines may be lost, but nobody forges them."""
    rates: Rates
    """Rate of the hearing port in its claim."""


class CableColumns(NamedTuple):
    """The cables that neighbor entries report, sorted by their ports."""

    a: Index
    """The lower port."""
    b: Index
    is_reported_by_a: Flags
    """Whether an entry of port `a` reports the cable."""
    is_reported_by_b: Flags
    can_confirm: Flags
    """Whether the peer of any of its entries would report the cable."""
    is_swept: Flags
    """Whether a sweep reports any of its entries."""
    rates: Rates
    """The lowest rate in its entries."""

    def links(self, is_lacking: Flags, is_of_node: Flags) -> LinkColumns:
        """Return the cables as links.

        A port has one cable. The word of one end does not count against a cable that both ends
        report, nor against what the other end says about its own port: a host may send frames in
        another's name, and a switch may say anything in its walk.

        Args:
            is_lacking: one flag per port: whether the full report of its device lacks it.
            is_of_node: one flag per port: whether it is a node's; a node's word about its own cable
                moves that node alone, and the walk of a switch may lack ports.
        """
        is_both = self.is_reported_by_a & self.is_reported_by_b
        teller = np.where(self.is_reported_by_a, self.a, self.b)
        silent = np.where(self.is_reported_by_a, self.b, self.a)
        is_confirmed, hears_another = (np.zeros(len(is_lacking), np.bool_) for _ in range(2))
        is_confirmed[np.concatenate([self.a[is_both], self.b[is_both]])] = True
        hears_another[teller[~is_both & ~self.can_confirm & ~self.is_swept]] = True
        is_denied = is_confirmed[teller] & self.can_confirm
        is_without_port = is_lacking[silent] & ~is_of_node[teller]
        is_contradicted = is_denied | hears_another[silent] | is_without_port
        is_disputed = is_confirmed[silent] | (is_contradicted & ~self.is_swept)
        return LinkColumns(
            a=self.a,
            b=self.b,
            is_one_sided=~is_both & self.can_confirm,
            is_disputed=~is_both & is_disputed,
            rates=self.rates,
        )


def pair_ends(rows: NeighborRows) -> CableColumns:
    """Return the cables that entries report. Cost: O(n log n), and 30 bytes per entry meanwhile."""
    used = np.flatnonzero((rows.near != NO_PORT) & (rows.near != rows.far))
    keys = np.minimum(rows.near[used], rows.far[used]).astype(np.int64) << _HALF
    keys |= np.maximum(rows.near[used], rows.far[used])
    order = np.argsort(keys, kind="stable")
    keys, used = keys[order], used[order]
    del order
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if not len(starts):
        no_flags = np.zeros(0, np.bool_)
        flags = no_flags, no_flags, no_flags, no_flags
        return CableColumns(starts, starts, *flags, rates=np.zeros(0, np.int64))
    is_low = rows.near[used] == keys >> _HALF
    rates = rows.rates[used]
    rates[rates == UNKNOWN_RATE] = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(rates, starts)
    return CableColumns(
        a=keys[starts] >> _HALF,
        b=keys[starts] & ((1 << _HALF) - 1),
        is_reported_by_a=np.logical_or.reduceat(is_low, starts),
        is_reported_by_b=np.logical_or.reduceat(~is_low, starts),
        can_confirm=np.logical_or.reduceat(rows.can_confirm[used], starts),
        is_swept=np.logical_or.reduceat(rows.is_swept[used], starts),
        rates=np.where(lowest == np.iinfo(np.int64).max, UNKNOWN_RATE, lowest),
    )
