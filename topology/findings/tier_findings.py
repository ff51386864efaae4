"""What is odd about the tiers of a tree: tiers that join nothing, that are skipped, that are torn.

Decides nothing about the tree, only what people are told of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from topology.findings.split_domains import find_split_domains
from topology.findings.tree_findings import format_names, switch_names
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, PortName, Severity, finding_about
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.ranks import Ranks
from topology.tiers.tier_groups import SPINE_RANK, TierGroup, TierGroups

FIRM_MARGIN = 0.5  # three of four links
SPARSE_SHARE = 0.75  # 1 in all whole fabrics at hand but one, and 0.9 with a tenth of links lost


def find_tier_problems(
    fabric: Fabric, plane: Plane, *, ranks: Ranks, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield what is odd about a tree's tiers. Cost: O(pairs of switches)."""
    below = _group_children(grouping.groups)
    yield from _find_redundant_tops(fabric, grouping.groups, below)
    yield from _find_single_switch_domains(fabric, grouping.groups, below)
    yield from find_split_domains(fabric, grouping, below)
    yield from _find_torn_domains(fabric, grouping.groups, below)
    yield from _find_switches_linked_elsewhere(fabric, grouping, domain_links)
    yield from _find_shallow_domains(fabric, grouping.groups, below)
    yield from _find_skipped_tiers(fabric, plane, grouping, domain_links)
    yield from _find_inward_domains(fabric, grouping, domain_links)
    yield from _find_sparse_domains(fabric, grouping, domain_links)
    yield from _find_unjoined_tops(fabric, ranks, grouping, domain_links)


def _group_children(groups: Sequence[TierGroup]) -> dict[int, list[int]]:
    """Return group to the groups below it, all by index, ascending."""
    below: dict[int, list[int]] = defaultdict(list)
    for at, group in enumerate(groups):
        if group.parent is not None:
            below[group.parent].append(at)
    return below


def _find_redundant_tops(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per top above spines that joins nothing.

    No placement depends on it, but the number of tiers does; and a leaf without hosts, a pod
    without leaves, or pods fused by exchanged cables look the same.
    """
    for at, children in sorted(below.items()):
        top = groups[at]
        is_top = top.parent is None or not groups[top.parent].switches
        if is_top and len(children) == 1 and top.rank > SPINE_RANK:
            names, low = switch_names(fabric, top), switch_names(fabric, groups[children[0]])
            yield finding_about(
                FindingKind.UNDECIDABLE,
                [*names, *low],
                severity=Severity.INFO,
                message=(
                    f"{format_names(names)} joins nothing but what {format_names(low)} joins already. "
                    "It counts as a tier of its own; a leaf without hosts, spines without leaves, "
                    "or pods whose up-links were exchanged look the same. Check that it is meant "
                    "to stand there."
                ),
            )


def _find_single_switch_domains(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
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
        leaves = [name for leaf, _ in lone for name in switch_names(fabric, groups[leaf])]
        uppers = [name for _, at in lone for name in switch_names(fabric, groups[at])]
        yield finding_about(
            FindingKind.UNDECIDABLE,
            [*leaves, *uppers],
            severity=Severity.INFO,
            message=(
                f"{format_names(leaves)} have spines of their own that no other leaf uses: if "
                "up-links of theirs were exchanged with each other's, no cable would tell. Check "
                "them against the plan."
            ),
        )


def _find_torn_domains(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain above one leaf that many of the leaf's links lead away from.

    Lost and swapped cables together can tear a leaf and a spine off their pod, and then they are
    each other's majority.
    """
    for at, children in sorted(below.items()):
        if len(children) == 1 and groups[at].margin <= FIRM_MARGIN:
            low, high = switch_names(fabric, groups[children[0]]), switch_names(fabric, groups[at])
            yield finding_about(
                FindingKind.UNDECIDABLE,
                [*low, *high],
                severity=Severity.WARNING,
                message=(
                    f"{format_names(low)} is all that {format_names(high)} holds, and many of its "
                    "links lead to others, so it may belong to their domain. Check its up-links."
                ),
            )


def _find_switches_linked_elsewhere(
    fabric: Fabric, grouping: TierGroups, ways: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per switch most of whose up-links lead elsewhere than its domain's.

    Units below have put it into the domain, and cables above say that it is of another.
    """
    groups, group_of = grouping.groups, grouping.by_switch()
    is_next = (ways.near_group >= 0) & (
        ways.ranks[ways.far_group] == ways.ranks[ways.near_group] + 1
    )
    is_odd = np.zeros(int(ways.near.max(initial=0)) + 1, np.bool_)
    is_odd[ways.near[is_next & (ways.far_group != ways.parents[ways.near_group])]] = True
    ups = ways.tally(ways.near, ways.far_group, is_next & is_odd[ways.near])
    for low, counts in sorted(ups.items()):
        at = group_of[low]
        best = max(counts, key=lambda above: (counts[above], -above))
        parent = groups[at].parent
        if parent is None or counts[best] <= counts.get(parent, 0) or len(groups[at].switches) == 1:
            continue
        names = switch_names(fabric, groups[at])
        yield Finding(
            kind=FindingKind.UNDECIDABLE,
            device=fabric.devices[low].name,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"{fabric.devices[low].name} counts to {format_names(names)} by what is below it, "
                f"but most of its up-links lead to {format_names(switch_names(fabric, groups[best]))}"
                ", not where theirs lead. Check its cables."
            ),
            ports=tuple(PortName(name, "") for name in names),
        )


def _find_shallow_domains(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain that hangs more tiers below its parent than its siblings do."""
    for at, children in sorted(below.items()):
        highest = max(groups[child].rank for child in children)
        for child in children:
            if groups[child].rank == highest or not groups[child].switches:
                continue
            names = switch_names(fabric, groups[child])
            above = switch_names(fabric, groups[at])
            yield finding_about(
                FindingKind.TIER_MISMATCH,
                [*names, *above],
                severity=Severity.INFO,
                message=(
                    f"{format_names(names)} hangs {groups[at].rank - groups[child].rank} tiers below "
                    f"{format_names(above) or 'the whole'}, where other domains hang "
                    f"{groups[at].rank - highest}. The tree keeps it so; check that no spines are "
                    "missing between."
                ),
            )


def _find_skipped_tiers(
    fabric: Fabric, plane: Plane, grouping: TierGroups, ways: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per switch with cables to a tier above the one that it hangs below."""
    groups, group_of = grouping.groups, grouping.by_switch()
    tops = ways.parents[ways.near_group]
    is_past = (tops >= 0) & (ways.far_group >= 0) & (ways.ranks[ways.far_group] > ways.ranks[tops])
    past = set(zip(ways.near[is_past].tolist(), ways.far[is_past].tolist(), strict=True))
    skipping: dict[int, list[Edge]] = defaultdict(list)
    for edge in plane.switch_edges if past else ():
        for low, high in ((edge.a, edge.b), (edge.b, edge.a)):
            if (low, high) in past:
                skipping[low].append(edge)
    for low, edges in sorted(skipping.items()):
        ends = [fabric.port_name(port) for edge in edges for port in (edge.a_port, edge.b_port)]
        name = fabric.devices[low].name
        parent = groups[group_of[low]].parent
        spines = switch_names(fabric, groups[parent]) if parent is not None else []
        others = {end.device for end in ends} - {name}
        yield Finding(
            kind=FindingKind.TIER_MISMATCH,
            device=name,
            port=next(end.port for end in ends if end.device == name) if len(edges) == 1 else None,
            severity=Severity.WARNING,
            message=(
                f"{name} is cabled to {format_names(others)}, past {format_names(spines)}, which its "
                "other up-links lead to. Move the cable there if it is not meant as a shortcut."
            ),
            ports=tuple(sorted(ends)),
        )


def _find_sparse_domains(
    fabric: Fabric, grouping: TierGroups, ways: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per domain of which many pairs of a switch and a part have no cable.

    Where that is the design, switches that serve different parts make different domains. So two
    domains may be fused by exchanged cables.
    """
    num_links, shares = ways.reach
    for at in np.flatnonzero((num_links > 0) & (shares <= SPARSE_SHARE)).tolist():
        names = switch_names(fabric, grouping.groups[at])
        yield finding_about(
            FindingKind.UNDECIDABLE,
            names,
            severity=Severity.WARNING,
            message=(
                f"{format_names(names)} count as one domain, but only {shares[at]:.0%} of "
                "them and what is below are cabled to each other: it may be two. Check their "
                "cables to lower switches."
            ),
        )


def _find_inward_domains(
    fabric: Fabric, grouping: TierGroups, ways: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per domain whose switches have as many cables to each other as peers have.

    Spines of one domain have none, or a few between the two of a pair. In a dragonfly+ they have
    many to those of other groups, so two groups may be fused by exchanged cables.
    """
    inside = ways.count(ways.near_group, ways.is_inside & (ways.ranks[ways.near_group] > 1))
    is_inward = (inside > 0) & (2 * inside >= ways.reach.num_links)
    for at in np.flatnonzero(is_inward).tolist():
        names = switch_names(fabric, grouping.groups[at])
        yield finding_about(
            FindingKind.UNDECIDABLE,
            names,
            severity=Severity.WARNING,
            message=(
                f"{format_names(names)} count as one domain but are cabled to each other, as "
                "switches of different domains are. Check their cables to lower switches."
            ),
        )


def _find_unjoined_tops(
    fabric: Fabric, ranks: Ranks, grouping: TierGroups, ways: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per top most of whose cables to peers lead to switches of no domain."""
    groups = grouping.groups
    own = ways.ranks[ways.near_group]
    is_top = (ways.parents[ways.near_group] < 0) & (own > 1)
    is_peer = is_top & (ways.far_group != ways.near_group) & (ways.ranks[ways.far_group] == own)
    num_peers = ways.count(ways.near_group, is_peer)
    adrift = ways.tally(ways.near_group, ways.far, is_top & (ways.far_group < 0))
    for at, found in sorted(adrift.items()):
        lost = {
            one: count for one, count in found.items() if ranks.rank.get(one) == groups[at].rank
        }
        if lost and sum(lost.values()) >= num_peers[at]:
            names = switch_names(fabric, groups[at])
            others = [fabric.devices[switch].name for switch in lost]
            yield finding_about(
                FindingKind.UNDECIDABLE,
                [*names, *sorted(others)],
                severity=Severity.WARNING,
                message=(
                    f"{format_names(names)} is joined with others by {format_names(others)}, which "
                    "are in no domain themselves. Check what is reported of them first."
                ),
            )
