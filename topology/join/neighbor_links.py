"""Neighbor entries, paired to links: as arrays, so that a fabric or a part is paired at once."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric_columns import UNKNOWN_RATE, Codes, Flags, Index, LinkColumns, Rates

Numbers: TypeAlias = NDArray[np.int32]
"""Half of an index, as there are millions."""
NO_PORT = -1
HALF = 32
"""Bits for one of two port numbers."""


class NeighborRows(NamedTuple):
    """Every neighbor entry of a fabric, device by device in the order of `order`."""

    order: Numbers
    """Number of the entity that hears; ascending. Entities are not in the order of devices."""
    device: Numbers
    """The device that hears, by its number in the fabric; so is `peer`."""
    peer: Numbers
    near: Numbers
    """The hearing port; NO_PORT where its names are those of several."""
    far: Numbers
    """The port heard; NO_PORT where `near` is."""
    is_independent: Flags
    """Whether it says the same whatever other entries come or go."""
    is_far_claimed: Flags
    """Whether claims of the peer name the port heard."""
    can_confirm: Flags
    """Whether the peer would report this cable."""
    style: Codes
    """How the peer names its port, see `kinds`."""
    rates: Rates
    """Of the hearing port by its claim."""

    def where(self, chosen: Flags | Index) -> NeighborRows:
        """Return some of the entries, told by flags or by their places."""
        return NeighborRows._make(column[chosen] for column in self)


class CableColumns(NamedTuple):
    """The cables that entries speak of, sorted by their ports."""

    a: Index
    """The lower port."""
    b: Index
    is_reported_by_a: Flags
    """Whether an entry of the lower port's device tells it."""
    is_reported_by_b: Flags
    can_confirm: Flags
    """Whether the peer of any of its entries would report it."""
    rates: Rates
    """The lowest of what entries say."""

    @property
    def confirmed_ports(self) -> Index:
        """The ports on cables that both ends report."""
        is_both = self.is_reported_by_a & self.is_reported_by_b
        return np.concatenate([self.a[is_both], self.b[is_both]])

    def links(self, is_confirmed: Flags) -> LinkColumns:
        """Return them as links, given by port whether it is on a cable that both ends report."""
        is_quiet = ~(self.is_reported_by_a & self.is_reported_by_b)
        quiet = np.where(self.is_reported_by_a, self.b, self.a)
        return LinkColumns(
            a=self.a,
            b=self.b,
            is_one_sided=is_quiet & self.can_confirm,
            is_disputed=is_quiet & is_confirmed[quiet],
            rates=self.rates,
        )


def pair_ends(rows: NeighborRows) -> CableColumns:
    """Return the cables that entries speak of. Cost: O(n log n); 30 bytes an entry meanwhile."""
    used = np.flatnonzero((rows.near != NO_PORT) & (rows.near != rows.far))
    keys = np.minimum(rows.near[used], rows.far[used]).astype(np.int64) << HALF
    keys |= np.maximum(rows.near[used], rows.far[used])
    order = np.argsort(keys, kind="stable")
    keys, used = keys[order], used[order]
    del order
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if not len(starts):
        none = np.zeros(0, np.bool_)
        return CableColumns(starts, starts, none, none, none, np.zeros(0, np.int64))
    is_low = rows.near[used] == keys >> HALF
    known = rows.rates[used]
    known[known == UNKNOWN_RATE] = np.iinfo(np.int64).max
    lowest = np.minimum.reduceat(known, starts)
    return CableColumns(
        a=keys[starts] >> HALF,
        b=keys[starts] & ((1 << HALF) - 1),
        is_reported_by_a=np.logical_or.reduceat(is_low, starts),
        is_reported_by_b=np.logical_or.reduceat(~is_low, starts),
        can_confirm=np.logical_or.reduceat(rows.can_confirm[used], starts),
        rates=np.where(lowest == np.iinfo(np.int64).max, UNKNOWN_RATE, lowest),
    )
