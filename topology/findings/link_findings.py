"""Links that only one end reports, and links slower than those of their peers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from topology.model.fabric import UNKNOWN_RATE, Fabric, Index, Link, LinkColumns
from topology.model.facts import Finding, FindingKind, Impact, Medium, Severity
from topology.planes.cables import EdgeColumns
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

MIN_PEERS = 3
"""Peers that must run at one rate before a slower link is reported."""
SLOW_FACTOR = 8
"""With fewer peers, a link is slow if it is this many times slower than most links of the plane."""
_HALF = 32
"""Bits of one of the two numbers of a key."""
_GIGA = 1_000_000_000


def find_slow_links(fabric: Fabric, plane: Plane, grouping: TierGroups) -> Iterator[Finding]:
    """Yield a finding per link below the usual rate of its peers. Cost: O(links).

    Peers are the host links of one leaf group, and the cables between two ranks. The rate of most
    peers is the intended one. A slower link lost a lane, has a wrong transceiver, or came up slow.
    """
    links = fabric.columns.links
    known_rates = links.rates[links.rates != UNKNOWN_RATE]
    if not len(known_rates) or 0 < known_rates.min() == known_rates.max():
        return  # all known rates are equal
    peer_groups = list(_group_peers(links, plane, grouping))
    usual_in_plane = _usual_bps(
        np.concatenate(
            [links.rates[link_indices] for link_indices in peer_groups] or [links.rates[:0]]
        )
    )
    for link_indices in peer_groups:
        rates = links.rates[link_indices]
        usual = _usual_bps(rates)
        is_slow = rates < usual if usual else rates * SLOW_FACTOR <= usual_in_plane
        for link in fabric.links.at(link_indices[is_slow].tolist()):
            yield _slow_finding(fabric, link, usual or usual_in_plane)


def _usual_bps(rates: NDArray[np.int64]) -> int:
    """Return the most frequent rate, the highest one in a tie; 0 if too few links agree."""
    distinct_rates, counts = np.unique(rates, return_counts=True)
    agreeing, usual = max(
        zip(counts.tolist(), distinct_rates.tolist(), strict=True), default=(0, 0)
    )
    return int(usual) if agreeing >= MIN_PEERS else 0


def _group_peers(links: LinkColumns, plane: Plane, grouping: TierGroups) -> Iterator[Index]:
    """Yield the indexes of links that are peers and have a known rate, one array per peer group."""
    ranks = np.array([group.rank for group in grouping.groups] or [0], np.intp)
    group_by_switch = grouping.by_switch()
    group_of = np.full(max([*group_by_switch, *plane.switches, *plane.hosts], default=0) + 1, -1)
    group_of[list(group_by_switch)] = list(group_by_switch.values())
    for edges, is_switch in ((plane.host_edges, False), (plane.switch_edges, True)):
        columns = edges.columns
        link_indices = _link_indices(links, columns)
        low, high = group_of[columns.a], group_of[columns.b]
        is_known = (link_indices >= 0) & (high >= 0) & ((low >= 0) | (not is_switch))
        rank_pair = ranks[low], ranks[high]
        kinds = (np.minimum(*rank_pair) << _HALF) | np.maximum(*rank_pair) if is_switch else high
        order = np.argsort(kinds[is_known], kind="stable")
        bounds = np.flatnonzero(np.diff(kinds[is_known][order])) + 1
        yield from (
            peer_links
            for peer_links in np.split(link_indices[is_known][order], bounds)
            if len(peer_links)
        )


def _link_indices(links: LinkColumns, edges: EdgeColumns) -> Index:
    """Return the link index of each edge; -1 if the link has no known rate."""
    keys = (links.a << _HALF) | links.b
    low, high = np.minimum(edges.a_port, edges.b_port), np.maximum(edges.a_port, edges.b_port)
    port_pair_keys = (low << _HALF) | high
    link_indices = np.minimum(np.searchsorted(keys, port_pair_keys), len(keys) - 1)
    if not len(keys):
        return np.full(len(port_pair_keys), -1)
    is_known = (keys[link_indices] == port_pair_keys) & (links.rates[link_indices] != UNKNOWN_RATE)
    return np.where(is_known, link_indices, -1)


def _slow_finding(fabric: Fabric, link: Link, usual: int) -> Finding:
    ends = (fabric.port_name(link.a), fabric.port_name(link.b))
    rate = (link.rate_bps or 0) / _GIGA
    return Finding(
        kind=FindingKind.SLOW_LINK,
        device=ends[0].device,
        port=ends[0].port,
        severity=Severity.WARNING,
        message=(
            f"The link between {fabric.show_link(link)} runs at {rate:g} Gb/s where its peers "
            f"run at {usual / _GIGA:g}. Check the cable, the transceivers and the lanes."
        ),
        ports=ends,
        impact=Impact(cables=round(1 - (link.rate_bps or 0) / usual, 4)),
    )


def find_one_sided_links(fabric: Fabric) -> Iterator[Finding]:
    """Yield a finding per link that one end reports, and the other could report but does not."""
    link_indices = np.flatnonzero(fabric.columns.links.is_one_sided)
    for link in fabric.links.at(link_indices.tolist()):
        yield _duplicate_finding(fabric, link) or _one_sided_finding(fabric, link)


def _duplicate_finding(fabric: Fabric, link: Link) -> Finding | None:
    """Return the finding of two devices with one GUID; None if the link does not show such a pair.

    In a sweep, each port of a GUID has one cable. So if two ports hear the same port, two devices
    have its GUID. Unlike LLDP, a sweep has no stale entries.
    """
    if not link.is_disputed or fabric.ports[link.a].medium is not Medium.INFINIBAND:
        return None
    links = fabric.columns.links
    for shared, other in ((link.a, link.b), (link.b, link.a)):
        cables = np.flatnonzero(((links.a == shared) | (links.b == shared)) & ~links.is_disputed)
        for row in fabric.links.at(cables.tolist()):
            far = fabric.port_name(row.b if row.a == shared else row.a)
            own, near = fabric.port_name(shared), fabric.port_name(other)
            return Finding(
                kind=FindingKind.DUPLICATE_ID,
                device=own.device,
                port=own.port,
                severity=Severity.ERROR,
                message=(
                    f"Two cables lead to {own.device} port {own.port}: from {far.device} port "
                    f"{far.port} and from {near.device} port {near.port}. So two devices have one "
                    "GUID, and only one of them is placed. Look for a cloned firmware image, and "
                    "give one of them another GUID."
                ),
                ports=(own, far, near),
            )
    return None


def _one_sided_finding(fabric: Fabric, link: Link) -> Finding:
    ends = (fabric.port_name(link.a), fabric.port_name(link.b))
    return Finding(
        kind=FindingKind.ONE_SIDED_LINK,
        device=ends[0].device,
        port=ends[0].port,
        severity=Severity.WARNING,
        message=(
            f"Only one end reports the link between {fabric.show_link(link)}. "
            + (
                "What the other end reports contradicts it, so this link is left out. The finding "
                "disappears when the entry times out."
                if link.is_disputed
                else "Check the transceivers, and that both ends send and receive."
            )
        ),
        ports=ends,
    )
