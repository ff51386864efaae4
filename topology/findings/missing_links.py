"""Cables that are not there although symmetry expects them.

Expected is what most fellows have: hosts of one leaf group the same number of links, leaves below
one group of spines the same number of up-links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.ids import natural_key
from topology.model.pair_counts import PairCounts, count_pairs
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups

DENSE_SHARE = 2 / 3  # of pairs that have a cable, for an absent pair to be a gap and not a design


def find_missing_links(
    fabric: Fabric,
    plane: Plane,
    *,
    grouping: TierGroups,
    domain_links: DomainLinks,
    misplaced: set[int],
) -> Iterator[Finding]:
    """Yield missing-link findings.

    Args:
        fabric: for names and unlinked ports.
        plane: the plane's cables.
        grouping: its groups.
        ways: the cables between its switches.
        astray: devices with a cable in the wrong place, which explains a gap already.
    """
    yield from _find_missing_host_links(fabric, plane, grouping, misplaced)
    yield from _find_missing_switch_links(fabric, grouping, domain_links, misplaced)


def _find_missing_switch_links(
    fabric: Fabric, grouping: TierGroups, ways: DomainLinks, astray: set[int]
) -> Iterator[Finding]:
    lowers: dict[int, list[int]] = defaultdict(list)
    for group in grouping.groups:
        if group.parent is not None:
            lowers[group.parent] += [switch for switch in group.switches if switch not in astray]
    is_up = ways.is_up & ~np.isin(ways.near, list(astray))
    up, over = PairCounts(ways.near, ways.far, ways.counts).where(is_up), ways.far_group[is_up]
    by_count = count_pairs(over, up.counts).by_left()
    order = np.argsort(over, kind="stable")
    bounds = np.searchsorted(over[order], np.arange(len(grouping.groups) + 1)).tolist()
    for at, below in sorted(lowers.items()):
        above, usual = grouping.groups[at].switches, _most_frequent(by_count.get(at, {}))
        is_full = bounds[at + 1] - bounds[at] == len(below) * len(above)
        if not is_full or min(by_count.get(at, ()), default=0) < usual:
            own = up.where(order[bounds[at] : bounds[at + 1]])
            yield from _find_missing_uplinks(fabric, own, (sorted(below), above), usual)


def _most_frequent(found: Mapping[int, int]) -> int:
    """Return the count that is there most often, the larger of equally frequent ones; else 0."""
    return max(found.items(), key=lambda row: (row[1], row[0]))[0] if found else 0


def _find_missing_host_links(
    fabric: Fabric, plane: Plane, grouping: TierGroups, astray: set[int]
) -> Iterator[Finding]:
    size = len(fabric.devices)
    num_links = np.bincount(plane.host_edges.columns.a, minlength=size).tolist()
    columns = columns_of(fabric)
    is_spare = plane.ports.is_member.copy()
    is_spare[columns.links.a] = is_spare[columns.links.b] = False
    spare: dict[int, list[int]] = defaultdict(list)
    for port in np.flatnonzero(is_spare).tolist():
        spare[int(columns.port_devices[port])].append(port)
    # Without a single cable nothing is known, as in reports without a sweep; nothing is missing.
    for host in plane.hosts if plane.host_edges else ():
        if num_links[host] == 0 and spare[host] and host not in astray:
            yield _host_finding(fabric, host, (0, len(spare[host])), spare[host])
    for group in grouping.groups:
        expected = _most_frequent(Counter([num_links[host] for host in group.hosts]))
        for host in group.hosts:
            gap = expected - num_links[host]
            if gap > 0 and host not in astray:
                yield _host_finding(fabric, host, (num_links[host], expected), spare[host][:gap])


def _host_finding(fabric: Fabric, host: int, have: tuple[int, int], ports: list[int]) -> Finding:
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


def _find_missing_uplinks(
    fabric: Fabric, up: PairCounts, ends: tuple[Sequence[int], Sequence[int]], usual: int
) -> Iterator[Finding]:
    """Yield what the switches below a group lack: pairs where most have a cable, else totals.

    Args:
        fabric: for names.
        up: the cables from below.
        ends: the switches below and those of the group, ascending.
        usual: how many cables most pairs have that have any.
    """
    lowers, uppers = ends
    rows = np.searchsorted(lowers, up.left)
    if len(rows) >= DENSE_SHARE * len(lowers) * len(uppers):
        table = np.zeros((len(lowers), len(uppers)), np.intp)
        table[rows, np.searchsorted(uppers, up.right)] = up.counts
        for row, column in np.argwhere(table < usual).tolist():
            have = int(table[row, column])
            yield _pair_finding(fabric, (lowers[row], uppers[column]), have, usual)
        return
    totals = np.bincount(rows, up.counts, len(lowers)).astype(np.intp).tolist()
    most = _most_frequent(Counter(totals))
    for low, total in zip(lowers, totals, strict=True):
        if total < most:
            yield _total_finding(fabric, low, total, most)


def _pair_finding(fabric: Fabric, pair: tuple[int, int], have: int, expected: int) -> Finding:
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
        ports=tuple(sorted((PortName(low, ""), PortName(high, "")), key=_sort_key)),
    )


def _total_finding(fabric: Fabric, low: int, have: int, expected: int) -> Finding:
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


def _sort_key(end: PortName) -> tuple[object, ...]:
    return natural_key(end.device)
