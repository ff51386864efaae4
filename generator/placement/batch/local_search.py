"""Local search over the gangs of a batch: in which order they are placed, and in which domains.

A *trial* removes some gangs and places them again in another order. It is kept if their total cost
improves: for each priority, the highest first, the number of unplaced gangs and then the span. So
no gang gains at the cost of a gang of higher priority, and no placed gang loses its place. A gang
that was placed with an earlier priority moves only to a place that is no worse.

Trials start from a gang that is not placed or may have a smaller span, together with nearby gangs:
pairs, then triples, then shuffles of all of them. Deterministic; ends with the budget, or when no
trial helps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from operator import gt
from typing import Final, NamedTuple, Protocol

from generator.placement.budget import Budget, BudgetExhausted
from generator.placement.cluster.free_capacity import FreeCapacity, NodeUse
from generator.placement.cluster.levels import LEAF_TIER

MAX_NEARBY: Final = 11
"""Nearby gangs that are tried together with one gang."""
MAX_DOMAIN_RANKS: Final = 3
"""Ranks of domains that the first gang of a pair tries."""
MAX_SHUFFLES: Final = 300
"""Orders of all nearby gangs that are tried after pairs and triples."""

Trial = Sequence[tuple["BatchMember", int]]
"""Gangs in the order in which they are placed, each with the rank of its domain."""


class GangPlace(NamedTuple):
    """The place of a gang."""

    positions: tuple[tuple[int, ...], ...]
    """Per group the nodes of its pods, in index order."""
    uses: tuple[NodeUse, ...]
    span: int


class GangPlacer(Protocol):
    """Places one gang in free capacity."""

    @property
    def trial_cost(self) -> int:
        """Cost of one trial in the budget."""

    def place(self, free: FreeCapacity, rank: int) -> GangPlace | None:
        """Return the best place, or the one after `rank` better ones; None if there is none."""


@dataclass(eq=False, slots=True)
class BatchMember:
    """One gang of a batch."""

    priority_rank: int
    """Rank of its priority, 0 is the highest."""
    placer: GangPlacer | None
    """None: the gang is not moved."""
    place: GangPlace | None
    """None: the gang is not placed."""
    min_span: int
    """A lower bound on its span."""
    is_settled: bool = False
    """Whether the member was placed before others came, and may get no worse place for them."""

    @property
    def is_shrinkable(self) -> bool:
        """Whether a smaller span may be possible."""
        return (
            self.place is not None and self.placer is not None and self.place.span > self.min_span
        )


class LocalSearch:
    """The state of one search."""

    def __init__(self, members: Sequence[BatchMember], free: FreeCapacity, budget: Budget) -> None:
        """Store the members, whose pods the free capacity already lacks."""
        self._members = [member for member in members if member.placer is not None]
        self._free, self._budget = free, budget
        self._seed = 1

    def run(self) -> None:
        """Improve the places of members until the budget ends or no trial helps."""
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
        """Return the gangs whose span may shrink, those with most to gain first."""
        shrinkable = [member for member in self._members if member.is_shrinkable]
        return sorted(
            shrinkable,
            key=lambda member: (member.priority_rank, member.min_span - _span_of(member)),
        )

    def _improve(self, member: BatchMember) -> bool:
        """Run trials for a member; return whether one helped."""
        if member.place is not None and not member.is_shrinkable:
            return False
        nearby = self._nearby_members(member)
        return any(self._try_order(trial) for trial in self._trials(member, nearby))

    def _trials(self, member: BatchMember, nearby: Sequence[BatchMember]) -> Iterator[Trial]:
        yield [(member, 0)]
        for other in nearby:
            for rank in range(MAX_DOMAIN_RANKS):
                yield [(member, rank), (other, 0)]
                yield [(other, rank), (member, 0)]
        for pair in combinations(nearby, 2):
            for order in permutations((member, *pair)):
                yield [(tried, 0) for tried in order]
        for _ in range(MAX_SHUFFLES if len(nearby) > 2 else 0):  # noqa: PLR2004 - triples saw all orders
            yield self._shuffle([member, *nearby])

    def _shuffle(self, members: list[BatchMember]) -> Trial:
        """Return members in an order, and with ranks, drawn from a fixed sequence."""
        remaining, order = list(members), []
        while remaining:
            order.append(
                (remaining.pop(self._next_random(len(remaining))), max(0, self._next_random(6) - 3))
            )
        return order

    def _next_random(self, below: int) -> int:
        """Return the next number of Knuth's linear congruential sequence, from its high bits."""
        self._seed = (self._seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self._seed >> 33) % below

    def _nearby_members(self, member: BatchMember) -> list[BatchMember]:
        """Return the gangs nearest to one: in its leaves, in its wider domains, of similar size."""
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
        unit_of_node = self._free.levels.unit_of_node
        return {
            (tier, unit_of_node[tier].item(use.node))
            for use in member.place.uses
            for tier in range(LEAF_TIER, self._free.levels.root)
        }

    def _is_worse(self, member: BatchMember, place: GangPlace) -> bool:
        """Return whether a settled member would get a larger span, or a higher tier for pods."""
        if not member.is_settled or member.place is None:
            return False
        now, then = self._tiers_of(place), self._tiers_of(member.place)
        return place.span > member.place.span or any(map(gt, now, then))

    def _tiers_of(self, place: GangPlace) -> list[int]:
        """Return the tier of the domain of all pods, then that of each group."""
        rows = [[use.node for use in place.uses], *filter(None, place.positions)]
        return [self._free.levels.common_tier(min(nodes), max(nodes)) for nodes in rows]

    def _try_order(self, order: Trial) -> bool:
        """Try an order; return whether it is better and therefore kept."""
        self._budget.spend(sum(member.placer.trial_cost for member, _ in order if member.placer))
        mark = len(self._free.changes)
        for member, _ in order:
            for use in () if member.place is None else member.place.uses:
                self._free.change(use._replace(num_pods=-use.num_pods))
        places = self._place_in_order(order)
        if places is None:
            self._free.undo(mark)
            return False
        for (member, _), place in zip(order, places, strict=True):
            member.place = place
        return True

    def _place_in_order(self, order: Trial) -> list[GangPlace | None] | None:
        """Place gangs in an order; None if a gang loses its place, or the cost cannot improve.

        Gangs that are not placed yet count with the least span that they may have.
        """
        cost = _cost_by_priority(order, [member.place and member.place.span for member, _ in order])
        spans: list[int | None] = [member.min_span for member, _ in order]
        places: list[GangPlace | None] = []
        for index, (member, rank) in enumerate(order):
            place = member.placer.place(self._free, rank) if member.placer else member.place
            if member.place is not None and (place is None or self._is_worse(member, place)):
                return None
            places.append(place)
            spans[index] = place and place.span
            if _cost_by_priority(order, spans) >= cost:
                return None
            for use in () if place is None else place.uses:
                self._free.change(use)
        return places


def _cost_by_priority(order: Trial, spans: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return (gangs without a place, span) per priority, the highest first.

    Args:
        order: the gangs.
        spans: per gang; None without a place.
    """
    totals: dict[int, tuple[int, int]] = {}
    for (member, _), span in zip(order, spans, strict=True):
        num_unplaced, total_span = totals.get(member.priority_rank, (0, 0))
        if span is None:
            totals[member.priority_rank] = (num_unplaced + 1, total_span)
        else:
            totals[member.priority_rank] = (num_unplaced, total_span + span)
    return [totals[rank] for rank in sorted(totals)]


def _span_of(member: BatchMember) -> int:
    return 0 if member.place is None else member.place.span
