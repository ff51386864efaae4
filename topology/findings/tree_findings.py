"""Devices and domains without a certain place in the tree: ties, islands, switches set aside.

Reports findings only; the tree does not change. `tier_findings` reports unusual tiers,
`swapped_cables` cables in the wrong port, `missing_links` absent cables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain

from topology.model.errors import list_some
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, PortName, Severity, finding_about
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.group_membership import Tie
from topology.tiers.ranks import Ranks
from topology.tiers.tier_groups import TierGroup, TierGroups

NEAR_TIE_MARGIN = 0.1
"""A domain with a smaller margin is reported as near a tie."""
_MAX_NAMES_SHOWN = 4
"""Names listed in one message."""


def find_tree_problems(
    fabric: Fabric, plane: Plane, *, ranks: Ranks, grouping: TierGroups, tree: TopologyTree
) -> Iterator[Finding]:
    """Yield findings about uncertain places in a tree. Cost: O(links)."""
    yield from _find_near_ties(tree)
    yield from _find_hosts_on_spines(fabric, ranks)
    yield from _find_set_aside(fabric, grouping)
    yield from _find_undecidable(fabric, plane, grouping)
    yield from _find_islands(tree)


def explain_tie(fabric: Fabric, tie: Tie) -> str:
    """Return why a unit has no place: the groups it is tied between, and its links to each."""
    groups = [format_names(fabric.devices[switch].name for switch in group) for group in tie.groups]
    if len(set(tie.counts)) == 1:
        return f"undecided: {format_links(tie.counts[0])} each to {' and to '.join(groups)}"
    pairs = zip(tie.counts, groups, strict=True)
    return f"undecided: {', '.join(f'{format_links(count)} to {group}' for count, group in pairs)}"


def format_links(count: int, noun: str = "link") -> str:
    """Return a number of links as text, such as `1 link` or `2 links`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_names(names: Iterable[str]) -> str:
    """Return names in natural order as text for a message, the fifth and later ones as a count."""
    return list_some(sorted(names, key=natural_key), _MAX_NAMES_SHOWN)


def switch_names(fabric: Fabric, group: TierGroup) -> list[str]:
    """Return the names of a group's switches, in their order."""
    return [fabric.devices[switch].name for switch in group.switches]


def _find_hosts_on_spines(fabric: Fabric, ranks: Ranks) -> Iterator[Finding]:
    for host, switch in ranks.hosts_on_spines:
        names = fabric.devices[host].name, fabric.devices[switch].name
        yield finding_about(
            FindingKind.HOST_ON_SPINE,
            names,
            severity=Severity.WARNING,
            message=(
                f"Host {names[0]} is cabled to {names[1]}, which connects leaves and is not a leaf "
                "itself, so this link does not place the host. Move the cable to a leaf if jobs "
                "run on the host."
            ),
        )


def _find_set_aside(fabric: Fabric, grouping: TierGroups) -> Iterator[Finding]:
    for _, switches in grouping.set_aside:
        names = format_names(fabric.devices[switch].name for switch in switches)
        yield Finding(
            kind=FindingKind.AUX_SWITCH,
            device=fabric.devices[switches[0]].name,
            port=None,
            severity=Severity.INFO,
            message=(
                f"{names}: set aside and not a domain, because no host or leaf has most of its "
                "links here, or because it connects nothing. It may be a storage or management "
                "switch, a switch without hosts, or a switch that lost its own hosts or leaves. "
                "Check that this is intended."
            ),
            ports=tuple(PortName(fabric.devices[switch].name, "") for switch in switches),
        )


def _find_undecidable(fabric: Fabric, plane: Plane, grouping: TierGroups) -> Iterator[Finding]:
    # A host that is no node, such as storage on two leaves, needs no place.
    ties = [tie for tie in grouping.host_ties if fabric.devices[tie.unit].node is not None]
    edges = _index_edges(plane.host_edges, {tie.unit for tie in ties})
    for tie in ties:
        name = fabric.devices[tie.unit].name
        ends = _name_ends(fabric, edges[tie.unit])
        yield _tie_finding(fabric, name, tie, effect="It is not placed", ends=ends)
    below_of = {tie.unit: grouping.groups[tie.unit].switches for tie in grouping.group_ties}
    edges = _index_edges(plane.switch_edges, set(chain.from_iterable(below_of.values())))
    for tie in grouping.group_ties:
        above = {switch for group in tie.groups for switch in group}
        below = below_of[tie.unit]
        near = (edge for switch in below for edge in edges[switch])
        ends = _name_ends(fabric, (edge for edge in near if edge.a in above or edge.b in above))
        name = fabric.devices[min(below)].name
        yield _tie_finding(fabric, name, tie, effect="Its domain has no parent", ends=ends)


def _index_edges(edges: Iterable[Edge], devices: AbstractSet[int]) -> Mapping[int, Sequence[Edge]]:
    """Return the edges at each of these devices."""
    found: dict[int, list[Edge]] = {device: [] for device in devices}
    for edge in edges if devices else ():
        for device in (edge.a, edge.b):
            if device in found:
                found[device].append(edge)
    return found


def _name_ends(fabric: Fabric, edges: Iterable[Edge]) -> set[PortName]:
    ports = {port for edge in edges for port in (edge.a_port, edge.b_port)}
    return {fabric.port_name(port) for port in ports}


def _tie_finding(
    fabric: Fabric, name: str, tie: Tie, *, effect: str, ends: set[PortName]
) -> Finding:
    return Finding(
        kind=FindingKind.UNDECIDABLE,
        device=name,
        port=None,
        severity=Severity.ERROR,
        message=(
            f"{name} is {explain_tie(fabric, tie)}. {effect} until one of them has clearly more "
            "links. Check which cables are intended."
        ),
        ports=tuple(sorted(ends)),
    )


def _find_near_ties(tree: TopologyTree) -> Iterator[Finding]:
    for domain in tree.domains:
        if domain.margin < NEAR_TIE_MARGIN:
            yield Finding(
                kind=FindingKind.NEAR_TIE,
                device=next(iter(domain.switches), domain.name),
                port=None,
                severity=Severity.WARNING,
                message=(
                    f"Domain {domain.name} was decided by a margin of {domain.margin:.0%}: a few "
                    "more lost or moved cables would change it. Fix the other findings there."
                ),
                ports=tuple(PortName(name, "") for name in domain.switches),
            )


def _find_islands(tree: TopologyTree) -> Iterator[Finding]:
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
                    f"{largest.name}, so no gang is placed across the two. Check its up-links."
                ),
                ports=tuple(PortName(name, "") for name in domain.switches),
            )
