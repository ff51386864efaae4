"""The members of a gang, and the numbers of pods with which each may take part.

A member is a group, or a set of members. A member takes part, with a number of pods that it allows,
or is left out, if its set needs only some of its members. Totals of pods are bits of an integer, so
a total that no choice reaches costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import or_
from typing import NamedTuple

from generator.placement.budget import Budget
from generator.placement.request import PlacementRequest


class GangMember(NamedTuple):
    """A group, or a set of members of which some may be left out."""

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


class GroupCounts(NamedTuple):
    """What the members of a gang are built from, per group."""

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
    groups = [
        GangMember(index, row.counts, (), 0, row.kind, _totals_of(row.counts), ())
        for index, row in enumerate(rows)
    ]
    sets: list[GangMember] = []
    for group_set in request.sets:
        members = [groups[group] for group in group_set.groups]
        members += [sets[inner] for inner in group_set.sets]
        # A bound or running pods make a set different from one with the same members.
        bound = (group_set.required, group_set.preferred)
        has_running = any(rows[group].has_running for one in members for group in one.groups())
        kind = (*bound, group_set.name if has_running else "")
        sets.append(_set_of(members, least=group_set.least, kind=kind, budget=budget))
    inner_groups = {group for group_set in request.sets for group in group_set.groups}
    inner_sets = {inner for group_set in request.sets for inner in group_set.sets}
    top = [member for index, member in enumerate(groups) if index not in inner_groups]
    top += [member for index, member in enumerate(sets) if index not in inner_sets]
    return _set_of(top, least=len(top), kind=(), budget=budget)


def takes_part(member: GangMember, counts: Sequence[int]) -> bool:
    """Return whether a member takes part as a whole with these pods per group."""
    if member.group >= 0:
        return counts[member.group] in member.counts
    are_in = [takes_part(inner, counts) for inner in member.members]
    are_out = [not any(counts[group] for group in inner.groups()) for inner in member.members]
    return sum(are_in) >= member.least and all(map(or_, are_in, are_out))


def fewest_pods_choice(gang: GangMember, num_groups: int) -> tuple[int, ...]:
    """Return the pods per group if every group and set has the fewest; smallest members first."""
    pods = [0] * num_groups
    add_fewest(gang, pods)
    return tuple(pods)


def add_fewest(member: GangMember, pods: list[int]) -> None:
    """Set the pods of the groups of a member that takes part with the fewest pods."""
    if member.group >= 0:
        pods[member.group] = member.counts[0]
        return
    order = sorted(member.members, key=lambda inner: (not inner.totals, inner.fewest_pods))
    for inner in order[: member.least]:
        add_fewest(inner, pods)


def all_members(member: GangMember) -> Iterator[GangMember]:
    """Yield a member and all members in it, outer members first."""
    yield member
    for inner in member.members:
        yield from all_members(inner)


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
