"""Whether the wiring is a tree at all: a score, and a finding where it is none.

A tree of any kind is inferred of every wiring. A ring, a torus or a mesh of switches has none
that tells which hosts are near each other; what is left is what is true of any wiring, the hosts
of one leaf group and everything together, and people are told so.
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
"""Below it a wiring is no tree. A ring of four has 0.67; a full mesh with a tenth of its cables
lost, 0.9."""
MIN_RING = 4  # three switches in a ring are a full mesh
_SIDES = 2  # of a switch in a ring, a cable each


def find_non_tree_wiring(
    fabric: Fabric, plane: Plane, *, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding where the wiring of switches is no tree. Cost: O(pairs of switches)."""
    score = measure_treeness(grouping, domain_links)
    is_tree = score >= MIN_TREENESS
    if is_tree and not is_ring(plane):
        return
    names = [fabric.devices[at].name for at in plane.switches]
    if not is_tree:
        yield _finding(
            names,
            f"The wiring of {format_names(names)} is no tree (treeness {score:.2f} of 1): it looks "
            "like a ring, a torus or a mesh. The tree tells true who shares a leaf and what is "
            "cabled together at all; do not trust the tiers between.",
            Severity.WARNING,
        )
    else:
        yield _finding(
            names,
            f"{format_names(names)} form a ring, which is a tree only as long as two of them have "
            "all hosts between them (treeness "
            f"{score:.2f} of 1). It is read as leaves and spines; check that it is meant so.",
            Severity.INFO,
        )


def _finding(names: Sequence[str], message: str, severity: Severity) -> Finding:
    return finding_about(
        FindingKind.NOT_A_TREE,
        names,
        severity=severity,
        message=message,
    )


def measure_treeness(grouping: TierGroups, ways: DomainLinks) -> float:
    """Return the share of cables between switches that the tree has a place for, 0 to 1.

    Those are the cables to the domains above, and within a domain whose switches all serve the
    same; of a unit that hangs between several, or a switch that is in none, the cables to one of
    them. Cables to a domain count less where its switches reach few of the units below it, cables
    between peers by the share of peers that have one, those between switches in no domain not at
    all. 1 without any.
    """
    explained = float(_count_tied_links(grouping))
    explained += (
        _count_unplaced_links(ways) + _count_uplinks(ways) + _count_crossing_links(ways, grouping)
    )
    is_known = ways.is_first & ((ways.near_group >= 0) | (ways.far_group >= 0))
    total = int(ways.counts[is_known].sum())
    return min(1.0, explained / total) if total else 1.0


def _count_unplaced_links(ways: DomainLinks) -> int:
    """Return the cables of switches in no domain, each to the one that most of its lead to."""
    astray = ways.tally(ways.near, ways.far_group, (ways.near_group < 0) & (ways.far_group >= 0))
    return sum(max(counts.values()) for counts in astray.values())


def _count_uplinks(ways: DomainLinks) -> float:
    """Return the cables upwards, and inside of domains, as far as they are those of a tree."""
    num_links, shares = ways.reach
    inside = ways.count(ways.near_group, ways.is_inside)
    is_alike = (ways.ranks[:-1] == 1) | (shares >= ALIKE_SHARE)
    return float((num_links * np.minimum(1.0, 2 * shares)).sum() + inside[is_alike].sum())


def _count_crossing_links(ways: DomainLinks, grouping: TierGroups) -> float:
    """Return the cables past a tier to a domain further up, and those between peers by share."""
    is_placed = (ways.near_group >= 0) & (ways.far_group >= 0) & (ways.near_group != ways.far_group)
    is_flat = (
        is_placed & ways.is_first & ~ways.is_up & (ways.parents[ways.far_group] != ways.near_group)
    )
    peers: dict[int, Counter[_Pair]] = defaultdict(Counter)
    num_past = 0
    for one, others in ways.tally(ways.near_group, ways.far_group, is_flat).items():
        for other, count in others.items():
            top = grouping.groups[one].parent
            if other in _ancestors_of(one, grouping) or one in _ancestors_of(other, grouping):
                num_past += count
                continue
            is_shared = top is not None and top == grouping.groups[other].parent
            if top is not None and is_shared and not grouping.groups[top].switches:
                peers[top][min(one, other), max(one, other)] += count
    return num_past + sum(found.total() * peer_share(found) for found in peers.values())


def _count_tied_links(grouping: TierGroups) -> int:
    """Return the cables of units that hang between domains to the one that holds them first."""
    known = grouping.by_switch()
    return sum(tie.counts[0] for tie in grouping.group_ties if tie.groups[0][0] in known)


_Pair = tuple[int, int]
"""Two domains that a cable between peers joins."""


def _ancestors_of(at: int, grouping: TierGroups) -> tuple[int, ...]:
    """Return a group and those above it, bottom-up."""
    line = [at]
    while (parent := grouping.groups[line[-1]].parent) is not None:
        line.append(parent)
    return tuple(line)


def peer_share(pairs: Collection[_Pair]) -> float:
    """Return the share of pairs of peers that are a cable apart.

    The domain above peers says that all are equally near each other, and of two domains of which
    one holds a cable to either, the third is as near as any: the ultrametric test of a tree. A
    mesh of all with all passes it, one of some with some does not.
    """
    domains = {domain for pair in pairs for domain in pair}
    return 2 * len(set(pairs)) / (len(domains) * (len(domains) - 1))


def _find_reached(start: int, around: Mapping[int, Collection[int]]) -> set[int]:
    found = {start}
    frontier = [start]
    while frontier:
        new = set(around[frontier.pop()]) - found
        found |= new
        frontier.extend(new)
    return found


def is_ring(plane: Plane) -> bool:
    """Return whether all switches form one ring of single cables. Cost: O(links)."""
    around = plane.switch_edges.pairs_both_ways
    num_switches = len(plane.switches)
    is_enough = num_switches >= MIN_RING and len(around.left) == _SIDES * num_switches
    if not is_enough or (around.counts > 1).any():
        return False
    near = around.by_left()
    if len(near) < num_switches or any(len(sides) != _SIDES for sides in near.values()):
        return False
    return len(_find_reached(plane.switches[0], near)) == num_switches
