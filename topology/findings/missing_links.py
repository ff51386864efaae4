"""Cables that are absent although symmetry expects them, and an end would report them.

The expected number is what most peers have: hosts of one leaf group have the same number of links,
and leaves below one group of spines have the same number of up-links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from topology.findings.tree_findings import format_links
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Finding, FindingKind, PortName, Severity
from topology.model.ids import natural_key
from topology.model.pair_counts import PairCounts, count_pairs
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups

DENSE_SHARE = 2 / 3
"""Share of pairs with a cable from which an absent pair is a gap and not the design."""


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
        fabric: the names, and the ports without a link.
        plane: the cables.
        grouping: the groups of the plane.
        domain_links: the cables between the switches of the plane.
        misplaced: devices with a cable in the wrong place, which already explains a gap.
    """
    yield from _find_missing_host_links(fabric, plane, grouping, misplaced)
    yield from _find_missing_switch_links(fabric, grouping, domain_links, misplaced)


def _find_missing_switch_links(
    fabric: Fabric, grouping: TierGroups, domain_links: DomainLinks, misplaced: set[int]
) -> Iterator[Finding]:
    lowers: dict[int, list[int]] = defaultdict(list)
    for group in grouping.groups:
        if group.parent is not None:
            lowers[group.parent] += [switch for switch in group.switches if switch not in misplaced]
    is_up = domain_links.is_up & ~np.isin(domain_links.near, list(misplaced))
    up, over = (
        PairCounts(domain_links.near, domain_links.far, domain_links.counts).where(is_up),
        domain_links.far_group[is_up],
    )
    by_count = count_pairs(over, up.counts).by_left
    order = np.argsort(over, kind="stable")
    bounds = np.searchsorted(over[order], np.arange(len(grouping.groups) + 1)).tolist()
    for group_index, below in sorted(lowers.items()):
        above, usual = (
            grouping.groups[group_index].switches,
            _most_frequent(by_count.get(group_index, {})),
        )
        is_full = bounds[group_index + 1] - bounds[group_index] == len(below) * len(above)
        if not is_full or min(by_count.get(group_index, ()), default=0) < usual:
            group_pairs = up.where(order[bounds[group_index] : bounds[group_index + 1]])
            yield from _find_missing_uplinks(fabric, group_pairs, (sorted(below), above), usual)


def _most_frequent(frequencies: Mapping[int, int]) -> int:
    """Return the most frequent count, the larger one of equals; 0 without any."""
    return max(frequencies.items(), key=lambda row: (row[1], row[0]))[0] if frequencies else 0


def _find_missing_host_links(
    fabric: Fabric, plane: Plane, grouping: TierGroups, misplaced: set[int]
) -> Iterator[Finding]:
    size = len(fabric.devices)
    num_links = np.bincount(plane.host_edges.columns.a, minlength=size).tolist()
    columns = columns_of(fabric)
    is_spare = plane.ports.is_member.copy()
    is_spare[columns.links.a] = is_spare[columns.links.b] = False
    spare: dict[int, list[int]] = defaultdict(list)
    for port in np.flatnonzero(is_spare).tolist():
        spare[int(columns.port_devices[port])].append(port)
    # Without a single cable (reports without a sweep) nothing is known, so nothing is missing.
    for host in plane.hosts if plane.host_edges else ():
        if num_links[host] == 0 and spare[host] and host not in misplaced:
            yield _host_finding(fabric, host, (0, len(spare[host])), spare[host])
    for group in grouping.groups:
        expected = _most_frequent(Counter([num_links[host] for host in group.hosts]))
        for host in group.hosts:
            gap = expected - num_links[host]
            if gap > 0 and host not in misplaced:
                yield _host_finding(fabric, host, (num_links[host], expected), spare[host][:gap])


def _host_finding(
    fabric: Fabric, host: int, num_links: tuple[int, int], ports: list[int]
) -> Finding:
    """Return the finding of a host.

    Args:
        fabric: the names.
        host: the host that lacks links.
        num_links: how many links it has, and how many it should have.
        ports: its ports without a link.
    """
    name, (present, expected) = fabric.devices[host].name, num_links
    ends = tuple(fabric.port_name(port) for port in ports)
    unlinked = f" (no link on {', '.join(end.port for end in ends)})" if ends else ""
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=name,
        port=ends[0].port if len(ends) == 1 else None,
        severity=Severity.WARNING,
        message=(
            f"{name} has {format_links(present)}, expected {expected}{unlinked}. Check the "
            "cable, the transceiver and the port."
        ),
        ports=ends or (PortName(name, ""),),
    )


def _find_missing_uplinks(
    fabric: Fabric, up: PairCounts, ends: tuple[Sequence[int], Sequence[int]], usual: int
) -> Iterator[Finding]:
    """Yield the gaps below a group: by pair where most pairs have a cable, else by total.

    Args:
        fabric: the names.
        up: the cables from the switches below to the group.
        ends: the switches below, and the switches of the group, both ascending.
        usual: the most frequent number of cables of pairs that have any.
    """
    lowers, uppers = ends
    rows = np.searchsorted(lowers, up.left)
    if len(rows) >= DENSE_SHARE * len(lowers) * len(uppers):
        table = np.zeros((len(lowers), len(uppers)), np.intp)
        table[rows, np.searchsorted(uppers, up.right)] = up.counts
        for row, column in np.argwhere(table < usual).tolist():
            pair = (lowers[row], uppers[column])
            if any(fabric.devices[switch].is_reporting for switch in pair):
                yield _pair_finding(fabric, pair, int(table[row, column]), usual)
        return
    totals = np.bincount(rows, up.counts, len(lowers)).astype(np.intp).tolist()
    most = _most_frequent(Counter(totals))
    for low, total in zip(lowers, totals, strict=True):
        if total < most and fabric.devices[low].is_reporting:
            yield _total_finding(fabric, low, total, most)


def _pair_finding(
    fabric: Fabric, pair: tuple[int, int], num_present: int, expected: int
) -> Finding:
    low, high = (fabric.devices[switch].name for switch in pair)
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=low,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{low} has {format_links(num_present)} to {high}, expected {expected}. Check the "
            "cables and transceivers between the two."
        ),
        ports=tuple(sorted((PortName(low, ""), PortName(high, "")), key=_sort_key)),
    )


def _total_finding(fabric: Fabric, low: int, num_present: int, expected: int) -> Finding:
    name = fabric.devices[low].name
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=name,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{name} has {format_links(num_present, 'up-link')}, but its peers have {expected}. "
            "Check its ports, cables and transceivers."
        ),
        ports=(PortName(name, ""),),
    )


def _sort_key(end: PortName) -> tuple[object, ...]:
    return natural_key(end.device)
