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

    def with_domain(
        self, num_slices: int, num_without_leader: int, *, has_leader: bool = False
    ) -> _Selection:
        """Return the selection with one more domain."""
        return _Selection(
            self.num_domains + 1,
            self.has_leader or has_leader,
            self.num_slices + num_slices,
            self.num_slices_without_leader + num_without_leader,
        )


class BalancedShares:
    """The even shares of one group."""

    def __init__(
        self, capacity: GroupCapacity, preferred_tier: int, num_pods: int, budget: Budget
    ) -> None:
        """Prepare the counts of slices; nothing is chosen yet."""
        self._capacity, self._budget = capacity, budget
        self._preferred_tier, self._slice_size = preferred_tier, capacity.slice_size
        self._needed_slices = num_pods // self._slice_size
        self._shared_tier = max(preferred_tier - 1, capacity.slice_tier)
        self._levels = capacity.problem.snapshot.levels
        self._name_ranks = [
            name_ranks(capacity.problem, tier) for tier in range(self._levels.root + 1)
        ]

    def find_shares(self) -> list[DomainShare] | None:
        """Return even shares; None if there are none.

        Raises:
            BudgetExhausted: the budget ended.
        """
        outer_tier = min(self._preferred_tier + 1, self._levels.root)
        choices = [
            (-choice.threshold, choice.num_domains, int(self._name_ranks[outer_tier][unit]), choice)
            for unit in range(len(self._levels.starts[outer_tier]))
            if (choice := self._plan_domain(outer_tier, unit)) is not None
        ]
        if not choices:
            return None
        choice = min(choices, key=lambda option: option[:3])[3]
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
        beside_leader = int(self._capacity.slots_beside_leader[tier][unit])
        num_beside = -1 if beside_leader < 0 else beside_leader // self._slice_size
        num_slices = int(self._capacity.usable_slots[tier][unit]) // self._slice_size
        return num_slices, num_beside

    def _plan_domain(self, outer_tier: int, unit: int) -> _SharePlan | None:
        """Return how a domain above the preferred tier would share the pods; None if it cannot."""
        units = units_inside(self._capacity.problem, outer_tier, unit, self._shared_tier)
        slice_counts = [self._count_slices(self._shared_tier, shared_unit) for shared_unit in units]
        first, last = self._count_largest(slice_counts)
        if not first:
            return None
        threshold = min(self._needed_slices // first, last)
        if self._capacity.has_leader:
            threshold = min(threshold, max(beside_leader for _, beside_leader in slice_counts))
        if threshold < 1:
            return None
        large_units = np.array(
            [
                shared_unit
                for shared_unit, counts in zip(units, slice_counts, strict=True)
                if counts[0] >= threshold
            ]
        )
        num_domains, _ = self._count_largest(
            list(self._count_slices_by_preferred(large_units).values())
        )
        return _SharePlan(threshold, num_domains, large_units) if num_domains else None

    def _count_largest(self, slice_counts: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return how many of the largest domains hold all slices, and the last one's slices."""
        by_size = sorted(range(len(slice_counts)), key=lambda index: -slice_counts[index][0])
        if self._capacity.has_leader:
            capable = [index for index in by_size if slice_counts[index][1] >= 0]
            if not capable:
                return 0, 0
            first = max(capable, key=lambda index: slice_counts[index][1])
            by_size = [first, *(index for index in by_size if index != first)]
        missing = self._needed_slices
        for number, index in enumerate(by_size, start=1):
            holds = (
                slice_counts[index][1]
                if self._capacity.has_leader and number == 1
                else slice_counts[index][0]
            )
            missing -= holds
            if missing <= 0:
                return number, holds
        return 0, 0

    def _preferred_domain_of(self, units: IntArray) -> IntArray:
        """Return the domain of the preferred tier around each unit."""
        starts = self._levels.starts[self._shared_tier][units]
        return self._levels.unit_of_node[self._preferred_tier][starts]

    def _count_slices_by_preferred(self, units: IntArray) -> dict[int, tuple[int, int]]:
        """Return the slices that each domain of the preferred tier holds in these units."""
        slices: dict[int, tuple[int, int]] = {}
        for unit, domain in zip(units, self._preferred_domain_of(units), strict=True):
            num_slices, beside_leader = self._count_slices(self._shared_tier, int(unit))
            total, total_beside_leader = slices.get(int(domain), (0, -1))
            options = [total_beside_leader + num_slices] if total_beside_leader >= 0 else []
            options += [total + beside_leader] if beside_leader >= 0 else []
            slices[int(domain)] = (total + num_slices, max(options, default=-1))
        return slices

    def _select_fewest(
        self, tier: int, counts: dict[int, tuple[int, int]], *, prefers_even: bool
    ) -> list[int] | None:
        """Return the fewest, then smallest units that hold all slices; the leader's unit is first.

        Among equals, units whose own parts are most alike come first, or else units in name order.
        """
        units = sorted(
            counts,
            key=lambda unit: (
                self._negated_entropy(tier, unit) if prefers_even else 0,
                self._name_ranks[tier][unit],
            ),
        )
        has_leader = self._capacity.has_leader
        states: dict[_Selection, tuple[int, ...]] = {_Selection(0, not has_leader, 0, 0): ()}
        for unit in units:
            self._budget.spend(len(states))
            num_slices, beside_leader = counts[unit]
            for state, chosen in list(states.items()):
                if state.num_slices >= self._needed_slices and state.has_leader:
                    continue
                states.setdefault(state.with_domain(num_slices, num_slices), (*chosen, unit))
                if not state.has_leader and beside_leader >= 0:
                    states.setdefault(
                        state.with_domain(beside_leader, num_slices, has_leader=True),
                        (unit, *chosen),
                    )
        final = [
            state
            for state in states
            if state.has_leader and state.num_slices >= self._needed_slices
        ]
        if not final:
            return None
        best = min(final, key=lambda state: (state.num_domains, state.num_slices_without_leader))
        return list(states[best])

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
        max_slices = {unit: self._count_slices(self._shared_tier, unit)[0] for unit in units}
        leader = units[0] if self._capacity.has_leader else None
        if leader is not None:
            max_slices[leader] = self._count_slices(self._shared_tier, leader)[1]
        remaining = self._needed_slices - threshold * len(units)
        if remaining < 0 or min(max_slices.values()) < threshold:
            return None
        by_size = sorted(
            units,
            key=lambda other: (-max_slices[other], self._name_ranks[self._shared_tier][other]),
        )
        shares = []
        for unit in by_size:
            extra = min(max_slices[unit] - threshold, remaining)
            remaining -= extra
            num_pods = (threshold + extra) * self._slice_size
            shares.append(DomainShare(self._shared_tier, unit, num_pods, unit == leader))
        return shares if remaining == 0 else None
