"""Domains that may be parts of one, by the size of their fellows and by what hangs between.

Decides nothing about the tree, only what people are told of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from topology.findings.tree_findings import format_names, switch_names
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, Severity, finding_about
from topology.tiers.group_membership import MIN_EVIDENCE_UNITS
from topology.tiers.tier_groups import TierGroup, TierGroups

MAX_SMALL_PARTS = (
    2  # hosts or domains, all of which may have lost a cable; that more did is no accident
)


def find_split_domains(
    fabric: Fabric, grouping: TierGroups, below: Mapping[int, Sequence[int]]
) -> Iterator[Finding]:
    """Yield a finding per domain with parts that may be one. Cost: O(groups + undecided hosts).

    Only hosts on both leaves of a pair show that it is one. Where the few hosts of a small pair
    lost a cable each, nothing is left that does, but that its fellows are larger; and where some
    of them are undecided between the two, those are witnesses of it. So with spines and leaves.
    """
    groups = grouping.groups
    usual = {rank: _usual_size(groups, below, rank) for rank in {group.rank for group in groups}}
    for _, children in sorted(below.items()):
        small = [at for at in children if len(groups[at].switches) < usual[groups[at].rank]]
        ranks = {groups[at].rank for at in small}
        fewest = sorted(len(groups[at].switches) for at in small)[:2]
        is_few = any(_count_parts(groups, below, at) <= MAX_SMALL_PARTS for at in small)
        is_one = len(small) > 1 and len(ranks) == 1 and sum(fewest) <= usual[min(ranks)]
        if is_few and is_one:
            yield _split_finding(fabric, [groups[at] for at in small])
    largest = max((len(group.switches) for group in groups if group.rank == 1), default=0)
    for (one, other), count in sorted(_count_ties(grouping).items()):
        pair = groups[one], groups[other]
        if _are_halves(pair, count, largest=largest):
            yield _split_finding(fabric, pair)


def _usual_size(groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]], rank: int) -> int:
    """Return how many switches the group of most hosts or domains of a rank has, else 0."""
    sizes = Counter[int]()
    for at, group in enumerate(groups):
        if group.rank == rank:
            sizes[len(group.switches)] += _count_parts(groups, below, at)
    usual, parts = max(sizes.items(), key=lambda row: (row[1], row[0]))
    return usual if 2 * parts > sizes.total() else 0


def _count_parts(groups: Sequence[TierGroup], below: Mapping[int, Sequence[int]], at: int) -> int:
    return len(groups[at].hosts) + len(below.get(at, ()))


def _are_halves(pair: tuple[TierGroup, TierGroup], num_ties: int, *, largest: int) -> bool:
    """Return whether the hosts that hang between two leaf groups make one of them likely."""
    if pair[0].parent is None or pair[0].parent != pair[1].parent:
        return False
    num_hosts = min(len(group.hosts) for group in pair)
    num_switches = sum(len(group.switches) for group in pair)
    is_small = num_switches <= largest or num_hosts <= MAX_SMALL_PARTS
    return is_small and (num_ties >= MIN_EVIDENCE_UNITS or num_hosts <= MAX_SMALL_PARTS)


def _count_ties(grouping: TierGroups) -> Counter[tuple[int, int]]:
    """Return how many hosts are undecided between two groups."""
    group_of = grouping.by_switch()
    ties = Counter[tuple[int, int]]()
    for tie in grouping.host_ties:
        ends = sorted({group_of[part[0]] for part in tie.groups if part[0] in group_of})
        ties.update(combinations(ends, 2))
    return ties


def _split_finding(fabric: Fabric, groups: Sequence[TierGroup]) -> Finding:
    names = [name for group in groups for name in switch_names(fabric, group)]
    return finding_about(
        FindingKind.UNDECIDABLE,
        names,
        severity=Severity.WARNING,
        message=(
            f"{format_names(names)} count as {len(groups)} domains, but by the size of others, or by "
            "hosts that hang between them, they may be one. Check for missing and swapped host "
            "links."
        ),
    )
