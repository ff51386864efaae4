"""Even shares over few domains for a group that prefers a tier: Kueue's balanced placement.

Each domain above the preferred tier could share the slices among smaller domains of which each
takes at least T. The largest T wins, then the fewest domains. Domains that hold less than T are
left out. Of the others, the fewest and smallest are chosen, and all get T before any gets more.
Slices of the preferred tier itself are never shared evenly, unless that tier is the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2
from typing import NamedTuple

from generator.placement.budget import Budget
from generator.placement.cluster.levels import UnitRef, units_inside
from generator.placement.emulation.kueue import KueueCapacity
from generator.placement.problem.domain_capacity import name_ranks


class DomainShare(NamedTuple):
    """The share of one domain."""

    tier: int
    unit: int
    num_pods: int
    has_leader: bool
    """Whether the leader is placed there."""


class _Count(NamedTuple):
    """What one domain holds."""

    pods: int
    pods_beside_leader: int
    slices: int
    slices_beside_leader: int
    holds_leader: bool


_NOTHING = _Count(0, 0, 0, 0, holds_leader=False)
_Counts = Mapping[int, _Count]
"""Counts by unit of one tier."""


class _Greedy(NamedTuple):
    """How many of the largest domains hold all slices, and how many the last ones hold."""

    num_domains: int
    leader_slices: int | None
    """Slices beside the leader in its domain; None without a leader."""
    last: _Count | None
    """The last domain without the leader; None if there is none."""


class _BalancedPlan(NamedTuple):
    """How one domain above the preferred tier would share the slices."""

    threshold: int
    num_domains: int
    preferred: _Counts
    shared: _Counts


class BalancedShares:
    """The even shares of one group."""

    def __init__(
        self,
        capacity: KueueCapacity,
        preferred_tier: int,
        num_pods: int,
        budget: Budget,
    ) -> None:
        """Prepare; nothing is chosen yet."""
        self._problem, self._tree, self._budget = capacity.problem, capacity, budget
        self._has_leader = capacity.has_leader
        self._preferred_tier = preferred_tier
        self._needed = num_pods // capacity.coarsest_size
        is_above_slices = preferred_tier > capacity.coarsest_tier
        self._shared_tier = preferred_tier - 1 if is_above_slices else preferred_tier
        self._levels = capacity.problem.snapshot.levels

    def find_shares(self) -> list[DomainShare] | None:
        """Return even shares; None if there are none.

        Raises:
            BudgetExhausted: the budget ended.
        """
        outer_tier = min(self._preferred_tier + 1, self._levels.root)
        ranks = name_ranks(self._problem, outer_tier)
        best: _BalancedPlan | None = None
        for unit in sorted(range(len(ranks)), key=lambda unit: int(ranks[unit])):
            least = 0 if best is None else best.threshold
            plan = self._plan_domain(outer_tier, unit, least)
            if plan is not None and (
                best is None
                or plan.threshold > best.threshold
                or plan.num_domains < best.num_domains
            ):
                best = plan
        return None if best is None else self._shares_of(best)

    def _shares_of(self, plan: _BalancedPlan) -> list[DomainShare] | None:
        units = plan.shared
        if self._shared_tier != self._preferred_tier:
            # Of domains that hold as much, those with more alike parts come first.
            order = self._largest_beside_leader(
                self._preferred_tier,
                plan.preferred,
                lambda unit: self._negated_entropy(unit, plan.shared),
            )
            outer = self._select_fewest(self._preferred_tier, plan.preferred, order)
            if outer is None:
                return None
            starts, domain = self._levels.starts[self._shared_tier], self._levels.unit_of_node
            inside = {int(unit) for unit in outer}
            units = {
                unit: count
                for unit, count in plan.shared.items()
                if int(domain[self._preferred_tier][starts[unit]]) in inside
            }
        ranks = name_ranks(self._problem, self._shared_tier)
        by_name = sorted(units, key=lambda unit: int(ranks[unit]))
        chosen = self._select_fewest(self._shared_tier, units, by_name)
        return None if chosen is None else self._distribute(chosen, units, plan.threshold)

    def _counts_of(self, tier: int, units: Sequence[int]) -> dict[int, _Count]:
        pods, slices = self._tree.pods[tier], self._tree.slices[tier]
        holds = self._tree.holds_leader[tier]
        return {
            unit: _Count(
                int(pods.alone[unit]),
                int(pods.beside_leader[unit]),
                int(slices.alone[unit]),
                int(slices.beside_leader[unit]),
                bool(holds[unit]),
            )
            for unit in units
        }

    def _plan_domain(self, outer_tier: int, unit: int, least: int) -> _BalancedPlan | None:
        """Return how a domain would share the slices, at least so many each; None if it cannot."""
        inside = units_inside(self._levels, UnitRef(outer_tier, unit), self._shared_tier)
        shared = self._counts_of(self._shared_tier, [int(inner) for inner in inside])
        greedy = self._evaluate(self._shared_tier, shared)
        if greedy is None:
            return None
        threshold = self._needed // greedy.num_domains
        if greedy.leader_slices is not None:
            threshold = min(threshold, greedy.leader_slices)
        if greedy.last is not None:
            threshold = min(threshold, greedy.last.slices)
        beside_leader = threshold
        if self._has_leader and greedy.last is not None:
            beside_leader = min(threshold, greedy.last.slices_beside_leader)
        for value in dict.fromkeys((threshold, beside_leader)):
            if value < max(least, 1):
                return None
            plan = self._pruned(outer_tier, unit, shared, value)
            if plan is not None:
                return plan
        return None

    def _pruned(
        self, outer_tier: int, unit: int, shared: dict[int, _Count], threshold: int
    ) -> _BalancedPlan | None:
        """Return the plan without the domains that hold less than the threshold."""
        tier = self._preferred_tier
        units = units_inside(self._levels, UnitRef(outer_tier, unit), tier).tolist()
        if self._shared_tier != tier:
            shared = {inner: self._cut(count, threshold) for inner, count in shared.items()}
            preferred = {inner: self._cut(self._sum(inner, shared), threshold) for inner in units}
        elif tier > 0:
            # Below the domain of a slice, no domain holds a whole slice.
            return None
        else:
            shared = {inner: self._cut(count, threshold) for inner, count in shared.items()}
            preferred = shared
        greedy = self._evaluate(tier, preferred)
        if greedy is None:
            return None
        return _BalancedPlan(threshold, greedy.num_domains, preferred, shared)

    def _cut(self, count: _Count, threshold: int) -> _Count:
        if count.slices < threshold:
            return _NOTHING
        if self._has_leader and count.slices_beside_leader < threshold:
            return count._replace(pods_beside_leader=0, slices_beside_leader=0, holds_leader=False)
        return count

    def _sum(self, unit: int, shared: _Counts) -> _Count:
        """Return what a domain of the preferred tier holds in its parts."""
        parts = [shared[part] for part in self._levels.children(self._preferred_tier, unit)]
        pods, slices = sum(part.pods for part in parts), sum(part.slices for part in parts)
        able = [part for part in parts if part.holds_leader or not self._has_leader]
        if not able:
            return _Count(pods, 0, slices, 0, holds_leader=False)
        return _Count(
            pods,
            pods - min(part.pods - part.pods_beside_leader for part in able),
            slices,
            slices - min(part.slices - part.slices_beside_leader for part in able),
            any(part.holds_leader for part in parts),
        )

    def _largest_beside_leader(
        self, tier: int, counts: _Counts, third: Callable[[int], float] | None = None
    ) -> list[int]:
        """Return domains: larger beside the leader first, then by a third key, or fewer pods."""
        ranks = name_ranks(self._problem, tier)
        third = third or (lambda unit: counts[unit].pods_beside_leader)
        return sorted(
            counts,
            key=lambda unit: (
                not counts[unit].holds_leader,
                -counts[unit].slices_beside_leader,
                third(unit),
                int(ranks[unit]),
            ),
        )

    def _evaluate(self, tier: int, counts: _Counts) -> _Greedy | None:
        """Return how many of the largest domains hold all slices; None if all are too few."""
        missing, number, leader_slices = self._needed, 0, None
        units, last = list(counts), None
        if self._has_leader:
            first, *units = self._largest_beside_leader(tier, counts)
            if not counts[first].holds_leader:
                return None
            leader_slices, number = counts[first].slices_beside_leader, 1
            missing -= leader_slices
        ranks = name_ranks(self._problem, tier)
        units.sort(key=lambda unit: (-counts[unit].slices, counts[unit].pods, int(ranks[unit])))
        for unit in units:
            if missing <= 0 or not counts[unit].slices:
                break
            number, last, missing = number + 1, counts[unit], missing - counts[unit].slices
        return _Greedy(number, leader_slices, last) if missing <= 0 and number else None

    def _negated_entropy(self, unit: int, shared: _Counts) -> float:
        """Return the negated entropy of the pods that the parts of a domain hold."""
        parts = [shared[part].pods for part in self._levels.children(self._preferred_tier, unit)]
        total = max(sum(parts), 1)
        return round(sum(part / total * log2(part / total) for part in parts if part), 9)

    def _select_fewest(self, tier: int, counts: _Counts, units: Sequence[int]) -> list[int] | None:
        """Return as many units as the largest ones would be, with the fewest pods that suffice.

        Among equals, units that come first are preferred.
        """
        greedy = self._evaluate(tier, counts)
        if greedy is None:
            return None
        start = (int(self._has_leader), self._needed * self._tree.coarsest_size)
        states: list[dict[tuple[int, int], tuple[int, ...]]] = [
            {} for _ in range(greedy.num_domains + 1)
        ]
        states[0][start] = ()
        for unit in units:
            for number in range(greedy.num_domains, 0, -1):
                self._budget.spend(len(states[number - 1]))
                for state in sorted(states[number - 1]):
                    chosen = (*states[number - 1][state], unit)
                    for after in self._states_after(state, counts[unit]):
                        states[number].setdefault(after, chosen)
        final = [state for state in states[-1] if state[0] <= 0 and state[1] <= 0]
        return list(states[-1][max(final, key=lambda state: state[1])]) if final else None

    def _states_after(self, state: tuple[int, int], count: _Count) -> list[tuple[int, int]]:
        """Return leaders and pods that are left after one more domain."""
        leaders, pods = state
        after: list[tuple[int, int]] = []
        if leaders <= 0 and pods <= 0:
            return after
        if leaders > 0 and count.holds_leader:
            after.append((leaders - 1, pods - count.pods_beside_leader))
        if count.slices:
            after.append((leaders, pods - count.pods))
        return after

    def _distribute(
        self, units: Sequence[int], counts: _Counts, threshold: int
    ) -> list[DomainShare] | None:
        """Give each unit the threshold, and the rest to the largest units first."""
        remaining = self._needed - threshold * len(units)
        if remaining < 0:
            return None
        order = self._largest_beside_leader(
            self._shared_tier, {unit: counts[unit] for unit in units}
        )
        shares = []
        for index, unit in enumerate(order):
            has_leader = self._has_leader and index == 0
            holds = counts[unit].slices_beside_leader if has_leader else counts[unit].slices
            extra = min(holds - threshold, remaining)
            if extra < 0 or (has_leader and not counts[unit].holds_leader):
                return None
            remaining -= extra
            num_pods = (threshold + extra) * self._tree.coarsest_size
            shares.append(DomainShare(self._shared_tier, unit, num_pods, has_leader))
        return shares if remaining == 0 else None
