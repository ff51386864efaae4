"""Links slower than their fellows: a lane lost, a wrong transceiver, a port that came up low.

Fellows are the host links of one leaf group, and the cables between two ranks. What most of
them run at is what was meant.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator

from topology.fabric import Fabric, Link
from topology.facts import Finding, FindingKind, Severity
from topology.planes import Plane
from topology.tiers import Grouping

MIN_FELLOWS = 3
"""Links that must agree for another to be called slow."""
_GIGA = 1_000_000_000


def slow_links(fabric: Fabric, plane: Plane, grouping: Grouping) -> Iterator[Finding]:
    """Yield a finding per link below the usual rate of its fellows. Cost: O(links)."""
    rates = {(link.a, link.b): link for link in fabric.links if link.rate_bps is not None}
    group_of = grouping.by_switch()
    fellows: dict[Hashable, list[Link]] = defaultdict(list)
    for edge in (*plane.host_edges, *plane.switch_edges):
        link = rates.get((min(edge.a_port, edge.b_port), max(edge.a_port, edge.b_port)))
        ends = [group_of.get(edge.a), group_of.get(edge.b)]
        if link is None or ends[1] is None:
            continue
        if ends[0] is None:
            fellows["host", ends[1]].append(link)
        else:
            ranks = sorted(grouping.groups[at].rank for at in ends if at is not None)
            fellows["switch", *ranks].append(link)
    for links in fellows.values():
        yield from _below_usual(fabric, links)


def _below_usual(fabric: Fabric, links: list[Link]) -> Iterator[Finding]:
    counts = Counter(link.rate_bps or 0 for link in links)
    usual, agreeing = max(counts.items(), key=lambda row: (row[1], row[0]))
    if agreeing < MIN_FELLOWS:
        return
    for link in links:
        rate = link.rate_bps or 0
        if rate < usual:
            yield _slow(fabric, link, usual)


def _slow(fabric: Fabric, link: Link, usual: int) -> Finding:
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
