"""A batch that was placed one after the other, as members that may be rearranged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from generator.placement.answer import Placement, ReasonKind
from generator.placement.batch.free_index import SPAN_FACTOR, Need, Tallies, fewest_largest
from generator.placement.batch.local_search import Member
from generator.placement.batch.move import Gathered, Mover, Searched, is_gathered, place_of
from generator.placement.batch.pack_heuristic import Row
from generator.placement.batch.sequential import Turn
from generator.placement.cluster.levels import Ints
from generator.placement.cluster.shape import Shape
from generator.placement.cluster.snapshot import Snapshot, seen_by
from generator.placement.presets import Preset
from generator.placement.problem.objective import measure
from generator.placement.problem.problem import Problem, build_problem
from generator.placement.request import PlacementRequest

NODE_PRICE = 3
"""What gathering a group costs where nodes have to be told apart, in gangs gathered by leaves."""
NOBODY = ""
"""A name that no gang has: under it no running pods are a gang's own."""
MENDABLE = frozenset({ReasonKind.NO_FIT, ReasonKind.NO_DOMAIN, ReasonKind.LIMIT})
"""Reasons that other places of other gangs may take away."""

Pods = tuple[tuple[int, ...], ...]
"""Per group positions of nodes."""


@dataclass(frozen=True, slots=True)
class _Look:
    """What gangs have in common whose requests differ by name only."""

    before: Problem
    """Met with the snapshot before the batch."""
    shapes: tuple[Shape, ...]
    """Per group, met with the snapshot after the turn; none: the gang is searched."""
    kept: Ints | None
    """What others have reserved."""


class Enrolling:
    """The members of one batch, and the tallies that they are on."""

    def __init__(self, turn: Turn, *, keeps_tiers: bool) -> None:
        """Look at every gang; with `keeps_tiers` none may get a higher tier than in turn."""
        self._turn, self._keeps_tiers = turn, keeps_tiers
        self._looks: dict[PlacementRequest, _Look] = {}
        rows = list(zip(turn.requests, turn.placements, strict=True))
        looks = [None if self._stays(*row) else self._look(row[0]) for row in rows]
        self.tallies = Tallies(turn.after, _only_shape([look for look in looks if look]))
        priorities = sorted({request.priority for request in turn.requests}, reverse=True)
        self.members = [
            self._member(request, found, look, priorities.index(request.priority))
            for (request, found), look in zip(rows, looks, strict=True)
        ]
        """One per gang, in the order of the turn."""

    def _stays(self, request: PlacementRequest, found: Placement) -> bool:
        """Return whether a gang is left where it is, or without a place."""
        return (
            request.preset is not Preset.OPTIMAL
            or bool(request.strategies)
            or request.gang in self._turn.before.running
            or bool(found.victims)
            or (found.reason is not None and found.reason.kind not in MENDABLE)
        )

    def _look(self, request: PlacementRequest) -> _Look:
        nominated = self._turn.before.nominated
        key = request if nominated else replace(request, gang=NOBODY, priority=0, deadline_s=None)
        if key not in self._looks:
            self._looks[key] = self._made_look(request)
        return self._looks[key]

    def _made_look(self, request: PlacementRequest) -> _Look:
        turn, nameless = self._turn, request.named(NOBODY)
        before = seen_by(turn.before, request.gang, request.priority)
        kept = None if before.free is turn.before.free else turn.before.free - before.free
        problem = build_problem(before, nameless)
        shapes: tuple[Shape, ...] = ()
        if is_gathered(problem):
            after = build_problem(seen_by(turn.after, request.gang, request.priority), nameless)
            shapes = tuple(after.shapes[at] for at in after.shape_of)
        return _Look(problem, shapes, kept)

    def _member(
        self, request: PlacementRequest, found: Placement, look: _Look | None, level: int
    ) -> Member:
        if not found.is_feasible:
            mover = None if look is None else self._mover(request, look, None)
            return Member(level, mover, None, 0)
        pods = positions(self._turn.after, request, found)
        place = place_of(self.tallies, self._needs(request), pods)
        if look is None:
            return Member(level, None, place, place.span)
        least = _least(look, list(map(len, pods)))
        return Member(level, self._mover(request, look, pods), place, least)

    def _needs(self, request: PlacementRequest) -> tuple[Need, ...]:
        return tuple(self.tallies.need(dict(group.request)) for group in request.groups)

    def _mover(self, request: PlacementRequest, look: _Look, pods: Pods | None) -> Mover | None:
        least = [group.count if group.least == group.count else 0 for group in request.groups]
        counts = least if pods is None else [len(row) for row in pods]
        if look.shapes and all(counts):
            views = [self.tallies.view(shape, look.kept) for shape in look.shapes]
            highest = look.before.job_cap
            if self._keeps_tiers and pods is not None:
                highest = _tier(look, pods)
            cap = max(highest - 1 + self.tallies.lowest, 0)
            price = NODE_PRICE * len(views) if self.tallies.lowest else 1
            return Gathered(tuple(map(Row, views, counts)), cap, price)
        if self.tallies.lowest == 0:
            return None  # a search wants nodes, and these tallies tell of leaves alone
        worst = None if pods is None else measure(look.before, pods, 0)
        nameless = request.named(NOBODY)
        return Searched(look.before.snapshot, nameless, look.kept, self._needs(request), worst)


def positions(snapshot: Snapshot, request: PlacementRequest, found: Placement) -> Pods:
    """Return per group the positions of the placed pods of an answer, in index order."""
    rows = (found.assignment[group.name] for group in request.groups)
    return tuple(tuple(snapshot.position[node] for node in row if node is not None) for row in rows)


def _only_shape(looks: Sequence[_Look]) -> Shape | None:
    """Return the shape of all gangs that may move, None where they differ or have bounds."""
    shapes = {look.shapes for look in looks}
    is_plain = len(shapes) == 1 and all(look.kept is None for look in looks)
    only = next(iter(shapes), ())
    return only[0] if is_plain and len(only) == 1 else None


def _tier(look: _Look, pods: Pods) -> int:
    """Return the tier of the lowest unit around pods."""
    placed = [at for row in pods for at in row]
    return look.before.snapshot.levels.common(min(placed), max(placed))


def _least(look: _Look, counts: Sequence[int]) -> int:
    """Return a span that so many pods per group cannot be below before the batch.

    As if each group could have the largest units of each tier.
    """
    least, weight = 0, 1
    for tier in range(1, look.before.root):
        shapes = (look.before.shapes[at] for at in look.before.shape_of)
        each = (fewest_largest(s.rooms[tier], n) for s, n in zip(shapes, counts, strict=True))
        least += weight * max(1, *each)
        weight *= SPAN_FACTOR
    return least
