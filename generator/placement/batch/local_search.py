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

from generator.placement.batch.free_index import Tallies
from generator.placement.batch.move import Mover, Place
from generator.placement.solve.budget import Effort, EffortSpent

NEAR: Final = 11
"""Gangs that are tried together with one."""
RANKS: Final = 3
"""Choices of domain that the first of a pair tries."""
SHUFFLES: Final = 300
"""Orders of all gangs near one that are tried after pairs and triples."""

Try = Sequence[tuple["Member", int]]
"""Gangs in the order in which they are placed, each with the rank of its choice."""


@dataclass(eq=False, slots=True)
class Member:
    """One gang of a batch."""

    level: int
    """Rank of its priority, 0 the highest."""
    mover: Mover | None
    """None: it stays where it is."""
    place: Place | None
    """None: it has none yet."""
    least: int
    """Span that it cannot be below."""

    @property
    def is_wide(self) -> bool:
        """Whether it may span less than it does."""
        return self.place is not None and self.mover is not None and self.place.span > self.least


class Rearranging:
    """The search under way."""

    def __init__(self, members: Sequence[Member], tallies: Tallies, effort: Effort) -> None:
        """Begin with members where they are, taken off the tallies already."""
        self._members = [member for member in members if member.mover is not None]
        self._tallies, self._effort = tallies, effort
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
                for member in self._wide():
                    helped |= self._improve(member)
        except EffortSpent:
            return

    def _wide(self) -> list[Member]:
        """Return gangs that may span less, those with most to gain first."""
        wide = [member for member in self._members if member.is_wide]
        return sorted(wide, key=lambda member: (member.level, member.least - _span(member)))

    def _improve(self, member: Member) -> bool:
        """Return whether a try helped."""
        if member.place is not None and not member.is_wide:
            return False
        near = self._near(member)
        return any(self._keeps(one) for one in self._tries(member, near))

    def _tries(self, member: Member, near: Sequence[Member]) -> Iterator[Try]:
        yield [(member, 0)]
        for other in near:
            for rank in range(RANKS):
                yield [(member, rank), (other, 0)]
                yield [(other, rank), (member, 0)]
        for pair in combinations(near, 2):
            for order in permutations((member, *pair)):
                yield [(one, 0) for one in order]
        for _ in range(SHUFFLES if len(near) > 2 else 0):  # noqa: PLR2004 - triples saw all orders
            yield self._shuffled([member, *near])

    def _shuffled(self, members: list[Member]) -> Try:
        """Return members in an order, and with ranks, drawn from a fixed sequence."""
        left, order = list(members), []
        while left:
            order.append((left.pop(self._drawn(len(left))), max(0, self._drawn(6) - 3)))
        return order

    def _drawn(self, below: int) -> int:
        """Return the next number of Knuth's linear congruential sequence, from its high bits."""
        self._seed = (self._seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._seed >> 33) % below

    def _near(self, member: Member) -> list[Member]:
        """Return the gangs nearest to one: in its leaves, in its wider domains, near its size."""
        others = [other for other in self._members if other is not member]
        self._effort.spend(1 + len(others) // 50)
        if len(others) <= NEAR:
            return others
        units = self._units(member)
        size = _span(member)

        def distance(other: Member) -> tuple[int, int]:
            shared = len(units & self._units(other))
            return -shared, abs(_span(other) - size)

        return sorted(others, key=distance)[:NEAR]

    def _units(self, member: Member) -> set[tuple[int, int]]:
        if member.place is None:
            return set()
        tallies = self._tallies
        return {
            (tier, tallies.unit[tier][use.spot])
            for use in member.place.uses
            for tier in range(tallies.lowest, len(tallies.unit) - 1)
        }

    def _keeps(self, order: Try) -> bool:
        """Try an order; return whether it is better, and so kept."""
        self._effort.spend(sum(member.mover.price for member, _ in order if member.mover))
        before = [member.place for member, _ in order]
        for place in before:
            if place is not None:
                self._tallies.give(place.uses)
        found = self._placed(order)
        if found is not None and self._worth(order, found) < self._worth(order, before):
            for (member, _), place in zip(order, found, strict=True):
                member.place = place
            return True
        for place in found or ():
            if place is not None:
                self._tallies.give(place.uses)
        for place in before:
            if place is not None:
                self._tallies.take(place.uses)
        return False

    def _placed(self, order: Try) -> list[Place | None] | None:
        """Place gangs in an order; None, and nothing taken, where one loses its place."""
        found: list[Place | None] = []
        for member, rank in order:
            place = member.mover.place(self._tallies, rank) if member.mover else member.place
            if place is None and member.place is not None:
                for other in found:
                    if other is not None:
                        self._tallies.give(other.uses)
                return None
            found.append(place)
            if place is not None:
                self._tallies.take(place.uses)
        return found

    def _worth(self, order: Try, places: Sequence[Place | None]) -> list[tuple[int, int]]:
        """Return (gangs without a place, span) per priority, the highest first."""
        levels = sorted({member.level for member, _ in order})
        worth = []
        for level in levels:
            rows = [p for (m, _), p in zip(order, places, strict=True) if m.level == level]
            placed = [place for place in rows if place is not None]
            worth.append((len(rows) - len(placed), sum(place.span for place in placed)))
        return worth


def _span(member: Member) -> int:
    return 0 if member.place is None else member.place.span
