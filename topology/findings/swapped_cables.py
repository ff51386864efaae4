"""Cables in the wrong port, found by symmetry: most members of a group are cabled as intended.

A cable is misplaced if it links a host to a group that is not the host's own, a leaf to the spine
of another pod, or a NIC to the leaf of another rail. Two misplaced cables that mirror each other
had their ends exchanged; exchanging them back repairs both.
"""

from __future__ import annotations

from collections.abc import Iterator

from topology.findings.group_columns import build_group_columns
from topology.findings.misplaced_hosts import (
    derive_layout,
    find_doubled_cables,
    find_misplaced_hosts,
    find_misplaced_rails,
    find_tied_swaps,
    score_host_cables,
)
from topology.findings.misplaced_uplinks import (
    find_crossed_uplinks,
    find_misplaced_uplinks,
    score_uplinks,
)
from topology.findings.missing_links import find_missing_links
from topology.findings.swap_pairs import UpperEnds, pair_swaps
from topology.findings.usual_counts import find_designed_host_links
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups


def find_asymmetries(
    fabric: Fabric,
    plane: Plane,
    *,
    grouping: TierGroups,
    domain_links: DomainLinks,
) -> Iterator[Finding]:
    """Yield swapped-cable, wrong-rail and missing-link findings. Cost: O(links).

    Args:
        fabric: the names.
        plane: the cables.
        grouping: the groups of the plane.
        domain_links: the cables between the switches of the plane.
    """
    groups = build_group_columns(fabric, grouping)
    layout, upper_ends = derive_layout(fabric, plane, groups), UpperEnds(fabric, plane, groups)
    host_score = score_host_cables(fabric, layout, upper_ends)
    moved_hosts = find_misplaced_hosts(fabric, plane, layout, grouping)
    wrong_rails = list(find_misplaced_rails(plane, layout))
    yield from pair_swaps(fabric, moved_hosts, FindingKind.SWAPPED_CABLE, host_score)
    yield from find_tied_swaps(fabric, plane, layout, grouping, upper_ends)
    yield from pair_swaps(fabric, wrong_rails, FindingKind.WRONG_RAIL, host_score)
    reported_hosts = {cable.edge.a for cable in (*moved_hosts, *wrong_rails)}
    yield from find_doubled_cables(fabric, plane, reported_hosts)
    uplink_score = score_uplinks(upper_ends)
    misplaced_uplinks = find_misplaced_uplinks(plane, groups, upper_ends)
    crossed_uplinks = find_crossed_uplinks(fabric, plane, groups, upper_ends)
    for uplinks in (misplaced_uplinks, crossed_uplinks):
        yield from pair_swaps(fabric, uplinks, FindingKind.SWAPPED_CABLE, uplink_score)
    yield from find_missing_links(
        fabric,
        plane,
        grouping=grouping,
        domain_links=domain_links,
        misplaced={cable.edge.a for cable in (*moved_hosts, *misplaced_uplinks, *crossed_uplinks)},
        host_counts=find_designed_host_links(plane, grouping),
    )
