"""The members of a gang, and the numbers of pods per group with which it may be placed.

A member is a group, or a set of members. A member takes part, with a number of pods that it allows,
or is left out, if its set needs only some of its members. Totals of pods are bits of an integer, so
a total that no choice reaches costs nothing. Choices are made one by one from the totals that the
members reach.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import or_
from typing import NamedTuple

from generator.placement.budget import Budget
from generator.placement.request import PlacementRequest


class GangMember(NamedTuple):
    """A group, or a set of members that may need only a part of them."""

    group: int
    """Index of the group; -1 for a set."""
    counts: range
    """Numbers of pods of a group that takes part, in order; empty for a set."""
    members: tuple[GangMember, ...]
    """The members of a set, in the order of their first groups."""
    least: int
    """The members of a set that must take part."""
    kind: tuple[object, ...]
    """Members of one kind may be exchanged for each other."""
    totals: int
    """Bit n is set if the member can take part with n pods."""
    later_totals: tuple[tuple[int, ...], ...]
    """Of a set, per member and number of members that must still take part: the totals of it and
    all later members."""

    @property
    def fewest_pods(self) -> int:
        """The fewest pods with which the member takes part; 0 if it cannot."""
        return max((self.totals & -self.totals).bit_length() - 1, 0)

    def groups(self) -> Iterator[int]:
        """Yield the groups of the member and of all members in it."""
        if self.group >= 0:
            yield self.group
        for inner in self.members:
            yield from inner.groups()

    def takes_part(self, counts: Sequence[int]) -> bool:
        """Return whether the member takes part as a whole with these pods per group."""
        if self.group >= 0:
            return counts[self.group] in self.counts
        are_in = [inner.takes_part(counts) for inner in self.members]
        are_out = [not any(counts[group] for group in inner.groups()) for inner in self.members]
        return sum(are_in) >= self.least and all(map(or_, are_in, are_out))

    def add_fewest(self, pods: list[int]) -> None:
        """Set the pods of the groups of a member that takes part with the fewest pods.

        The smallest members of a set take part.
        """
        if self.group >= 0:
            pods[self.group] = self.counts[0]
            return
        order = sorted(self.members, key=lambda inner: (not inner.totals, inner.fewest_pods))
        for inner in order[: self.least]:
            inner.add_fewest(pods)

    def all_members(self) -> Iterator[GangMember]:
        """Yield the member and all members in it, outer members first."""
        yield self
        for inner in self.members:
            yield from inner.all_members()


class GroupCounts(NamedTuple):
    """The input from which the members of a gang are built, per group."""

    counts: range
    """Numbers of pods of the group, in order."""
    kind: tuple[object, ...]
    """Groups of one kind may be exchanged for each other."""
    has_running: bool
    """Whether some of its pods run already."""


def build_gang_members(
    request: PlacementRequest, rows: Sequence[GroupCounts], budget: Budget
) -> GangMember:
    """Return all members of the gang as one set of which none may be left out.

    Raises:
        BudgetExhausted: the deadline has passed.
    """

    def wrap(index: int, members: list[GangMember]) -> list[GangMember]:
        group_set = request.sets[index]
        # A bound or running pods make a set different from one with the same members.
        has_running = any(
            rows[group].has_running for member in members for group in member.groups()
        )
        bound = (group_set.required, group_set.preferred)
        kind = (*bound, group_set.name if has_running else "")
        return [_set_of(members, least=group_set.least, kind=kind, budget=budget)]

    groups = [
        [GangMember(index, row.counts, (), 0, row.kind, _totals_of(row.counts), ())]
        for index, row in enumerate(rows)
    ]
    members = request.nest(groups, wrap)
    return _set_of(members, least=len(members), kind=(), budget=budget)


def _set_of(
    members: Sequence[GangMember], *, least: int, kind: tuple[object, ...], budget: Budget
) -> GangMember:
    """Return a set; O(members² × totals / word)."""
    ordered = sorted(members, key=_first_group)
    later = [tuple(int(needed == 0) for needed in range(len(ordered) + 1))]
    for member in reversed(ordered):
        budget.check()
        rest = later[-1]
        later.append(
            tuple(
                (rest[needed] if least < len(ordered) else 0)
                | _sums(rest[max(needed - 1, 0)], member, budget)
                for needed in range(least + 1)
            )
        )
    return GangMember(
        group=-1,
        counts=range(0),
        members=tuple(ordered),
        least=least,
        kind=(*kind, least, tuple(member.kind for member in ordered)),
        totals=later[-1][least],
        later_totals=tuple(reversed(later)),
    )


def _first_group(member: GangMember) -> int:
    return member.group if member.group >= 0 else min(map(_first_group, member.members))


def _totals_of(counts: range) -> int:
    """Return the bits of a range, which has no gaps but its step."""
    return _shifted_sums(1, counts) if counts else 0


def _sums(totals: int, member: GangMember, budget: Budget) -> int:
    """Return the sums of totals and those of a member."""
    if member.group >= 0:
        return _shifted_sums(totals, member.counts) if member.counts else 0
    found, left = 0, member.totals
    while left:
        budget.check()
        lowest = (left & -left).bit_length() - 1
        found |= totals << lowest
        left &= left - 1
    return found


def _shifted_sums(totals: int, counts: range) -> int:
    """Return the sums of totals and a range; O(log counts) shifts."""
    num_covered = 1
    while num_covered < len(counts):
        num_more = min(num_covered, len(counts) - num_covered)
        totals |= totals << (counts.step * num_more)
        num_covered += num_more
    return totals << counts[0]


def pod_count_choices(
    gang: GangMember, totals: int, num_groups: int, budget: Budget
) -> Iterator[tuple[int, ...]]:
    """Yield pods per group, most pods in total first; of equal members, the first get most.

    Cost: one step for each member that is tried with a number of pods.

    Args:
        gang: all members.
        totals: the totals of pods to try, as bits.
        num_groups: number of groups of the gang.
        budget: pays for the choices.

    Raises:
        BudgetExhausted: the budget ended.
    """
    while totals:
        total = totals.bit_length() - 1
        totals ^= 1 << total
        for pods in _choices_of(gang, total, budget):
            yield tuple(pods.get(group, 0) for group in range(num_groups))


def _choices_of(member: GangMember, total: int, budget: Budget) -> Iterator[dict[int, int]]:
    """Yield the pods per group that give a member this total; the member takes part."""
    if member.group >= 0:
        yield {member.group: total}
        return
    yield from _choices_from(member, 0, (member.least, total), {}, budget)


def _choices_from(
    parent: GangMember,
    index: int,
    needed_and_total: tuple[int, int],
    highest: dict[tuple[object, ...], int],
    budget: Budget,
) -> Iterator[dict[int, int]]:
    """Yield the pods per group of a set's members, from the member at `index` on.

    Args:
        parent: the set.
        index: the first member that is not chosen yet.
        needed_and_total: members that must still take part, and pods that are left for them.
        highest: per kind of member, the pods of the last one; no later one gets more.
        budget: pays for each number of pods of a member.
    """
    needed, total = needed_and_total
    if index == len(parent.members):
        yield {}
        return
    member, rest = parent.members[index], parent.later_totals[index + 1]
    still_needed = max(needed - 1, 0)
    limit = min(highest.get(member.kind, total), total)
    left = member.totals & ((1 << limit + 1) - 1) if limit >= 0 else 0
    while left:
        num_pods = left.bit_length() - 1
        left ^= 1 << num_pods
        if not rest[still_needed] >> (total - num_pods) & 1:
            continue
        budget.spend(1)
        others = {**highest, member.kind: num_pods}
        for inner in _choices_of(member, num_pods, budget):
            for pods in _choices_from(
                parent, index + 1, (still_needed, total - num_pods), others, budget
            ):
                yield inner | pods
    if parent.least < len(parent.members) and needed < len(rest) and rest[needed] >> total & 1:
        # The next members of this kind are left out as well.
        others = {**highest, member.kind: -1}
        yield from _choices_from(parent, index + 1, (needed, total), others, budget)
