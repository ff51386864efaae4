"""Even shares over few domains for a group that prefers a tier: Kueue's balanced placement.

Each domain above the preferred tier could share the slices among smaller domains of which each
takes at least T. The largest T wins, then the fewest domains. Domains that hold less than T are
left out. Of the others, the fewest and smallest are chosen, and all get T before any gets more.
Slices of the preferred tier itself are never shared evenly, unless that tier is the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from generator.placement.budget import Budget
from generator.placement.cluster.levels import UnitRef, units_inside
from generator.placement.emulation.kueue import KueueCapacity
from generator.placement.problem.domain_capacity import name_ranks


class DomainShare(NamedTuple):
    """The share of one domain."""

    place: UnitRef
    num_pods: int
    has_leader: bool
    """Whether the leader is placed there."""


class _Domain(NamedTuple):
    """What one domain holds, alone and beside the leader; both are equal without a leader."""

    unit: int
    rank: int
    """The rank of the unit's name among all names."""
    pods: int
    pods_beside_leader: int
    slices: int
    slices_beside_leader: int
    holds_leader: bool

    def cut(self, threshold: int) -> _Domain:
        """Return the domain; what it holds counts as nothing if it is less than the threshold."""
        if self.slices < threshold:
            return _Domain(self.unit, self.rank, 0, 0, 0, 0, holds_leader=False)
        if self.slices_beside_leader < threshold:
            return self._replace(pods_beside_leader=0, slices_beside_leader=0, holds_leader=False)
        return self

    def largest_beside_leader(self) -> tuple[bool, int, int, int]:
        """Return the sort key: larger beside the leader first, then those with fewer pods."""
        beside = -self.slices_beside_leader, self.pods_beside_leader
        return (not self.holds_leader, *beside, self.rank)


class _Plan(NamedTuple):
    """How one domain above the preferred tier would share the slices."""

    threshold: int
    num_domains: int
    preferred: list[_Domain]
    shared: list[_Domain]


class BalancedShares:
    """The even shares of one group."""

    def __init__(
        self, capacity: KueueCapacity, preferred_tier: int, num_pods: int, budget: Budget
    ) -> None:
        """Prepare; nothing is chosen yet."""
        self._capacity, self._budget = capacity, budget
        self._has_leader = capacity.has_leader
        self._levels = capacity.problem.snapshot.levels
        self._needed = num_pods // capacity.coarsest_size
        self._preferred_tier = preferred_tier
        is_above_slices = preferred_tier > capacity.coarsest_tier
        self._shared_tier = preferred_tier - 1 if is_above_slices else preferred_tier

    def find_shares(self) -> list[DomainShare] | None:
        """Return even shares; None if there are none.

        Raises:
            BudgetExhausted: the budget ended.
        """
        outer_tier = min(self._preferred_tier + 1, self._levels.root)
        best: _Plan | None = None
        for unit in np.argsort(name_ranks(self._capacity.problem, outer_tier)).tolist():
            least = 0 if best is None else best.threshold
            plan = self._plan_domain(UnitRef(outer_tier, unit), least)
            if plan is not None and (
                best is None
                or plan.threshold > best.threshold
                or plan.num_domains < best.num_domains
            ):
                best = plan
        return None if best is None else self._shares_of(best)

    def _shares_of(self, plan: _Plan) -> list[DomainShare] | None:
        domains = plan.shared
        if self._shared_tier != self._preferred_tier:
            # Of domains that hold as much, those with more alike parts come first.
            order = sorted(
                plan.preferred,
                key=lambda domain: (
                    not domain.holds_leader,
                    -domain.slices_beside_leader,
                    _negated_entropy([part.pods for part in self._parts(domain, plan.shared)]),
                    domain.rank,
                ),
            )
            outer = self._select_fewest(order)
            if outer is None:
                return None
            domains = [part for domain in outer for part in self._parts(domain, plan.shared)]
        chosen = self._select_fewest(sorted(domains, key=lambda domain: domain.rank))
        return None if chosen is None else self._distribute(chosen, plan.threshold)

    def _domains_of(self, tier: int, place: UnitRef) -> list[_Domain]:
        """Return the domains of a tier inside a unit, in tree order."""
        counts = self._capacity
        units = units_inside(self._levels, place, tier)
        columns = (
            name_ranks(counts.problem, tier),
            *counts.pods[tier],
            *counts.slices[tier],
            counts.holds_leader[tier],
        )
        rows = zip(units.tolist(), *(column[units].tolist() for column in columns), strict=True)
        return [_Domain(*row) for row in rows]

    def _parts(self, domain: _Domain, shared: Sequence[_Domain]) -> list[_Domain]:
        """Return the parts of a domain of the preferred tier."""
        children = self._levels.children(self._preferred_tier, domain.unit)
        return [part for part in shared if part.unit in children]

    def _plan_domain(self, place: UnitRef, least: int) -> _Plan | None:
        """Return a plan with at least `least` slices in each part of a domain; None without one."""
        shared = self._domains_of(self._shared_tier, place)
        largest = self._largest(shared)
        if largest is None:
            return None
        threshold = self._needed // len(largest)
        if self._has_leader:
            threshold = min(threshold, largest[0].slices_beside_leader)
        beside_leader = threshold
        for last in largest[int(self._has_leader) :][-1:]:
            threshold = min(threshold, last.slices)
            beside_leader = min(threshold, last.slices_beside_leader)
        for value in dict.fromkeys((threshold, beside_leader)):
            if value < max(least, 1):
                return None
            plan = self._pruned(place, shared, value)
            if plan is not None:
                return plan
        return None

    def _pruned(self, place: UnitRef, shared: Sequence[_Domain], threshold: int) -> _Plan | None:
        """Return the plan without the domains that hold less than the threshold."""
        pruned = [domain.cut(threshold) for domain in shared]
        if self._shared_tier != self._preferred_tier:
            preferred = [
                _sum(domain, self._parts(domain, pruned)).cut(threshold)
                for domain in self._domains_of(self._preferred_tier, place)
            ]
        elif self._preferred_tier == 0:
            preferred = pruned
        else:  # below the domain of a slice, no domain holds a whole slice
            return None
        largest = self._largest(preferred)
        return None if largest is None else _Plan(threshold, len(largest), preferred, pruned)

    def _largest(self, domains: Iterable[_Domain]) -> list[_Domain] | None:
        """Return the largest domains that hold all slices, the leader's first; None if too few."""
        chosen: list[_Domain] = []
        missing, left = self._needed, list(domains)
        if self._has_leader:
            first, *left = sorted(left, key=_Domain.largest_beside_leader)
            if not first.holds_leader:
                return None
            chosen, missing = [first], missing - first.slices_beside_leader
        for domain in sorted(left, key=lambda row: (-row.slices, row.pods, row.rank)):
            if missing <= 0 or not domain.slices:
                break
            chosen.append(domain)
            missing -= domain.slices
        return chosen if missing <= 0 and chosen else None

    def _select_fewest(self, domains: Sequence[_Domain]) -> list[_Domain] | None:
        """Return as many domains as the largest ones would be, with the fewest pods that suffice.

        Among equals, domains that come first are preferred.
        """
        largest = self._largest(domains)
        if largest is None:
            return None
        start = (int(self._has_leader), self._needed * self._capacity.coarsest_size)
        states: list[dict[tuple[int, int], tuple[_Domain, ...]]] = [{start: ()}]
        states += [{} for _ in largest]
        for domain in domains:
            for number in range(len(largest), 0, -1):
                self._budget.spend(len(states[number - 1]))
                for state in sorted(states[number - 1]):
                    chosen = (*states[number - 1][state], domain)
                    for after in _states_after(state, domain):
                        states[number].setdefault(after, chosen)
        final = [state for state in states[-1] if state[0] <= 0 and state[1] <= 0]
        return list(states[-1][max(final, key=lambda state: state[1])]) if final else None

    def _distribute(self, domains: Iterable[_Domain], threshold: int) -> list[DomainShare] | None:
        """Give each domain the threshold, and the rest to the largest domains first."""
        order = sorted(domains, key=_Domain.largest_beside_leader)
        remaining = self._needed - threshold * len(order)
        shares: list[DomainShare] = []
        for domain in order:
            has_leader = self._has_leader and not shares
            holds = domain.slices_beside_leader if has_leader else domain.slices
            extra = min(holds - threshold, remaining)
            if extra < 0 or (has_leader and not domain.holds_leader):
                return None
            remaining -= extra
            num_pods = (threshold + extra) * self._capacity.coarsest_size
            place = UnitRef(self._shared_tier, domain.unit)
            shares.append(DomainShare(place, num_pods, has_leader))
        return shares if remaining == 0 else None


def _sum(domain: _Domain, parts: Sequence[_Domain]) -> _Domain:
    """Return a domain with the sums of its parts; the leader is in the part where it costs less."""
    pods, slices = sum(part.pods for part in parts), sum(part.slices for part in parts)
    able = [part for part in parts if part.holds_leader]
    lost_pods = min((part.pods - part.pods_beside_leader for part in able), default=pods)
    lost_slices = min((part.slices - part.slices_beside_leader for part in able), default=slices)
    return domain._replace(
        pods=pods,
        pods_beside_leader=pods - lost_pods,
        slices=slices,
        slices_beside_leader=slices - lost_slices,
        holds_leader=bool(able),
    )


def _negated_entropy(pods: Sequence[int]) -> float:
    """Return the negated entropy of the pods that the parts of a domain hold."""
    total = max(sum(pods), 1)
    return round(sum(part / total * log2(part / total) for part in pods if part), 9)


def _states_after(state: tuple[int, int], domain: _Domain) -> list[tuple[int, int]]:
    """Return the (leaders, pods) still to place after one more domain.

    One entry has the leader in this domain, the other does not. Empty if nothing is left to place.
    """
    leaders, pods = state
    if leaders <= 0 and pods <= 0:
        return []
    after: list[tuple[int, int]] = []
    if leaders > 0 and domain.holds_leader:
        after.append((leaders - 1, pods - domain.pods_beside_leader))
    if domain.slices:
        after.append((leaders, pods - domain.pods))
    return after
