"""Domains that may be parts of one, judged by the size of their peers and by undecided hosts.

Reports findings only; the tree does not change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from topology.findings.tree_findings import format_names, switch_names
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.tiers.group_membership import MIN_EVIDENCE_UNITS, Tie
from topology.tiers.tier_groups import TierGroup, TierGroups

MAX_SMALL_PARTS = 2
"""Hosts or domains that may all have lost a cable by accident; with more it is the design."""

MAX_SHARED_SHARE = 1 / 3
"""Share of the hosts of a leaf group that may be between it and another group by accident."""


def find_split_domains(
    fabric: Fabric, grouping: TierGroups, below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain with parts that may be one. Cost: O(groups + undecided hosts).

    Only hosts that are cabled to both leaves of a pair show that the pair is one domain. Where the
    few hosts of a small pair lost a cable each, two hints remain: the peers of the pair are larger,
    or some of its hosts are undecided between the two leaves. The same holds for spines and leaves.
    Where many hosts use only some of the rails, the rails of the others hold a group together. If
    these lose cables, the group falls apart, and its hosts with all rails have links to both parts.
    """
    groups = grouping.groups
    usual = {rank: _usual_size(groups, below, rank) for rank in {group.rank for group in groups}}
    for _, children in sorted(below.items()):
        small = [
            group_index
            for group_index in children
            if len(groups[group_index].switches) < usual[groups[group_index].rank]
        ]
        ranks = {groups[group_index].rank for group_index in small}
        fewest = sorted(len(groups[group_index].switches) for group_index in small)[:2]
        is_few = any(
            _count_parts(groups, below, group_index) <= MAX_SMALL_PARTS for group_index in small
        )
        is_one = len(small) > 1 and len(ranks) == 1 and sum(fewest) <= usual[min(ranks)]
        if is_few and is_one:
            yield _split_finding(fabric, [groups[group_index] for group_index in small])
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
    other groups. Those may have lost leaves, so a pair that is larger is doubted too if it shares
    more hosts than exchanged cables explain.
    """
    if pair[0].parent is None or pair[0].parent != pair[1].parent:
        return False
    num_hosts = min(len(group.hosts) for group in pair)
    is_small = sum(len(group.switches) for group in pair) <= largest
    most = MAX_SHARED_SHARE * num_hosts
    is_much = num_shared >= MIN_EVIDENCE_UNITS and num_shared > most
    return is_much or (is_small and num_shared >= min(MIN_EVIDENCE_UNITS, most))


def _count_ties(grouping: TierGroups, hosts: Iterable[Tie]) -> Counter[tuple[int, int]]:
    """Return how many of some hosts are between two groups."""
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
