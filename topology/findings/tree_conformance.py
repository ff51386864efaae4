"""Whether the wiring is a tree at all: a score, and a finding if it is no tree.

A tree is inferred from every wiring. For a ring, a torus or a mesh of switches no tree shows which
hosts are near each other. Two statements remain true of any wiring: which hosts share a leaf group,
and what is connected at all. The finding says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from topology.findings.tree_findings import format_names
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.switch_overlap import ALIKE_SHARE
from topology.tiers.tier_groups import TierGroups

MIN_TREENESS = 0.7
"""Below this score a wiring is not a tree. A ring of four has 0.67; a full mesh that lost a tenth
of its cables has 0.9."""
MIN_RING = 4
"""Smallest ring; three switches in a ring are a full mesh."""
_NUM_RING_PEERS = 2
"""Neighbors of a switch in a ring, with one cable to each."""


def find_non_tree_wiring(
    fabric: Fabric, plane: Plane, *, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding if the switches are not wired as a tree. Cost: O(pairs of switches)."""
    score = measure_treeness(grouping, domain_links)
    is_tree = score >= MIN_TREENESS
    if is_tree and not is_ring(plane):
        return
    names = [fabric.devices[switch].name for switch in plane.switches]
    if not is_tree:
        yield _finding(
            names,
            f"The wiring of {format_names(names)} is not a tree (treeness {score:.2f} of 1): it "
            "looks like a ring, a torus or a mesh. The tree shows correctly which hosts share a "
            "leaf and what is connected at all; do not trust the tiers in between.",
            Severity.WARNING,
        )
    else:
        yield _finding(
            names,
            f"{format_names(names)} form a ring (treeness {score:.2f} of 1). A ring is a tree only "
            "as long as all hosts are on two of its switches. It is treated as leaves and spines. "
            "Check that this is intended.",
            Severity.INFO,
        )


def _finding(names: Sequence[str], message: str, severity: Severity) -> Finding:
    return finding_about(
        FindingKind.NOT_A_TREE,
        names,
        severity=severity,
        message=message,
    )


def measure_treeness(grouping: TierGroups, domain_links: DomainLinks) -> float:
    """Return the share of cables between switches that the tree explains, 0 to 1.

    Explained cables are those to the domain above, and those inside a domain whose switches all
    serve the same units. For a unit tied between several domains, and for a switch in no domain,
    only the cables to one domain count. Cables to a domain count less if its switches reach few of
    the units below it. Cables between peers count by the share of peers that have one. Cables
    between switches in no domain do not count. 1 without any cable.
    """
    explained = float(_count_tied_links(grouping))
    explained += (
        _count_unplaced_links(domain_links)
        + _count_uplinks(domain_links)
        + _count_crossing_links(domain_links, grouping)
    )
    is_placed = domain_links.is_first & (
        (domain_links.near_group >= 0) | (domain_links.far_group >= 0)
    )
    total = int(domain_links.counts[is_placed].sum())
    return min(1.0, explained / total) if total else 1.0


def _count_unplaced_links(domain_links: DomainLinks) -> int:
    """Return the cables of switches in no domain to the domain that each has most cables to."""
    counts_by_switch = domain_links.tally(
        domain_links.near,
        domain_links.far_group,
        (domain_links.near_group < 0) & (domain_links.far_group >= 0),
    )
    return sum(max(counts.values()) for counts in counts_by_switch.values())


def _count_uplinks(domain_links: DomainLinks) -> float:
    """Return the cables upwards and inside domains, weighted by how well they fit a tree."""
    num_links, shares = domain_links.reach
    num_inside = domain_links.count(domain_links.near_group, domain_links.is_inside)
    is_alike = (domain_links.ranks[:-1] == 1) | (shares >= ALIKE_SHARE)
    return float((num_links * np.minimum(1.0, 2 * shares)).sum() + num_inside[is_alike].sum())


def _count_crossing_links(domain_links: DomainLinks, grouping: TierGroups) -> float:
    """Return the cables that skip a tier, and the cables between peers weighted by their share."""
    is_placed = (
        (domain_links.near_group >= 0)
        & (domain_links.far_group >= 0)
        & (domain_links.near_group != domain_links.far_group)
    )
    is_flat = (
        is_placed
        & domain_links.is_first
        & ~domain_links.is_up
        & (domain_links.parents[domain_links.far_group] != domain_links.near_group)
    )
    peers: dict[int, Counter[_Pair]] = defaultdict(Counter)
    num_skipping = 0
    for group, peer_counts in domain_links.tally(
        domain_links.near_group, domain_links.far_group, is_flat
    ).items():
        for peer_group, count in peer_counts.items():
            top = grouping.groups[group].parent
            if peer_group in _ancestors_of(group, grouping) or group in _ancestors_of(
                peer_group, grouping
            ):
                num_skipping += count
                continue
            is_shared = top is not None and top == grouping.groups[peer_group].parent
            if top is not None and is_shared and not grouping.groups[top].switches:
                peers[top][min(group, peer_group), max(group, peer_group)] += count
    return num_skipping + sum(
        pair_counts.total() * peer_share(pair_counts) for pair_counts in peers.values()
    )


def _count_tied_links(grouping: TierGroups) -> int:
    """Return the cables of units tied between domains, to the first of those domains."""
    group_by_switch = grouping.by_switch()
    return sum(tie.counts[0] for tie in grouping.group_ties if tie.groups[0][0] in group_by_switch)


_Pair = tuple[int, int]
"""Two domains that a cable between peers connects, the lower index first."""


def _ancestors_of(group_index: int, grouping: TierGroups) -> tuple[int, ...]:
    """Return a group and its ancestors, bottom-up."""
    line = [group_index]
    while (parent := grouping.groups[line[-1]].parent) is not None:
        line.append(parent)
    return tuple(line)


def peer_share(pairs: Collection[_Pair]) -> float:
    """Return the share of pairs of peers that are connected by a cable.

    The domain above the peers claims that all of them are equally near each other: if one peer has
    cables to two others, those two have to be as near to each other (the ultrametric test of a
    tree). A full mesh passes the test, a partial mesh does not.
    """
    domains = {domain for pair in pairs for domain in pair}
    return 2 * len(set(pairs)) / (len(domains) * (len(domains) - 1))


def _find_reached(start: int, peers_by_switch: Mapping[int, Collection[int]]) -> set[int]:
    """Return all switches that are connected to one, over any number of cables."""
    reached_switches = {start}
    frontier = [start]
    while frontier:
        new = set(peers_by_switch[frontier.pop()]) - reached_switches
        reached_switches |= new
        frontier.extend(new)
    return reached_switches


def is_ring(plane: Plane) -> bool:
    """Return whether all switches form one ring of single cables. Cost: O(links)."""
    switch_pairs = plane.switch_edges.pairs_both_ways
    num_switches = len(plane.switches)
    is_enough = (
        num_switches >= MIN_RING and len(switch_pairs.left) == _NUM_RING_PEERS * num_switches
    )
    if not is_enough or (switch_pairs.counts > 1).any():
        return False
    peers_by_switch = switch_pairs.by_left
    if len(peers_by_switch) < num_switches or any(
        len(peer_counts) != _NUM_RING_PEERS for peer_counts in peers_by_switch.values()
    ):
        return False
    return len(_find_reached(plane.switches[0], peers_by_switch)) == num_switches
