"""The rules on which domains of a tier a group uses: how many, and whether it shares them.

A unit of a tier is used by a group if one of its pods is in it, running pods included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from generator.placement.cluster.snapshot import Snapshot
from generator.placement.request import GangGroup, PlacementRequest


class SpreadRule(NamedTuple):
    """The number of units of a tier that a group uses, unless none of its pods is placed."""

    tier: int
    least: int
    most: int | None
    group: int

    def allows(self, units: Collection[int]) -> bool:
        """Return whether the group may use these distinct units."""
        return not units or self.least <= len(units) <= (self.most or len(units))


class ExclusiveRule(NamedTuple):
    """Groups whose units of a tier contain no other group of the gang."""

    tier: int
    groups: tuple[int, ...]
    """Sorted: one group, a leader and its workers, or all groups of a set."""


def build_spread_rules(snapshot: Snapshot, request: PlacementRequest) -> tuple[SpreadRule, ...]:
    """Return the bounds on the numbers of domains that the groups of a request use."""
    return tuple(
        SpreadRule(snapshot.levels.height_of(bound.tier), bound.least, bound.most, index)
        for index, group in enumerate(request.groups)
        for bound in group.spread
    )


def build_exclusive_rules(
    snapshot: Snapshot, request: PlacementRequest
) -> tuple[ExclusiveRule, ...]:
    """Return the groups that share no domain with other groups; none if there are no others."""
    num_groups = len(request.groups)
    rules = [
        ExclusiveRule(snapshot.levels.height_of(tier), groups)
        for tier, groups in exclusive_groups(request)
        if len(groups) < num_groups
    ]
    return tuple(dict.fromkeys(rules))


def exclusive_groups(request: PlacementRequest) -> Iterable[tuple[str, tuple[int, ...]]]:
    """Yield (tier, the groups that have its domains for themselves)."""
    for index, group in enumerate(request.groups):
        if group.exclusive is not None:
            yield group.exclusive, tuple(sorted({index, *_worker_indices(request.groups, group)}))
    for index, group_set in enumerate(request.sets):
        if group_set.exclusive is not None:
            yield group_set.exclusive, request.groups_in_set(index)


def _worker_indices(groups: Sequence[GangGroup], leader: GangGroup) -> Iterable[int]:
    return (index for index, group in enumerate(groups) if group.name == leader.leader_of)
