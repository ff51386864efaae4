"""Neighbor entries, paired to links: as arrays, so that a fabric or a part is paired at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from topology.fabric_columns import UNKNOWN_RATE, Codes, Flags, Index, LinkColumns, Rates

NO_PORT = -1
HALF = 32
"""Bits for one of two port numbers."""


class HeardRows(NamedTuple):
    """Every neighbor entry of a fabric, device by device in the order of `order`."""

    order: Index
    """Number of the entity that hears; ascending. Entities are not in the order of devices."""
    device: Index
    """The device that hears, by its number in the fabric; so is `peer`."""
    peer: Index
    near: Index
    """The hearing port; NO_PORT where its names are those of several."""
    far: Index
    """The port heard; NO_PORT where `near` is."""
    is_plain: Flags
    """Whether it says the same whatever other entries come or go."""
    is_told: Flags
    """Whether claims of the peer name the port heard."""
    can_confirm: Flags
    """Whether the peer would report this cable."""
    style: Codes
    """How the peer names its port, see `kinds`."""
    rates: Rates
    """Of the hearing port by its claim."""

    def where(self, chosen: Flags | Index) -> HeardRows:
        """Return some of the entries, told by flags or by their places."""
        return HeardRows._make(column[chosen] for column in self)


def pair_ends(rows: HeardRows, is_confirmed: Flags) -> LinkColumns:
    """Return the links that entries speak of, sorted by ports. Cost: O(n log n).

    Args:
        rows: all that speak of any of these links.
        is_confirmed: by port, whether it is on a cable that both ends report.
    """
    used, keys = _cables(rows)
    order = np.argsort(keys, kind="stable")
    keys, used = keys[order], used.where(order)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    a, b = keys[starts] >> HALF, keys[starts] & ((1 << HALF) - 1)
    if not len(starts):
        none = np.zeros(0, np.bool_)
        return LinkColumns(a, b, none, none, np.zeros(0, np.int64))
    tells_a, tells_b = _tellers(used, keys, starts)
    is_quiet = ~(tells_a & tells_b)
    quiet = np.where(tells_a, b, a)
    known = np.where(used.rates == UNKNOWN_RATE, np.iinfo(np.int64).max, used.rates)
    lowest = np.minimum.reduceat(known, starts)
    return LinkColumns(
        a=a,
        b=b,
        one_sided=is_quiet & np.logical_or.reduceat(used.can_confirm, starts),
        disputed=is_quiet & is_confirmed[quiet],
        rates=np.where(lowest == np.iinfo(np.int64).max, UNKNOWN_RATE, lowest),
    )


def confirmed_ports(rows: HeardRows) -> Index:
    """Return the ports on cables that both ends report."""
    used, keys = _cables(rows)
    order = np.argsort(keys, kind="stable")
    keys, used = keys[order], used.where(order)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if not len(starts):
        return starts
    tells_a, tells_b = _tellers(used, keys, starts)
    both = keys[starts][tells_a & tells_b]
    return np.concatenate([both >> HALF, both & ((1 << HALF) - 1)])


def _cables(rows: HeardRows) -> tuple[HeardRows, Index]:
    """Return the entries that speak of a cable, and for each both of its ports as one number."""
    used = rows.where((rows.near != NO_PORT) & (rows.near != rows.far))
    low, high = np.minimum(used.near, used.far), np.maximum(used.near, used.far)
    return used, (low << HALF) | high


def _tellers(used: HeardRows, keys: Index, starts: Index) -> tuple[Flags, Flags]:
    """Return for each cable whether its lower port's device tells it, and the same of the upper."""
    is_low = used.near == keys >> HALF
    by_low: Flags = np.logical_or.reduceat(is_low, starts)
    by_high: Flags = np.logical_or.reduceat(~is_low, starts)
    return by_low, by_high
