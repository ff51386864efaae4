"""Cables that are not there although symmetry expects them.

Expected is what most fellows have: hosts of one leaf group the same number of links, leaves below
one group of spines the same number of up-links.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from topology.fabric import Fabric
from topology.facts import Finding, FindingKind, PortName, Severity
from topology.ids import natural_key
from topology.planes import Plane
from topology.tiers import Group, Grouping

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
    up: dict[int, Counter[int]] = defaultdict(Counter)
    for edge in plane.switch_edges:
        up[edge.a][edge.b] += 1
        up[edge.b][edge.a] += 1
    children: dict[int, list[Group]] = defaultdict(list)
    for group in grouping.groups:
        if group.parent is not None:
            children[group.parent].append(group)
    for at, below in sorted(children.items()):
        uppers = set(grouping.groups[at].switches)
        lowers = [switch for group in below for switch in group.switches if switch not in astray]
        yield from _pairs(fabric, sorted(lowers), uppers, up)


def _expected(counts: Iterable[int]) -> int:
    """Return the most frequent count, the larger of equally frequent ones; 0 without any."""
    found = Counter(counts)
    return max(found.items(), key=lambda row: (row[1], row[0]))[0] if found else 0


def _hosts(fabric: Fabric, plane: Plane, grouping: Grouping, astray: set[int]) -> Iterator[Finding]:
    num_links = Counter(edge.a for edge in plane.host_edges)
    linked = {port for link in fabric.links for port in (link.a, link.b)}
    spare: dict[int, list[int]] = defaultdict(list)
    for port in sorted(plane.ports - linked):
        spare[fabric.ports[port].device].append(port)
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
    fabric: Fabric, lowers: list[int], uppers: set[int], up: dict[int, Counter[int]]
) -> Iterator[Finding]:
    counts = {
        (low, high): count for low in lowers for high, count in up[low].items() if high in uppers
    }
    expected = _expected(counts.values())
    is_dense = len(counts) >= DENSE_SHARE * len(lowers) * len(uppers)
    if is_dense:
        for low in lowers:
            for high in sorted(uppers):
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
