"""Unusual tiers of a tree: tiers that add no path, that are skipped, or that are uncertain.

Reports findings only; the tree does not change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from topology.findings.tree_findings import format_names, switch_names
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, PortName, Severity, finding_about
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.group_membership import MIN_EVIDENCE_UNITS, Tie
from topology.tiers.ranks import Ranks
from topology.tiers.tier_groups import SPINE_RANK, TierGroup, TierGroups

FIRM_MARGIN = 0.5
"""The margin of three links of four."""
SPARSE_SHARE = 0.75
"""Share of cabled pairs up to which a domain is reported. An undamaged fabric has 1 (but one of
those at hand), and 0.9 when a tenth of its links are lost."""


def find_tier_problems(
    fabric: Fabric, plane: Plane, *, ranks: Ranks, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield findings about the tiers of a tree. Cost: O(pairs of switches)."""
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
    """Return the groups below each group, all by index, ascending."""
    below: dict[int, list[int]] = defaultdict(list)
    for group_index, group in enumerate(groups):
        if group.parent is not None:
            below[group.parent].append(group_index)
    return below


def _find_redundant_tops(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per top above spines that adds no path.

    Placement does not depend on such a top, but the number of tiers does. A leaf without hosts, a
    pod without leaves, and pods fused by exchanged cables look the same.
    """
    for group_index, children in sorted(below.items()):
        top = groups[group_index]
        is_top = top.parent is None or not groups[top.parent].switches
        if is_top and len(children) == 1 and top.rank > SPINE_RANK:
            names, low = switch_names(fabric, top), switch_names(fabric, groups[children[0]])
            yield finding_about(
                FindingKind.UNDECIDABLE,
                [*names, *low],
                severity=Severity.INFO,
                message=(
                    f"The tier of {format_names(names)} adds no new path: it connects only "
                    f"switches that {format_names(low)} already connect. It is kept as a separate "
                    "tier. A leaf without hosts, spines without leaves, or pods whose up-links "
                    "were exchanged look the same. Check that the tier is intended."
                ),
            )


def _find_single_switch_domains(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding if several domains above leaves hold a single switch each.

    Only the cables of that switch show which spines belong to it. If they were exchanged with the
    cables of another such leaf, no trace is left.
    """
    lone = [
        (children[0], group_index)
        for group_index, children in sorted(below.items())
        if len(children) == 1 and len(groups[children[0]].switches) == 1
    ]
    if len(lone) > 1:
        leaves = [name for leaf, _ in lone for name in switch_names(fabric, groups[leaf])]
        uppers = [
            name for _, group_index in lone for name in switch_names(fabric, groups[group_index])
        ]
        yield finding_about(
            FindingKind.UNDECIDABLE,
            [*leaves, *uppers],
            severity=Severity.INFO,
            message=(
                f"{format_names(leaves)} have spines that no other leaf uses. If up-links of these "
                "leaves were exchanged, no cable would show it. Check them against the cabling "
                "plan."
            ),
        )


def _find_torn_domains(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain with a single child that has many links to other domains.

    Lost and swapped cables together can separate a leaf and a spine from their pod: most of the
    remaining cables of each lead to the other.
    """
    for group_index, children in sorted(below.items()):
        if len(children) == 1 and groups[group_index].margin <= FIRM_MARGIN:
            low, high = (
                switch_names(fabric, groups[children[0]]),
                switch_names(fabric, groups[group_index]),
            )
            yield finding_about(
                FindingKind.UNDECIDABLE,
                [*low, *high],
                severity=Severity.WARNING,
                message=(
                    f"The only domain below {format_names(high)} is {format_names(low)}, and many "
                    "of its links lead to other domains, so it may belong to one of those. Check "
                    "its up-links."
                ),
            )


def _find_switches_linked_elsewhere(
    fabric: Fabric, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per switch with most of its up-links outside the parent of its domain.

    The units below put the switch into its domain; the cables above suggest another one.
    """
    groups, group_of = grouping.groups, grouping.by_switch()
    is_next = (domain_links.near_group >= 0) & (
        domain_links.ranks[domain_links.far_group]
        == domain_links.ranks[domain_links.near_group] + 1
    )
    is_odd = np.zeros(int(domain_links.near.max(initial=0)) + 1, np.bool_)
    is_elsewhere = domain_links.far_group != domain_links.parents[domain_links.near_group]
    is_odd[domain_links.near[is_next & is_elsewhere]] = True
    links_by_parent = domain_links.tally(
        domain_links.near, domain_links.far_group, is_next & is_odd[domain_links.near]
    )
    for low, counts in sorted(links_by_parent.items()):
        index = group_of[low]
        best = max(counts, key=lambda above: (counts[above], -above))
        group, parent = groups[index], groups[index].parent
        if parent is None or counts[best] <= counts.get(parent, 0) or len(group.switches) == 1:
            continue
        names = switch_names(fabric, group)
        yield Finding(
            kind=FindingKind.UNDECIDABLE,
            device=fabric.devices[low].name,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"{fabric.devices[low].name} is in the domain of {format_names(names)} because of "
                "the devices below it, but most of its up-links lead to "
                f"{format_names(switch_names(fabric, groups[best]))}, not to the switches above "
                "that domain. Check its cables."
            ),
            ports=tuple(PortName(name, "") for name in names),
        )


def _find_shallow_domains(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain that is more tiers below its parent than its siblings are."""
    for group_index, children in sorted(below.items()):
        highest = max(groups[child].rank for child in children)
        for child in children:
            if groups[child].rank == highest or not groups[child].switches:
                continue
            names = switch_names(fabric, groups[child])
            above = switch_names(fabric, groups[group_index])
            yield finding_about(
                FindingKind.TIER_MISMATCH,
                [*names, *above],
                severity=Severity.INFO,
                message=(
                    f"The domain of {format_names(names)} is "
                    f"{groups[group_index].rank - groups[child].rank} tiers below "
                    f"{format_names(above) or 'the top'}; other domains are "
                    f"{groups[group_index].rank - highest} below. The tree keeps it there. "
                    "Check that no spines are missing in between."
                ),
            )


def _find_skipped_tiers(
    fabric: Fabric, plane: Plane, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per switch with cables that skip the tier directly above it."""
    groups, group_of = grouping.groups, grouping.by_switch()
    tops = domain_links.parents[domain_links.near_group]
    is_skipping = (
        (tops >= 0)
        & (domain_links.far_group >= 0)
        & (domain_links.ranks[domain_links.far_group] > domain_links.ranks[tops])
    )
    ends_of_pairs = domain_links.near[is_skipping], domain_links.far[is_skipping]
    skipping_pairs = set(zip(*(column.tolist() for column in ends_of_pairs), strict=True))
    skipping: dict[int, list[Edge]] = defaultdict(list)
    for edge in plane.switch_edges if skipping_pairs else ():
        for low, high in ((edge.a, edge.b), (edge.b, edge.a)):
            if (low, high) in skipping_pairs:
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
                f"{name} is cabled to {format_names(others)} and skips {format_names(spines)}, "
                "where its other up-links lead. Move the cable there unless it is an intended "
                "shortcut."
            ),
            ports=tuple(sorted(ends)),
        )


def _find_sparse_domains(
    fabric: Fabric, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per domain in which many pairs of a switch and a domain below lack a cable.

    If that were the design, switches that serve different parts would form different domains. So
    exchanged cables may have fused two domains.
    """
    num_links, shares = domain_links.reach
    for group_index in np.flatnonzero((num_links > 0) & (shares <= SPARSE_SHARE)).tolist():
        names = switch_names(fabric, grouping.groups[group_index])
        yield finding_about(
            FindingKind.UNDECIDABLE,
            names,
            severity=Severity.WARNING,
            message=(
                f"{format_names(names)} are treated as one domain, but only "
                f"{shares[group_index]:.0%} of the pairs of these switches and the domains below "
                "have a cable, so it may be two domains. Check their cables to lower switches."
            ),
        )


def _find_inward_domains(
    fabric: Fabric, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per domain whose switches are cabled to each other as peers are.

    Spines of one domain have no such cables, or a few between the two of a pair. In a dragonfly+
    they have many to spines of other groups, so exchanged cables may have fused two groups.
    """
    num_inside = domain_links.count(
        domain_links.near_group,
        domain_links.is_inside & (domain_links.ranks[domain_links.near_group] > 1),
    )
    is_inward = (num_inside > 0) & (2 * num_inside >= domain_links.reach.num_links)
    for group_index in np.flatnonzero(is_inward).tolist():
        names = switch_names(fabric, grouping.groups[group_index])
        yield finding_about(
            FindingKind.UNDECIDABLE,
            names,
            severity=Severity.WARNING,
            message=(
                f"{format_names(names)} are treated as one domain, but are cabled to each other as "
                "switches of different domains are. Check their cables to lower switches."
            ),
        )


def _find_unjoined_tops(
    fabric: Fabric, ranks: Ranks, grouping: TierGroups, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield a finding per top with at least half of its peer cables to switches in no domain."""
    groups = grouping.groups
    own_rank = domain_links.ranks[domain_links.near_group]
    is_top = (domain_links.parents[domain_links.near_group] < 0) & (own_rank > 1)
    is_peer = (
        is_top
        & (domain_links.far_group != domain_links.near_group)
        & (domain_links.ranks[domain_links.far_group] == own_rank)
    )
    num_peers = domain_links.count(domain_links.near_group, is_peer)
    counts_by_top = domain_links.tally(
        domain_links.near_group, domain_links.far, is_top & (domain_links.far_group < 0)
    )
    for group_index, counts in sorted(counts_by_top.items()):
        links_elsewhere = {
            switch: count
            for switch, count in counts.items()
            if ranks.rank.get(switch) == groups[group_index].rank
        }
        if links_elsewhere and sum(links_elsewhere.values()) >= num_peers[group_index]:
            names = switch_names(fabric, groups[group_index])
            others = [fabric.devices[switch].name for switch in links_elsewhere]
            yield finding_about(
                FindingKind.UNDECIDABLE,
                [*names, *sorted(others)],
                severity=Severity.WARNING,
                message=(
                    f"At least half of the cables from {format_names(names)} to its peers lead to "
                    f"{format_names(others)}, which are in no domain. Check the findings about "
                    "those first."
                ),
            )


MAX_SMALL_PARTS = 2
"""Hosts or domains that may all have lost a cable by accident; with more it is the design."""

MAX_SHARED_SHARE = 1 / 3
"""Share of the hosts of a leaf group that may be between it and another group by accident."""


def find_split_domains(
    fabric: Fabric, grouping: TierGroups, below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain with parts that may be one. Cost: O(groups + undecided hosts).

    Only hosts that are cabled to both leaves of a pair show that the pair is one domain. If the few
    hosts of a small pair lost a cable each, two hints remain: the peers of the pair are larger, or
    some of its hosts are undecided between the two leaves. The same holds for spines and leaves. If
    many hosts use only some rails, only the hosts with all rails hold a group together. If these
    hosts lose cables, the group falls apart, and they have links to both parts.
    """
    yield from _find_small_siblings(fabric, grouping.groups, below)
    yield from _find_pairs_with_shared_hosts(fabric, grouping)


def _find_small_siblings(
    fabric: Fabric, groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield the small domains of a parent if two of them together are no larger than usual."""
    usual = {rank: _usual_size(groups, below, rank) for rank in {group.rank for group in groups}}
    for _, children in sorted(below.items()):
        small = [
            group_index
            for group_index in children
            if len(groups[group_index].switches) < usual[groups[group_index].rank]
        ]
        ranks = {groups[group_index].rank for group_index in small}
        two_smallest = sorted(len(groups[group_index].switches) for group_index in small)[:2]
        has_few_parts = any(
            _count_parts(groups, below, group_index) <= MAX_SMALL_PARTS for group_index in small
        )
        may_be_one = len(small) > 1 and len(ranks) == 1 and sum(two_smallest) <= usual[min(ranks)]
        if has_few_parts and may_be_one:
            yield _split_finding(fabric, [groups[group_index] for group_index in small])


def _find_pairs_with_shared_hosts(fabric: Fabric, grouping: TierGroups) -> Iterator[Finding]:
    """Yield the pairs of leaf groups that may be one, as the hosts between them suggest."""
    groups = grouping.groups
    largest = max((len(group.switches) for group in groups if group.rank == 1), default=0)
    # A host that is no node, such as storage on two leaves, says nothing about their domains.
    undecided, divided = (
        _count_ties(grouping, [tie for tie in ties if fabric.devices[tie.unit].node is not None])
        for ties in (grouping.host_ties, grouping.divided_hosts)
    )
    shared = undecided + divided
    for (first_group, second_group), count in sorted(shared.items()):
        pair = groups[first_group], groups[second_group]
        is_tied = _are_halves(pair, undecided[first_group, second_group], largest=largest)
        if is_tied or _are_parts(pair, count, largest=largest):
            yield _split_finding(fabric, pair)


def _usual_size(groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]], rank: int) -> int:
    """Return the group size, in switches, that most hosts or domains of a rank have, else 0."""
    sizes = Counter[int]()
    for group_index, group in enumerate(groups):
        if group.rank == rank:
            sizes[len(group.switches)] += _count_parts(groups, below, group_index)
    usual, num_parts = max(sizes.items(), key=lambda row: (row[1], row[0]))
    return usual if 2 * num_parts > sizes.total() else 0


def _count_parts(
    groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]], group_index: int
) -> int:
    return len(groups[group_index].hosts) + len(below.get(group_index, ()))


def _are_halves(pair: tuple[TierGroup, TierGroup], num_ties: int, *, largest: int) -> bool:
    """Return whether the hosts undecided between two leaf groups suggest that they are one."""
    if not num_ties or pair[0].parent is None or pair[0].parent != pair[1].parent:
        return False
    num_hosts = min(len(group.hosts) for group in pair)
    num_switches = sum(len(group.switches) for group in pair)
    is_small = num_switches <= largest or num_hosts <= MAX_SMALL_PARTS
    return is_small and (num_ties >= MIN_EVIDENCE_UNITS or num_hosts <= MAX_SMALL_PARTS)


def _are_parts(pair: tuple[TierGroup, TierGroup], num_shared: int, *, largest: int) -> bool:
    """Return whether the hosts with links to two leaf groups suggest that they are one.

    Two hosts, or a third of those of the smaller group, are enough if the pair is no larger than
    other groups. But other groups may have lost leaves. So a larger pair is doubted too, if it
    shares more hosts than exchanged cables explain.
    """
    if pair[0].parent is None or pair[0].parent != pair[1].parent:
        return False
    num_hosts = min(len(group.hosts) for group in pair)
    is_small = sum(len(group.switches) for group in pair) <= largest
    most = MAX_SHARED_SHARE * num_hosts
    is_much = num_shared >= MIN_EVIDENCE_UNITS and num_shared > most
    return is_much or (is_small and num_shared >= min(MIN_EVIDENCE_UNITS, most))


def _count_ties(grouping: TierGroups, hosts: Iterable[Tie]) -> Counter[tuple[int, int]]:
    """Return how many of these hosts are between two groups."""
    group_of = grouping.by_switch()
    ties = Counter[tuple[int, int]]()
    for tie in hosts:
        tied_groups = sorted(
            {group_of[switches[0]] for switches in tie.groups if switches[0] in group_of}
        )
        ties.update(combinations(tied_groups, 2))
    return ties


def _split_finding(fabric: Fabric, groups: Sequence[TierGroup]) -> Finding:
    names = [name for group in groups for name in switch_names(fabric, group)]
    return finding_about(
        FindingKind.UNDECIDABLE,
        names,
        severity=Severity.WARNING,
        message=(
            f"{format_names(names)} are treated as {len(groups)} domains, but may be one: other "
            "domains are larger, or undecided hosts are cabled to several of these. Check for "
            "missing and swapped host links."
        ),
    )
