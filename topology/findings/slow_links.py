"""Links slower than their fellows: a lane lost, a wrong transceiver, a port that came up low.

Fellows are the host links of one leaf group, and the cables between two ranks. What most of
them run at is what was meant.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric import Fabric, Link, columns_of
from topology.model.fabric_columns import UNKNOWN_RATE, Index, LinkColumns
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.lazy_rows import rows_at
from topology.planes.cables import EdgeColumns
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

MIN_PEERS = 3
"""Links that must agree for another to be called slow."""
SLOW_FACTOR = 8
"""Where fewer are fellows, a link so many times slower than most of the plane's came up low."""
_HALF = 32
"""Bits for one of two numbers."""
_GIGA = 1_000_000_000


def find_slow_links(fabric: Fabric, plane: Plane, grouping: TierGroups) -> Iterator[Finding]:
    """Yield a finding per link below the usual rate of its fellows. Cost: O(links)."""
    links = columns_of(fabric).links
    known = links.rates[links.rates != UNKNOWN_RATE]
    if not len(known) or 0 < known.min() == known.max():
        return  # nothing is slower than anything
    fellows = list(_group_peers(links, plane, grouping))
    everywhere = _usual_bps(
        np.concatenate([links.rates[at] for at in fellows] or [links.rates[:0]])
    )
    for places in fellows:
        rates = links.rates[places]
        usual = _usual_bps(rates)
        is_slow = rates < usual if usual else rates * SLOW_FACTOR <= everywhere
        for link in rows_at(fabric.links, places[is_slow].tolist()):
            yield _slow_finding(fabric, link, usual or everywhere)


def _usual_bps(rates: NDArray[np.int64]) -> int:
    """Return the rate of most links, of several the highest; 0 where too few agree."""
    found, counts = np.unique(rates, return_counts=True)
    agreeing, usual = max(zip(counts.tolist(), found.tolist(), strict=True), default=(0, 0))
    return int(usual) if agreeing >= MIN_PEERS else 0


def _group_peers(links: LinkColumns, plane: Plane, grouping: TierGroups) -> Iterator[Index]:
    """Yield the links of known rate that are fellows, by their places."""
    ranks = np.array([group.rank for group in grouping.groups] or [0], np.intp)
    own = grouping.by_switch()
    group_of = np.full(max([*own, *plane.switches, *plane.hosts], default=0) + 1, -1)
    group_of[list(own)] = list(own.values())
    for edges, is_switch in ((plane.host_edges, False), (plane.switch_edges, True)):
        columns = edges.columns
        places = _link_indices(links, columns)
        low, high = group_of[columns.a], group_of[columns.b]
        is_known = (places >= 0) & (high >= 0) & ((low >= 0) | (not is_switch))
        both = ranks[low], ranks[high]
        kinds = (np.minimum(*both) << _HALF) | np.maximum(*both) if is_switch else high
        order = np.argsort(kinds[is_known], kind="stable")
        bounds = np.flatnonzero(np.diff(kinds[is_known][order])) + 1
        yield from (part for part in np.split(places[is_known][order], bounds) if len(part))


def _link_indices(links: LinkColumns, edges: EdgeColumns) -> Index:
    """Return the place of each edge's link, -1 where that has no known rate."""
    keys = (links.a << _HALF) | links.b
    low, high = np.minimum(edges.a_port, edges.b_port), np.maximum(edges.a_port, edges.b_port)
    wanted = (low << _HALF) | high
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    if not len(keys):
        return np.full(len(wanted), -1)
    is_told = (keys[at] == wanted) & (links.rates[at] != UNKNOWN_RATE)
    return np.where(is_told, at, -1)


def _slow_finding(fabric: Fabric, link: Link, usual: int) -> Finding:
    ends = (fabric.port_name(link.a), fabric.port_name(link.b))
    rate = (link.rate_bps or 0) / _GIGA
    return Finding(
        kind=FindingKind.SLOW_LINK,
        device=ends[0].device,
        port=ends[0].port,
        severity=Severity.WARNING,
        message=(
            f"The link between {fabric.show_link(link)} runs at {rate:g} Gb/s where its fellows "
            f"run at {usual / _GIGA:g}. Check the cable, the transceivers and the lanes."
        ),
        ports=ends,
    )
