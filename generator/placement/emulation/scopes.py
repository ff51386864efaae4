"""The groups and sets of a request as nested scopes, each of which shares one domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from generator.placement.problem.problem import Problem


class Scope(NamedTuple):
    """Groups that share one domain, which is inside the domain of the outer scope."""

    groups: tuple[int, ...]
    """Leaf groups in order; a leader comes before its workers."""
    members: tuple[Scope, ...]
    """Inner scopes; empty for a group, or for a leader with its workers."""
    required: int | None
    preferred: tuple[int, ...]

    @property
    def named_tiers(self) -> list[int]:
        """Tiers that the scope names."""
        return [*self.preferred, *([] if self.required is None else [self.required])]


class ScopeBuilder:
    """Builds the scopes of one problem."""

    def __init__(self, problem: Problem) -> None:
        """Find leader groups of one pod; other leaders are ordinary groups."""
        self._snapshot, self._request = problem.snapshot, problem.request
        names = {group.name: index for index, group in enumerate(self._request.groups)}
        self._leader_of = {
            names[group.leader_of]: index
            for index, group in enumerate(self._request.groups)
            if group.leader_of in names and group.count == 1
        }

    def job_scope(self) -> Scope:
        """Return the scope of the whole job; the tiers of a single group belong to the job."""
        request = self._request
        members = self._member_scopes(
            self._outermost(len(request.groups), [row.groups for row in request.sets]),
            self._outermost(len(request.sets), [row.sets for row in request.sets]),
        )
        return self._enclosing_scope(members, request.required, request.preferred)

    def _outermost(self, count: int, inner: Sequence[tuple[int, ...]]) -> list[int]:
        inner_indexes = {index for indexes in inner for index in indexes}
        return [index for index in range(count) if index not in inner_indexes]

    def _member_scopes(self, groups: Sequence[int], sets: Sequence[int]) -> tuple[Scope, ...]:
        leaders = set(self._leader_of.values())
        scopes = [self._group_scope(index) for index in groups if index not in leaders]
        scopes += [self._set_scope(index) for index in sets]
        return tuple(sorted(scopes, key=lambda scope: min(scope.groups)))

    def _group_scope(self, group_index: int) -> Scope:
        group = self._request.groups[group_index]
        leader = self._leader_of.get(group_index)
        groups = (group_index,) if leader is None else (leader, group_index)
        return Scope(groups, (), *self._tier_bounds(group.required, group.preferred))

    def _set_scope(self, set_index: int) -> Scope:
        group_set = self._request.sets[set_index]
        return self._enclosing_scope(
            self._member_scopes(group_set.groups, group_set.sets),
            group_set.required,
            group_set.preferred,
        )

    def _enclosing_scope(
        self, members: tuple[Scope, ...], required: str | None, preferred: Sequence[str]
    ) -> Scope:
        """Return the scope around members; a single group's own scope, with both bounds."""
        tier, preferred_tiers = self._tier_bounds(required, preferred)
        if len(members) == 1 and not members[0].members:
            only = members[0]
            required_tiers = [
                required_tier
                for required_tier in (tier, only.required)
                if required_tier is not None
            ]
            return Scope(
                only.groups,
                (),
                min(required_tiers, default=None),
                (*preferred_tiers, *only.preferred),
            )
        groups = tuple(group for member in members for group in member.groups)
        return Scope(groups, members, tier, preferred_tiers)

    def _tier_bounds(
        self, required: str | None, preferred: Sequence[str]
    ) -> tuple[int | None, tuple[int, ...]]:
        tier = None if required is None else self._snapshot.levels.height_of(required)
        return tier, tuple(self._snapshot.levels.height_of(name) for name in preferred)
