"""What is odd about a tree: ties, islands, switches and tiers that join nothing, skipped tiers.

Decides nothing about the tree, only what people are told of it. Cables in the wrong port are
found in `symmetry`, missing ones in `shortfalls`, wirings that are no tree at all in `treeness`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topology.fabric import Fabric
from topology.facts import Finding, FindingKind, PortName, Severity
from topology.homes import Tie
from topology.ids import natural_key
from topology.planes import Edge, Plane
from topology.ranks import Ranks
from topology.tiers import SPINE_RANK, Group, Grouping
from topology.tree import TopologyTree

NEAR_TIE_MARGIN = 0.1
"""A domain whose closest decision had less than this share to spare is said to be near a tie."""
FIRM_MARGIN = 0.5  # three of four links
_SHOWN = 4  # names listed in one message


def tree_findings(
    fabric: Fabric, plane: Plane, *, ranks: Ranks, grouping: Grouping, tree: TopologyTree
) -> Iterator[Finding]:
    """Yield what is odd about a tree. Cost: O(links)."""
    yield from _near_ties(tree)
    yield from _host_on_spine(fabric, ranks)
    yield from _set_aside(fabric, grouping)
    yield from _undecidable(fabric, plane, grouping)
    yield from _islands(tree)
    below = _children(grouping.groups)
    yield from _lone_tops(fabric, grouping.groups, below)
    yield from _lone_leaves(fabric, grouping.groups, below)
    yield from _halves(fabric, grouping.groups, below)
    yield from _torn_off(fabric, grouping.groups, below)
    yield from _shallow(fabric, grouping.groups, below)
    yield from _skipping(fabric, plane, grouping)


def tie_reason(fabric: Fabric, tie: Tie) -> str:
    """Return why a unit is nowhere: between what it hangs, and by how many links."""
    groups = [list_names(fabric.devices[at].name for at in group) for group in tie.groups]
    if len(set(tie.counts)) == 1:
        return f"undecided: {_links(tie.counts[0])} each to {' and to '.join(groups)}"
    ways = (f"{_links(count)} to {to}" for count, to in zip(tie.counts, groups, strict=True))
    return f"undecided: {', '.join(ways)}"


def _links(count: int) -> str:
    return f"{count} link{'s' if count > 1 else ''}"


def list_names(names: Iterable[str]) -> str:
    """Return names in natural order as a message lists them, cut after the fourth."""
    ordered = sorted(names, key=natural_key)
    more = len(ordered) - _SHOWN
    shown = ", ".join(ordered[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


def _names(fabric: Fabric, group: Group) -> list[str]:
    return [fabric.devices[at].name for at in group.switches]


def _children(groups: Sequence[Group]) -> dict[int, list[int]]:
    """Return group to the groups below it, all by index, ascending."""
    below: dict[int, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        if group.parent is not None:
            below[group.parent].append(at)
    return below


def _host_on_spine(fabric: Fabric, ranks: Ranks) -> Iterator[Finding]:
    for host, switch in ranks.hosts_on_spines:
        names = fabric.devices[host].name, fabric.devices[switch].name
        yield Finding(
            kind=FindingKind.HOST_ON_SPINE,
            device=names[0],
            port=None,
            severity=Severity.WARNING,
            message=(
                f"Host {names[0]} is cabled to {names[1]}, which serves leaves and is no leaf "
                "itself; this link places nothing. Move the cable to a leaf if jobs run there."
            ),
        )


def _set_aside(fabric: Fabric, grouping: Grouping) -> Iterator[Finding]:
    for _, switches in grouping.set_aside:
        names = list_names(fabric.devices[at].name for at in switches)
        yield Finding(
            kind=FindingKind.AUX_SWITCH,
            device=fabric.devices[switches[0]].name,
            port=None,
            severity=Severity.INFO,
            message=(
                f"{names} holds most links of no host or leaf, or joins nothing, so it is set "
                "aside: a storage or management switch, one without hosts, or one that lost its "
                "own. No domain is made of it."
            ),
            ports=tuple(PortName(fabric.devices[at].name, "") for at in switches),
        )


def _undecidable(fabric: Fabric, plane: Plane, grouping: Grouping) -> Iterator[Finding]:
    for tie in grouping.host_ties:
        name = fabric.devices[tie.unit].name
        ends = {
            fabric.port_name(port)
            for edge in plane.host_edges
            if edge.a == tie.unit
            for port in (edge.a_port, edge.b_port)
        }
        yield _tie_finding(fabric, name, tie, effect="It is not placed", ends=ends)
    for tie in grouping.group_ties:
        below = set(grouping.groups[tie.unit].switches)
        above = {switch for group in tie.groups for switch in group}
        ends = {
            fabric.port_name(port)
            for edge in plane.switch_edges
            if {edge.a, edge.b} & below and {edge.a, edge.b} & above
            for port in (edge.a_port, edge.b_port)
        }
        name = fabric.devices[min(below)].name
        yield _tie_finding(fabric, name, tie, effect="Its domain stands alone", ends=ends)


def _tie_finding(
    fabric: Fabric, name: str, tie: Tie, *, effect: str, ends: set[PortName]
) -> Finding:
    return Finding(
        kind=FindingKind.UNDECIDABLE,
        device=name,
        port=None,
        severity=Severity.ERROR,
        message=f"{name} is {tie_reason(fabric, tie)}. {effect} until a cable decides it.",
        ports=tuple(sorted(ends)),
    )


def _near_ties(tree: TopologyTree) -> Iterator[Finding]:
    for domain in tree.domains:
        if domain.margin < NEAR_TIE_MARGIN:
            yield Finding(
                kind=FindingKind.NEAR_TIE,
                device=next(iter(domain.switches), domain.name),
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"Domain {domain.name} was decided by a margin of {domain.margin:.0%}: a few "
                    "more lost or moved cables would change it. Mend what else is reported there."
                ),
            )


def _islands(tree: TopologyTree) -> Iterator[Finding]:
    roots = [domain for domain in tree.domains if domain.parent is None]
    if len(roots) < 2:  # noqa: PLR2004 - one root is a tree
        return
    largest = max(roots, key=lambda domain: (domain.stop - domain.start, -domain.start))
    for domain in roots:
        if domain is not largest:
            yield Finding(
                kind=FindingKind.ISLAND,
                device=next(iter(domain.switches), domain.name),
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"Domain {domain.name} ({domain.stop - domain.start} nodes) has no cable to "
                    f"{largest.name}; no gang is placed across. Check its up-links."
                ),
                ports=tuple(PortName(name, "") for name in domain.switches),
            )


def _lone_tops(
    fabric: Fabric, groups: Sequence[Group], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per top above spines that joins nothing.

    No placement depends on it, but the number of tiers does; and a leaf without hosts, a pod
    without leaves, or pods fused by exchanged cables look the same.
    """
    for at, children in sorted(below.items()):
        top = groups[at]
        if top.parent is None and len(children) == 1 and top.rank > SPINE_RANK:
            names, low = _names(fabric, top), _names(fabric, groups[children[0]])
            yield Finding(
                kind=FindingKind.UNDECIDABLE,
                device=names[0],
                port=None,
                severity=Severity.INFO,
                message=(
                    f"{list_names(names)} joins nothing but what {list_names(low)} joins already. "
                    "It counts as a tier of its own; a leaf without hosts, spines without leaves, "
                    "or pods whose up-links were exchanged look the same. Check that it is meant "
                    "to stand there."
                ),
                ports=tuple(PortName(name, "") for name in (*names, *low)),
            )


def _lone_leaves(
    fabric: Fabric, groups: Sequence[Group], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding where several domains above leaves hold a single switch each.

    Only that switch's own cables tell which spines are its; exchanged with another such leaf's
    they leave no trace.
    """
    lone = [
        (children[0], at)
        for at, children in sorted(below.items())
        if len(children) == 1 and len(groups[children[0]].switches) == 1
    ]
    if len(lone) > 1:
        leaves = [name for leaf, _ in lone for name in _names(fabric, groups[leaf])]
        uppers = [name for _, at in lone for name in _names(fabric, groups[at])]
        yield Finding(
            kind=FindingKind.UNDECIDABLE,
            device=leaves[0],
            port=None,
            severity=Severity.INFO,
            message=(
                f"{list_names(leaves)} have spines of their own that no other leaf uses: if "
                "up-links of theirs were exchanged with each other's, no cable would tell. Check "
                "them against the plan."
            ),
            ports=tuple(PortName(name, "") for name in (*leaves, *uppers)),
        )


def _halves(
    fabric: Fabric, groups: Sequence[Group], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain with leaf groups that are parts of one, by their fellows' size.

    Only hosts on both leaves of a pair show that it is one. Where the few hosts of a small pair
    lost a cable each, nothing is left that does.
    """
    sizes = Counter[int]()
    for group in groups:
        sizes[len(group.switches)] += len(group.hosts)
    usual, fellows = max(sizes.items(), key=lambda row: (row[1], row[0]), default=(0, 0))
    for _, children in sorted(below.items()):
        parts = [at for at in children if groups[at].rank == 1 and len(groups[at].switches) < usual]
        names = [name for at in parts for name in _names(fabric, groups[at])]
        if len(parts) > 1 and len(names) <= usual and 2 * fellows > sizes.total():
            yield Finding(
                kind=FindingKind.UNDECIDABLE,
                device=names[0],
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"{list_names(names)} share no host, so they count as {len(parts)} domains, "
                    f"where {usual} leaves are one elsewhere. Check for missing host links."
                ),
                ports=tuple(PortName(name, "") for name in names),
            )


def _torn_off(
    fabric: Fabric, groups: Sequence[Group], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain above one leaf that many of the leaf's links lead away from.

    Lost and swapped cables together can tear a leaf and a spine off their pod, and then they are
    each other's majority.
    """
    for at, children in sorted(below.items()):
        if len(children) == 1 and groups[at].margin <= FIRM_MARGIN:
            low, high = _names(fabric, groups[children[0]]), _names(fabric, groups[at])
            yield Finding(
                kind=FindingKind.UNDECIDABLE,
                device=low[0],
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"{list_names(low)} is all that {list_names(high)} holds, and many of its "
                    "links lead to others, so it may belong to their domain. Check its up-links."
                ),
                ports=tuple(PortName(name, "") for name in (*low, *high)),
            )


def _shallow(
    fabric: Fabric, groups: Sequence[Group], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain that hangs more tiers below its parent than its siblings do."""
    for at, children in sorted(below.items()):
        highest = max(groups[child].rank for child in children)
        for child in children:
            if groups[child].rank == highest or not groups[child].switches:
                continue
            names = _names(fabric, groups[child])
            above = _names(fabric, groups[at])
            yield Finding(
                kind=FindingKind.TIER_MISMATCH,
                device=names[0],
                port=None,
                severity=Severity.INFO,
                message=(
                    f"{list_names(names)} hangs {groups[at].rank - groups[child].rank} tiers below "
                    f"{list_names(above) or 'the whole'}, where other domains hang "
                    f"{groups[at].rank - highest}. The tree keeps it so; check that no spines are "
                    "missing between."
                ),
                ports=tuple(PortName(name, "") for name in (*names, *above)),
            )


def _skipping(fabric: Fabric, plane: Plane, grouping: Grouping) -> Iterator[Finding]:
    """Yield a finding per switch with cables to a tier above the one that it hangs below."""
    groups, group_of = grouping.groups, grouping.by_switch()
    skipping: dict[int, list[Edge]] = defaultdict(list)
    for edge in plane.switch_edges:
        for low, high in ((edge.a, edge.b), (edge.b, edge.a)):
            parent = groups[group_of[low]].parent if low in group_of else None
            if parent is None or high not in group_of:
                continue
            if groups[group_of[high]].rank > groups[parent].rank:
                skipping[low].append(edge)
    for low, edges in sorted(skipping.items()):
        ends = [fabric.port_name(port) for edge in edges for port in (edge.a_port, edge.b_port)]
        name = fabric.devices[low].name
        parent = groups[group_of[low]].parent
        spines = _names(fabric, groups[parent]) if parent is not None else []
        others = {end.device for end in ends} - {name}
        yield Finding(
            kind=FindingKind.TIER_MISMATCH,
            device=name,
            port=next(end.port for end in ends if end.device == name) if len(edges) == 1 else None,
            severity=Severity.WARNING,
            message=(
                f"{name} is cabled to {list_names(others)}, past {list_names(spines)}, which its "
                "other up-links lead to. Move the cable there if it is not meant as a shortcut."
            ),
            ports=tuple(sorted(ends)),
        )
