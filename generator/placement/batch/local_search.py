"""Local search over the gangs of a batch: who goes first, and who takes the second-best domain.

A *try* takes some gangs off and places them anew in another order. It is kept where what they
are worth together is better: gangs placed and span, priority by priority from the highest on,
so that no gang gains at the cost of a higher one. Nothing that has a place loses it.

Tries go from a gang that spans more than it must, with the gangs near it: pairs, triples, then
shuffles of all of them. Deterministic; ends with the budget, or when no try helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final

from generator.placement.batch.free_index import FreeIndex
from generator.placement.batch.move import GangPlacer, GangPlace
from generator.placement.solve.budget import Budget, BudgetExhausted

MAX_NEARBY: Final = 11
"""Gangs that are tried together with one."""
MAX_DOMAIN_RANKS: Final = 3
"""Choices of domain that the first of a pair tries."""
MAX_SHUFFLES: Final = 300
"""Orders of all gangs near one that are tried after pairs and triples."""

Trial = Sequence[tuple["Member", int]]
"""Gangs in the order in which they are placed, each with the rank of its choice."""


@dataclass(eq=False, slots=True)
class BatchMember:
    """One gang of a batch."""

    priority_rank: int
    """Rank of its priority, 0 the highest."""
    placer: GangPlacer | None
    """None: it stays where it is."""
    place: GangPlace | None
    """None: it has none yet."""
    min_span: int
    """Span that it cannot be below."""

    @property
    def is_shrinkable(self) -> bool:
        """Whether it may span less than it does."""
        return (
            self.place is not None and self.placer is not None and self.place.span > self.min_span
        )


class LocalSearch:
    """The search under way."""

    def __init__(self, members: Sequence[BatchMember], tallies: FreeIndex, effort: Budget) -> None:
        """Begin with members where they are, taken off the tallies already."""
        self._members = [member for member in members if member.placer is not None]
        self._free_index, self._budget = tallies, effort
        self._seed = 1

    def run(self) -> None:
        """Change the places of members for the better until the budget ends or nothing helps."""
        try:
            for member in self._members:
                if member.place is None:
                    self._improve(member)
            helped = True
            while helped:
                helped = False
                for member in self._shrinkable_members():
                    helped |= self._improve(member)
        except BudgetExhausted:
            return

    def _shrinkable_members(self) -> list[BatchMember]:
        """Return gangs that may span less, those with most to gain first."""
        wide = [member for member in self._members if member.is_shrinkable]
        return sorted(
            wide, key=lambda member: (member.priority_rank, member.min_span - _span_of(member))
        )

    def _improve(self, member: BatchMember) -> bool:
        """Return whether a try helped."""
        if member.place is not None and not member.is_shrinkable:
            return False
        near = self._nearby_members(member)
        return any(self._try_order(one) for one in self._trials(member, near))

    def _trials(self, member: BatchMember, near: Sequence[BatchMember]) -> Iterator[Trial]:
        yield [(member, 0)]
        for other in near:
            for rank in range(MAX_DOMAIN_RANKS):
                yield [(member, rank), (other, 0)]
                yield [(other, rank), (member, 0)]
        for pair in combinations(near, 2):
            for order in permutations((member, *pair)):
                yield [(one, 0) for one in order]
        for _ in range(MAX_SHUFFLES if len(near) > 2 else 0):  # noqa: PLR2004 - triples saw all orders
            yield self._shuffle([member, *near])

    def _shuffle(self, members: list[BatchMember]) -> Trial:
        """Return members in an order, and with ranks, drawn from a fixed sequence."""
        left, order = list(members), []
        while left:
            order.append((left.pop(self._next_random(len(left))), max(0, self._next_random(6) - 3)))
        return order

    def _next_random(self, below: int) -> int:
        """Return the next number of Knuth's linear congruential sequence, from its high bits."""
        self._seed = (self._seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._seed >> 33) % below

    def _nearby_members(self, member: BatchMember) -> list[BatchMember]:
        """Return the gangs nearest to one: in its leaves, in its wider domains, near its size."""
        others = [other for other in self._members if other is not member]
        self._budget.spend(1 + len(others) // 50)
        if len(others) <= MAX_NEARBY:
            return others
        units = self._units_used(member)
        size = _span_of(member)

        def distance(other: BatchMember) -> tuple[int, int]:
            shared = len(units & self._units_used(other))
            return -shared, abs(_span_of(other) - size)

        return sorted(others, key=distance)[:MAX_NEARBY]

    def _units_used(self, member: BatchMember) -> set[tuple[int, int]]:
        if member.place is None:
            return set()
        tallies = self._free_index
        return {
            (tier, tallies.unit_of_spot[tier][use.spot])
            for use in member.place.spot_uses
            for tier in range(tallies.leaf_tier, len(tallies.unit_of_spot) - 1)
        }

    def _try_order(self, order: Trial) -> bool:
        """Try an order; return whether it is better, and so kept."""
        self._budget.spend(sum(member.placer.trial_cost for member, _ in order if member.placer))
        before = [member.place for member, _ in order]
        for place in before:
            if place is not None:
                self._free_index.give_back(place.spot_uses)
        found = self._place_in_order(order)
        if found is not None and self._cost_by_priority(order, found) < self._cost_by_priority(
            order, before
        ):
            for (member, _), place in zip(order, found, strict=True):
                member.place = place
            return True
        for place in found or ():
            if place is not None:
                self._free_index.give_back(place.spot_uses)
        for place in before:
            if place is not None:
                self._free_index.take(place.spot_uses)
        return False

    def _place_in_order(self, order: Trial) -> list[GangPlace | None] | None:
        """Place gangs in an order; None, and nothing taken, where one loses its place."""
        found: list[GangPlace | None] = []
        for member, rank in order:
            place = member.placer.place(self._free_index, rank) if member.placer else member.place
            if place is None and member.place is not None:
                for other in found:
                    if other is not None:
                        self._free_index.give_back(other.spot_uses)
                return None
            found.append(place)
            if place is not None:
                self._free_index.take(place.spot_uses)
        return found

    def _cost_by_priority(
        self, order: Trial, places: Sequence[GangPlace | None]
    ) -> list[tuple[int, int]]:
        """Return (gangs without a place, span) per priority, the highest first."""
        levels = sorted({member.priority_rank for member, _ in order})
        worth = []
        for level in levels:
            rows = [p for (m, _), p in zip(order, places, strict=True) if m.priority_rank == level]
            placed = [place for place in rows if place is not None]
            worth.append((len(rows) - len(placed), sum(place.span for place in placed)))
        return worth


def _span_of(member: BatchMember) -> int:
    return 0 if member.place is None else member.place.span
