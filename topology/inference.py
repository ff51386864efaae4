"""A fabric to its tree: select the plane, rank, group, name, and say what is wrong.

The one entry to the inference; everything it calls is pure. Hosts that are no cluster nodes
shape the tiers and are left out of the tree afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from topology.errors import ConfigError
from topology.fabric import Fabric, link_findings
from topology.facts import Finding, FindingKind, PortName, Severity, sort_findings
from topology.homes import Tie
from topology.ids import IdKind, natural_key
from topology.names import Nameless, assign_names
from topology.planes import Plane, select_compute
from topology.ranks import Ranks, rank_switches
from topology.rates import slow_links
from topology.symmetry import symmetry_findings
from topology.tiers import SPINE_RANK, Group, Grouping, group_switches
from topology.tree import DomainSpec, TopologyTree, Unplaced, build_tree

_TIER_NAMES = ("leaf", "spine", "core")
NEAR_TIE_MARGIN = 0.1
"""A domain whose closest decision had less than this share to spare is said to be near a tie."""
_SHOWN = 4  # names listed in one message
FIRM_MARGIN = 0.5  # three of four links


@dataclass(frozen=True, slots=True)
class Inference:
    """What the facts say: the tree, and everything that is wrong with the fabric."""

    tree: TopologyTree
    findings: tuple[Finding, ...]
    """Sorted by kind, device and port."""


def tier_names(num_tiers: int, configured: Sequence[str] = ()) -> tuple[str, ...]:
    """Return names bottom-up: leaf, spine, core, core2 …, or the configured ones.

    Raises:
        ConfigError: fewer configured names than tiers, or one twice.
    """
    if configured:
        if len(set(configured)) < len(configured) or len(configured) < num_tiers:
            raise ConfigError(f"{num_tiers} tiers need as many different names: {configured}")
        return tuple(configured[:num_tiers])
    later = (f"core{number}" for number in range(2, num_tiers))
    return (*_TIER_NAMES, *later)[:num_tiers]


def infer(
    fabric: Fabric,
    *,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> Inference:
    """Return the tree of the compute plane, byte-identical for the same facts in any order.

    Args:
        fabric: all devices and links.
        previous: the last generation, whose domain names are carried over.
        names_of_tiers: bottom-up; the usual ones when empty.
    """
    plane = select_compute(fabric)
    ranks = rank_switches(plane)
    grouping = group_switches(plane, ranks)
    tree = _build(fabric, plane, grouping, ranks=ranks, previous=previous, names=names_of_tiers)
    findings = {
        *fabric.findings,
        *link_findings(fabric),
        *symmetry_findings(fabric, plane, grouping),
        *slow_links(fabric, plane, grouping),
        *_near_ties(tree),
        *_host_on_spine(fabric, ranks),
        *_set_aside(fabric, grouping),
        *_undecidable(fabric, plane, grouping),
        *_islands(tree),
        *_lone_tops(fabric, plane, grouping),
        *_torn_off(fabric, grouping),
    }
    return Inference(tree, sort_findings(findings))


def _build(
    fabric: Fabric,
    plane: Plane,
    grouping: Grouping,
    *,
    ranks: Ranks,
    previous: TopologyTree | None,
    names: Sequence[str],
) -> TopologyTree:
    nodes = _nodes_below(fabric, grouping.groups)
    kept = [at for at in range(len(grouping.groups)) if nodes[at]]
    levels = sorted({grouping.groups[at].rank for at in kept})
    tiers = tier_names(len(levels), names)
    nameless = [
        _nameless(fabric, grouping.groups[at], tier=levels.index(grouping.groups[at].rank) + 1)
        for at in kept
    ]
    rows = [
        Nameless(
            tier=tier,
            tier_name=tiers[tier - 1],
            nodes=frozenset(nodes[at]),
            switches=switches,
            lowest_id=lowest,
        )
        for at, (tier, switches, lowest) in zip(kept, nameless, strict=True)
    ]
    title = dict(zip(kept, assign_names(rows, previous), strict=True))
    specs = [
        DomainSpec(
            name=title[at],
            tier=row.tier,
            parent=_parent_name(grouping.groups, at, title),
            nodes=tuple(
                node for host in grouping.groups[at].hosts if (node := fabric.devices[host].node)
            ),
            switches=tuple(
                sorted(fabric.devices[one].name for one in grouping.groups[at].switches)
            ),
            margin=grouping.groups[at].margin,
        )
        for at, row in zip(kept, rows, strict=True)
    ]
    placed = {node for spec in specs for node in spec.nodes}
    unplaced = _unplaced(fabric, plane, grouping, ranks=ranks, placed=placed)
    return build_tree(specs, tiers=tiers, plane=plane.name, unplaced=unplaced)


def _nodes_below(fabric: Fabric, groups: Sequence[Group]) -> list[list[str]]:
    nodes: list[list[str]] = [[] for _ in groups]
    for at, group in enumerate(groups):
        own = [node for host in group.hosts if (node := fabric.devices[host].node)]
        above: int | None = at
        while above is not None:
            nodes[above] += own
            above = groups[above].parent
    return nodes


def _nameless(fabric: Fabric, group: Group, *, tier: int) -> tuple[int, tuple[str, ...], str]:
    devices = [fabric.devices[at] for at in group.switches]
    ids = {
        found.value
        for device in devices
        for found in device.ids
        if found.kind in (IdKind.NODE_GUID, IdKind.MAC, IdKind.CHASSIS_ID)
    }
    named = tuple(device.name for device in devices if device.name not in ids)
    lowest = min(ids, default=min((device.name for device in devices), default="all"))
    is_named = 0 < len(named) == len(devices)
    return tier, named if is_named else (), lowest.replace(":", "")


def _parent_name(groups: Sequence[Group], at: int, title: dict[int, str]) -> str | None:
    parent = groups[at].parent
    return None if parent is None else title[parent]


def _unplaced(
    fabric: Fabric, plane: Plane, grouping: Grouping, *, ranks: Ranks, placed: set[str]
) -> Iterator[Unplaced]:
    ties = {tie.unit: tie for tie in grouping.host_ties}
    links: dict[int, list[int]] = defaultdict(list)
    for edge in plane.host_edges:
        links[edge.a].append(edge.b)
    for host in plane.hosts:
        node = fabric.devices[host].node
        if node is None or node in placed:
            continue
        if host in ties:
            yield Unplaced(node, _tie_reason(fabric, ties[host]))
        elif links[host]:
            where = _list(fabric.devices[at].name for at in set(links[host]))
            is_spine = any(ranks.rank.get(at) != 1 for at in links[host])
            what = "no leaf" if is_spine else "a switch without hosts of its own"
            yield Unplaced(node, f"cabled to {where}, which is {what}")
        else:
            yield Unplaced(node, "no link in the compute plane is known")


def _tie_reason(fabric: Fabric, tie: Tie) -> str:
    groups = [_list(fabric.devices[at].name for at in group) for group in tie.groups]
    if len(set(tie.counts)) == 1:
        return f"undecided: {_links(tie.counts[0])} each to {' and to '.join(groups)}"
    ways = (f"{_links(count)} to {to}" for count, to in zip(tie.counts, groups, strict=True))
    return f"undecided: {', '.join(ways)}"


def _links(count: int) -> str:
    return f"{count} link{'s' if count > 1 else ''}"


def _list(names: Iterable[str]) -> str:
    ordered = sorted(names, key=natural_key)
    more = len(ordered) - _SHOWN
    shown = ", ".join(ordered[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown


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
        names = _list(fabric.devices[at].name for at in switches)
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
        message=f"{name} is {_tie_reason(fabric, tie)}. {effect} until a cable decides it.",
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


def _lone_tops(fabric: Fabric, plane: Plane, grouping: Grouping) -> Iterator[Finding]:
    """Yield a finding per thin top above spines that joins nothing.

    A leaf without hosts, or a spine that lost its leaves, looks the same: it stands above what it
    is cabled to. No placement depends on it, but the number of tiers does.
    """
    groups = grouping.groups
    group_of = grouping.by_switch()
    children: dict[int, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        if group.parent is not None:
            children[group.parent].append(at)
    num_links: dict[int, int] = defaultdict(int)
    for edge in plane.switch_edges:
        ends = [group_of[at] for at in (edge.a, edge.b) if at in group_of]
        ranks = {groups[at].rank for at in ends}
        if len(ranks) > 1:
            num_links[max(ends, key=lambda at: groups[at].rank)] += 1
    for at, group in enumerate(groups):
        below = children[at]
        is_top = group.parent is None and len(below) == 1 and group.rank > SPINE_RANK
        if is_top and 2 * num_links[at] <= num_links[below[0]]:
            yield _lone_top(fabric, group, groups[below[0]])


def _lone_top(fabric: Fabric, top: Group, below: Group) -> Finding:
    names = _names(fabric, top)
    return Finding(
        kind=FindingKind.UNDECIDABLE,
        device=names[0],
        port=None,
        severity=Severity.INFO,
        message=(
            f"{_list(names)} joins nothing but what {_list(_names(fabric, below))} joins already. "
            "It counts as a tier of its own; a leaf without hosts, or a spine without leaves, "
            "looks the same. Check that it is meant to stand there."
        ),
        ports=tuple(PortName(name, "") for name in (*names, *_names(fabric, below))),
    )


def _torn_off(fabric: Fabric, grouping: Grouping) -> Iterator[Finding]:
    """Yield a finding per domain above one leaf that many of the leaf's links lead away from.

    Lost and swapped cables together can tear a leaf and a spine off their pod, and then they are
    each other's majority.
    """
    groups = grouping.groups
    below: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        if group.parent is not None:
            below[group.parent].append(group)
    for at, children in sorted(below.items()):
        if len(children) == 1 and groups[at].margin <= FIRM_MARGIN:
            low, high = _names(fabric, children[0]), _names(fabric, groups[at])
            yield Finding(
                kind=FindingKind.UNDECIDABLE,
                device=low[0],
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"{_list(low)} is all that {_list(high)} holds, and many of its links lead to "
                    "others, so it may belong to their domain. Check its up-links."
                ),
                ports=tuple(PortName(name, "") for name in (*low, *high)),
            )


def _names(fabric: Fabric, group: Group) -> list[str]:
    return [fabric.devices[at].name for at in group.switches]
