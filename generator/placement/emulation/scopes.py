"""The groups and sets of a request as nested scopes, each of which shares one domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from generator.placement.cluster.tiers import tier_index
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
        names = {group.name: at for at, group in enumerate(self._request.groups)}
        self._leader_of = {
            names[group.leader_of]: at
            for at, group in enumerate(self._request.groups)
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
        held = {at for row in inner for at in row}
        return [at for at in range(count) if at not in held]

    def _member_scopes(self, groups: Sequence[int], sets: Sequence[int]) -> tuple[Scope, ...]:
        leaders = set(self._leader_of.values())
        found = [self._group_scope(at) for at in groups if at not in leaders]
        found += [self._set_scope(at) for at in sets]
        return tuple(sorted(found, key=lambda scope: min(scope.groups)))

    def _group_scope(self, at: int) -> Scope:
        group = self._request.groups[at]
        leader = self._leader_of.get(at)
        held = (at,) if leader is None else (leader, at)
        return Scope(held, (), *self._tier_bounds(group.required, group.preferred))

    def _set_scope(self, at: int) -> Scope:
        row = self._request.sets[at]
        return self._enclosing_scope(
            self._member_scopes(row.groups, row.sets), row.required, row.preferred
        )

    def _enclosing_scope(
        self, members: tuple[Scope, ...], required: str | None, preferred: Sequence[str]
    ) -> Scope:
        """Return the scope around members; a single group's own scope, with both bounds."""
        tier, wishes = self._tier_bounds(required, preferred)
        if len(members) == 1 and not members[0].members:
            only = members[0]
            caps = [cap for cap in (tier, only.required) if cap is not None]
            return Scope(only.groups, (), min(caps, default=None), (*wishes, *only.preferred))
        groups = tuple(group for member in members for group in member.groups)
        return Scope(groups, members, tier, wishes)

    def _tier_bounds(
        self, required: str | None, preferred: Sequence[str]
    ) -> tuple[int | None, tuple[int, ...]]:
        tier = None if required is None else tier_index(self._snapshot, required)
        return tier, tuple(tier_index(self._snapshot, name) for name in preferred)
