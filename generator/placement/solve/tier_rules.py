"""The rules of a problem on the units of one tier, in the form that the tree search needs.

Some rules are checked unit by unit. Others bound a sum over the units of a tier: units used, or
pods beyond whole slices. The tree search carries one number for each such sum, in the order of
`max_sums`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import add, gt

from generator.placement.problem.problem import Problem
from generator.placement.problem.rules import ExclusiveRule, ShortSliceRule, SpreadRule, UnitRule


class TierRules:
    """All rules of a problem, for one choice of pods per group."""

    def __init__(self, problem: Problem, job_pods: Sequence[int]) -> None:
        """Count the running pods per unit.

        Args:
            problem: the request and the cluster.
            job_pods: new pods of the job per shape; a group with rules has a shape of its own.
        """
        self._problem, self._job_pods = problem, job_pods
        self._spread_rules = [
            rule for rule in problem.rules.spread_rules if self._num_new(rule.group)
        ]
        self._running: dict[tuple[int, int], Counter[int]] = {}
        self.max_sums = [
            *(max_units for _, max_units in problem.rules.limits),
            *map(self._max_short_pods, problem.rules.short_slice_rules),
            *map(self._max_new_units, self._spread_rules),
        ]
        """The maximum of each sum. It is negative if running pods already exceed the limit."""

    def _num_new(self, group: int) -> int:
        """Return the new pods of a group, from a number of pods per shape."""
        return self._job_pods[self._problem.shape_of[group]]

    def _running_units(self, group: int, tier: int) -> Counter[int]:
        """Return the running pods of a group per unit of a tier."""
        key = group, tier
        if key not in self._running:
            unit_of = self._problem.snapshot.levels.unit_of_node[tier]
            positions = list(self._problem.own_pods.positions_of[group])
            self._running[key] = Counter(unit_of[positions].tolist())
        return self._running[key]

    def _max_short_pods(self, rule: ShortSliceRule) -> int:
        running = len(self._problem.own_pods.positions_of[rule.group])
        return (running + self._num_new(rule.group)) % rule.size

    def _max_new_units(self, rule: SpreadRule) -> int:
        """Return how many units without a running pod of the group may be used."""
        if rule.most is None:
            return self._num_new(rule.group)
        return rule.most - len(self._running_units(rule.group, rule.tier))

    def _least_new_units(self, rule: SpreadRule) -> int:
        return max(rule.least - len(self._running_units(rule.group, rule.tier)), 0)

    def may_lie_in_one(self, tier: int) -> bool:
        """Return whether rules of higher tiers allow all pods in one unit of this tier."""
        problem, pods = self._problem, self._job_pods
        return (
            min(self.max_sums, default=0) >= 0
            and all(max_units > 0 for limited, max_units in problem.rules.limits if limited > tier)
            and all(
                self._satisfies_unit_rule(
                    rule, len(problem.own_pods.positions_of[rule.group]), pods
                )
                for rule in problem.rules.unit_rules
                if rule.tier > tier
            )
            and all(rule.least <= 1 for rule in self._spread_rules if rule.tier > tier)
            and not any(
                self._is_shared(rule, pods)
                for rule in problem.rules.exclusive_rules
                if rule.tier > tier
            )
        )

    def apply(
        self, tier: int, unit: int, pods: Sequence[int], sums: tuple[int, ...]
    ) -> tuple[int, ...] | None:
        """Return the sums with a unit added, or None if a rule forbids these pods in it.

        Args:
            tier: the tier of the unit.
            unit: its index.
            pods: new pods in it, per shape.
            sums: over the units inside it.
        """
        problem = self._problem
        for unit_rule in problem.rules.unit_rules:
            if unit_rule.tier == tier:
                num_running = self._running_units(unit_rule.group, tier)[unit]
                if not self._satisfies_unit_rule(unit_rule, num_running, pods):
                    return None
        for rule in problem.rules.exclusive_rules:
            if rule.tier == tier and self._is_shared(rule, pods, unit):
                return None
        added = tuple(map(add, sums, self._unit_sums(tier, unit, pods)))
        if any(map(gt, added, self.max_sums)):
            return None
        first = len(added) - len(self._spread_rules)
        # Without a maximum, all numbers of units above the minimum are equivalent.
        capped = (
            num_used if rule.most is not None else min(num_used, self._least_new_units(rule))
            for rule, num_used in zip(self._spread_rules, added[first:], strict=True)
        )
        return (*added[:first], *capped)

    def _unit_sums(self, tier: int, unit: int, pods: Sequence[int]) -> Iterator[int]:
        """Yield what a unit adds to each sum."""
        shape_of = self._problem.shape_of
        for limited_tier, _ in self._problem.rules.limits:
            yield int(limited_tier == tier and any(pods))
        for row in self._problem.rules.short_slice_rules:
            num_pods = self._running_units(row.group, row.tier)[unit] + pods[shape_of[row.group]]
            yield num_pods % row.size if row.tier == tier else 0
        for rule in self._spread_rules:
            is_new = rule.tier == tier and not self._running_units(rule.group, tier)[unit]
            yield int(is_new and pods[shape_of[rule.group]] > 0)

    def are_met(self, tier: int, sums: tuple[int, ...]) -> bool:
        """Return whether the sums of a whole job, in a unit of a tier, reach their minimums."""
        first = len(sums) - len(self._spread_rules)
        return all(
            rule.tier > tier or num_used >= self._least_new_units(rule)
            for rule, num_used in zip(self._spread_rules, sums[first:], strict=True)
        )

    def _satisfies_unit_rule(self, rule: UnitRule, num_running: int, pods: Sequence[int]) -> bool:
        """Return whether these pods per shape, with running pods, satisfy a rule in one unit."""
        num_pods = num_running + pods[self._problem.shape_of[rule.group]]
        return num_pods % rule.multiple == 0 and num_pods <= (rule.max_pods or num_pods)

    def _is_shared(self, rule: ExclusiveRule, pods: Sequence[int], unit: int | None = None) -> bool:
        """Return whether both groups of a rule and other groups have pods in one unit.

        Without a unit, all running pods are in it.
        """
        is_used = [False, False]
        for group, shape in enumerate(self._problem.shape_of):
            running = self._problem.own_pods.positions_of[group]
            num_running = (
                len(running) if unit is None else self._running_units(group, rule.tier)[unit]
            )
            is_used[group in rule.groups] |= pods[shape] > 0 or num_running > 0
        return all(is_used)
