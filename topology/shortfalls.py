"""Cables that are not there although symmetry expects them.

Expected is what most fellows have: hosts of one leaf group the same number of links, leaves below
one group of spines the same number of up-links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from topology.fabric import Fabric
from topology.fabric_columns import Index, columns_of
from topology.facts import Finding, FindingKind, PortName, Severity
from topology.group_columns import NONE, group_columns
from topology.ids import natural_key
from topology.plane_cables import count_pairs, edge_columns
from topology.planes import Plane
from topology.tiers import Grouping

DENSE_SHARE = 2 / 3  # of pairs that have a cable, for an absent pair to be a gap and not a design


def missing_links(
    fabric: Fabric, plane: Plane, grouping: Grouping, *, astray: set[int]
) -> Iterator[Finding]:
    """Yield missing-link findings.

    Args:
        fabric: for names and unlinked ports.
        plane: the plane's cables.
        grouping: its groups.
        astray: devices with a cable in the wrong place, which explains a gap already.
    """
    yield from _hosts(fabric, plane, grouping, astray)
    lowers: dict[int, list[int]] = defaultdict(list)
    for group in grouping.groups:
        if group.parent is not None:
            lowers[group.parent] += [switch for switch in group.switches if switch not in astray]
    a, b, _, _ = edge_columns(plane.switch_edges)
    low, high = np.concatenate([a, b]), np.concatenate([b, a])
    columns = group_columns(fabric, grouping)
    over = columns.group_of[high]
    is_up = (over != NONE) & (columns.parents[columns.group_of[low]] == over)
    is_up &= ~np.isin(low, list(astray))
    even = _even_pairs(low[is_up], high[is_up], over[is_up], len(grouping.groups))
    odd = [
        (at, below)
        for at, below in sorted(lowers.items())
        if even[at] != len(below) * len(grouping.groups[at].switches)
    ]
    up = count_pairs(low[is_up], high[is_up]) if odd else {}
    for at, below in odd:
        yield from _pairs(fabric, sorted(below), set(grouping.groups[at].switches), up)


def _even_pairs(low: Index, high: Index, over: Index, num_groups: int) -> list[int]:
    """Return by upper group the number of pairs that have a cable.

    -1 where some pairs have more cables than others.
    """
    order = np.lexsort((high, low))
    low, high, over = low[order], high[order], over[order]
    places = np.flatnonzero(np.diff(low, prepend=-1) | np.diff(high, prepend=-1))
    counts, groups = np.diff(places, append=len(low)), over[places]
    fewest, most = np.full(num_groups, len(low)), np.zeros(num_groups, np.intp)
    np.minimum.at(fewest, groups, counts)
    np.maximum.at(most, groups, counts)
    num_pairs = np.bincount(groups, minlength=num_groups)
    pairs: list[int] = np.where(fewest < most, -1, num_pairs).tolist()
    return pairs


def _expected(counts: Iterable[int]) -> int:
    """Return the most frequent count, the larger of equally frequent ones; 0 without any."""
    found = Counter(counts)
    return max(found.items(), key=lambda row: (row[1], row[0]))[0] if found else 0


def _hosts(fabric: Fabric, plane: Plane, grouping: Grouping, astray: set[int]) -> Iterator[Finding]:
    num_links = Counter(edge_columns(plane.host_edges).a.tolist())
    columns = columns_of(fabric)
    ports = np.array(sorted(plane.ports), np.intp)
    linked = np.concatenate([columns.links.a, columns.links.b])
    spare: dict[int, list[int]] = defaultdict(list)
    for port in ports[~np.isin(ports, linked)].tolist():
        spare[int(columns.port_devices[port])].append(port)
    # Without a single cable nothing is known, as in reports without a sweep; nothing is missing.
    for host in plane.hosts if plane.host_edges else ():
        if num_links[host] == 0 and spare[host] and host not in astray:
            yield _host_gap(fabric, host, (0, len(spare[host])), spare[host])
    for group in grouping.groups:
        expected = _expected(num_links[host] for host in group.hosts)
        for host in group.hosts:
            gap = expected - num_links[host]
            if gap > 0 and host not in astray:
                yield _host_gap(fabric, host, (num_links[host], expected), spare[host][:gap])


def _host_gap(fabric: Fabric, host: int, have: tuple[int, int], ports: list[int]) -> Finding:
    name = fabric.devices[host].name
    ends = tuple(fabric.port_name(port) for port in ports)
    which = f" ({', '.join(end.port for end in ends)})" if ends else ""
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=name,
        port=ends[0].port if len(ends) == 1 else None,
        severity=Severity.WARNING,
        message=(
            f"{name} has {have[0]} links where {have[1]} are usual{which}. Check the cable, the "
            "transceiver and the port."
        ),
        ports=ends or (PortName(name, ""),),
    )


def _pairs(
    fabric: Fabric, lowers: list[int], uppers: set[int], up: Mapping[int, Mapping[int, int]]
) -> Iterator[Finding]:
    counts = {
        (low, high): count
        for low in lowers
        for high, count in up.get(low, {}).items()
        if high in uppers
    }
    expected = _expected(counts.values())
    num_pairs = len(lowers) * len(uppers)
    if len(counts) == num_pairs and min(counts.values(), default=0) >= expected:
        return  # nearly always
    if len(counts) >= DENSE_SHARE * num_pairs:
        ordered = sorted(uppers)
        for low in lowers:
            for high in ordered:
                if counts.get((low, high), 0) < expected:
                    yield _pair_gap(fabric, (low, high), counts.get((low, high), 0), expected)
        return
    totals = Counter[int]()
    for (low, _), count in counts.items():
        totals[low] += count
    usual = _expected(totals[low] for low in lowers)
    for low in lowers:
        if totals[low] < usual:
            yield _total_gap(fabric, low, totals[low], usual)


def _pair_gap(fabric: Fabric, pair: tuple[int, int], have: int, expected: int) -> Finding:
    low, high = (fabric.devices[at].name for at in pair)
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=low,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{low} has {have} links to {high} where {expected} are usual here. Check the "
            "cables and transceivers between the two."
        ),
        ports=tuple(sorted((PortName(low, ""), PortName(high, "")), key=_order)),
    )


def _total_gap(fabric: Fabric, low: int, have: int, expected: int) -> Finding:
    name = fabric.devices[low].name
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=name,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{name} has {have} up-links where its fellows have {expected}. Check its ports, "
            "cables and transceivers."
        ),
        ports=(PortName(name, ""),),
    )


def _order(end: PortName) -> tuple[object, ...]:
    return natural_key(end.device)
