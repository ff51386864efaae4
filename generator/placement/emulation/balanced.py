"""Even shares over few domains for a group that prefers a tier: Kueue's balanced placement.

Each domain above the preferred tier could share the pods among smaller domains of which each takes
at least T. The largest T wins, then the fewest domains. Domains that hold less than T are left out.
Of the others, the fewest and smallest are chosen, and all get T before any gets more. Everything is
counted in whole slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import IntArray
from generator.placement.problem.domain_capacity import GroupCapacity, name_ranks, units_inside
from generator.placement.solve.budget import Budget


class DomainShare(NamedTuple):
    """The share of one domain."""

    tier: int
    unit: int
    num_pods: int
    has_leader: bool
    """Whether the leader is placed there."""


class _SharePlan(NamedTuple):
    """How one domain above the preferred tier would share the pods."""

    threshold: int
    num_domains: int
    units: IntArray
    """Domains of the shared tier that hold the threshold."""


class _Selection(NamedTuple):
    """The domains chosen so far."""

    num_domains: int
    has_leader: bool
    num_slices: int
    """Slices that fit them, beside the leader if it is placed there."""
    num_slices_without_leader: int
    """Slices that fit them without a leader."""

    def with_domain(self, holds: int, size: int, *, has_leader: bool = False) -> _Selection:
        """Return the selection with one more domain."""
        return _Selection(
            self.num_domains + 1,
            self.has_leader or has_leader,
            self.num_slices + holds,
            self.num_slices_without_leader + size,
        )


class BalancedShares:
    """The even shares of one group."""

    def __init__(self, rooms: GroupCapacity, preferred: int, num_pods: int, effort: Budget) -> None:
        """Prepare the counts of slices; nothing is chosen yet."""
        self._capacity, self._budget = rooms, effort
        self._preferred_tier, self._slice_size = preferred, rooms.slice_size
        self._needed_slices = num_pods // self._slice_size
        self._shared_tier = max(preferred - 1, rooms.slice_tier)
        self._levels = rooms.problem.snapshot.levels
        self._name_ranks = [
            name_ranks(rooms.problem, tier) for tier in range(self._levels.root + 1)
        ]

    def find_shares(self) -> list[DomainShare] | None:
        """Return even shares; None if there are none.

        Raises:
            BudgetExhausted: the budget ended.
        """
        above = min(self._preferred_tier + 1, self._levels.root)
        choices = [
            (-choice.threshold, choice.num_domains, int(self._name_ranks[above][unit]), choice)
            for unit in range(len(self._levels.starts[above]))
            if (choice := self._plan_domain(above, unit)) is not None
        ]
        if not choices:
            return None
        choice = min(choices, key=lambda row: row[:3])[3]
        outer = self._select_fewest(
            self._preferred_tier, self._count_slices_by_preferred(choice.units), prefers_even=True
        )
        if outer is None:
            return None
        units = choice.units[np.isin(self._preferred_domain_of(choice.units), outer)]
        counts = {int(unit): self._count_slices(self._shared_tier, unit) for unit in units}
        chosen = self._select_fewest(self._shared_tier, counts, prefers_even=False)
        return None if chosen is None else self._distribute(chosen, choice.threshold)

    def _count_slices(self, tier: int, unit: int) -> tuple[int, int]:
        """Return the whole slices of a unit, alone and beside the leader; -1 if no leader fits."""
        led = int(self._capacity.slots_beside_leader[tier][unit])
        beside = -1 if led < 0 else led // self._slice_size
        return int(self._capacity.usable_slots[tier][unit]) // self._slice_size, beside

    def _plan_domain(self, above: int, unit: int) -> _SharePlan | None:
        """Return how a domain above the preferred tier would share the pods; None if it cannot."""
        units = units_inside(self._capacity.problem, above, unit, self._shared_tier)
        rows = [self._count_slices(self._shared_tier, at) for at in units]
        first, last = self._count_largest(rows)
        if not first:
            return None
        threshold = min(self._needed_slices // first, last)
        if self._capacity.has_leader:
            threshold = min(threshold, max(beside for _, beside in rows))
        if threshold < 1:
            return None
        kept = np.array([at for at, row in zip(units, rows, strict=True) if row[0] >= threshold])
        num_domains, _ = self._count_largest(list(self._count_slices_by_preferred(kept).values()))
        return _SharePlan(threshold, num_domains, kept) if num_domains else None

    def _count_largest(self, rows: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return how many of the largest domains hold all slices, and the last one's slices."""
        order = sorted(range(len(rows)), key=lambda at: -rows[at][0])
        if self._capacity.has_leader:
            capable = [at for at in order if rows[at][1] >= 0]
            if not capable:
                return 0, 0
            first = max(capable, key=lambda at: rows[at][1])
            order = [first, *(at for at in order if at != first)]
        left = self._needed_slices
        for number, at in enumerate(order, start=1):
            holds = rows[at][1] if self._capacity.has_leader and number == 1 else rows[at][0]
            left -= holds
            if left <= 0:
                return number, holds
        return 0, 0

    def _preferred_domain_of(self, units: IntArray) -> IntArray:
        """Return the domain of the preferred tier around each unit."""
        starts = self._levels.starts[self._shared_tier][units]
        return self._levels.unit_of_node[self._preferred_tier][starts]

    def _count_slices_by_preferred(self, units: IntArray) -> dict[int, tuple[int, int]]:
        """Return the slices that each domain of the preferred tier holds in these units."""
        found: dict[int, tuple[int, int]] = {}
        for unit, over in zip(units, self._preferred_domain_of(units), strict=True):
            whole, beside = self._count_slices(self._shared_tier, int(unit))
            known, led = found.get(int(over), (0, -1))
            options = [led + whole] if led >= 0 else []
            options += [known + beside] if beside >= 0 else []
            found[int(over)] = (known + whole, max(options, default=-1))
        return found

    def _select_fewest(
        self, tier: int, counts: dict[int, tuple[int, int]], *, prefers_even: bool
    ) -> list[int] | None:
        """Return the fewest, then smallest units that hold all slices; the leader's unit is first.

        Among equals, units whose own parts are most alike come first, or else units in name order.
        """
        order = sorted(
            counts,
            key=lambda at: (
                self._negated_entropy(tier, at) if prefers_even else 0,
                self._name_ranks[tier][at],
            ),
        )
        has_leader = self._capacity.has_leader
        states: dict[_Selection, tuple[int, ...]] = {_Selection(0, not has_leader, 0, 0): ()}
        for at in order:
            self._budget.spend(len(states))
            whole, beside = counts[at]
            for state, chosen in list(states.items()):
                if state.num_slices >= self._needed_slices and state.has_leader:
                    continue
                states.setdefault(state.with_domain(whole, whole), (*chosen, at))
                if not state.has_leader and beside >= 0:
                    states.setdefault(
                        state.with_domain(beside, whole, has_leader=True), (at, *chosen)
                    )
        done = [
            state
            for state in states
            if state.has_leader and state.num_slices >= self._needed_slices
        ]
        if not done:
            return None
        return list(
            states[
                min(done, key=lambda state: (state.num_domains, state.num_slices_without_leader))
            ]
        )

    def _negated_entropy(self, tier: int, unit: int) -> float:
        """Return the negated entropy of the pods that the parts of a unit hold."""
        if tier == 0:
            return 0.0
        span = self._levels.children(tier, unit)
        fits = self._capacity.usable_slots[tier - 1][span.start : span.stop]
        parts = fits[fits > 0] / max(int(fits.sum()), 1)
        return round(sum(float(part) * log2(float(part)) for part in parts), 9)

    def _distribute(self, units: Sequence[int], threshold: int) -> list[DomainShare] | None:
        """Give each unit the threshold, and the rest to the largest units first."""
        most = {unit: self._count_slices(self._shared_tier, unit)[0] for unit in units}
        leader = units[0] if self._capacity.has_leader else None
        if leader is not None:
            most[leader] = self._count_slices(self._shared_tier, leader)[1]
        left = self._needed_slices - threshold * len(units)
        if left < 0 or min(most.values()) < threshold:
            return None
        order = sorted(units, key=lambda at: (-most[at], self._name_ranks[self._shared_tier][at]))
        shares = []
        for unit in order:
            more = min(most[unit] - threshold, left)
            left -= more
            num_pods = (threshold + more) * self._slice_size
            shares.append(DomainShare(self._shared_tier, unit, num_pods, unit == leader))
        return shares if left == 0 else None
