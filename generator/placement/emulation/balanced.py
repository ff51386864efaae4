"""Even shares over few domains, for a group that prefers a tier: Kueue's balanced placement.

Inside each domain above the preferred tier the pods could be shared among so many smaller domains
that each takes at least T of them; the largest T wins, then the fewest domains. What holds less
than T is left out, of the rest the fewest and smallest are taken, and all get T before any gets
more. Everything is counted in whole slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import NamedTuple

import numpy as np

from generator.placement.cluster.levels import Ints
from generator.placement.problem.domain_capacity import Rooms, inside, text_ranks
from generator.placement.solve.budget import Effort


class Share(NamedTuple):
    """What one domain takes."""

    tier: int
    unit: int
    num_pods: int
    leads: bool
    """Whether the leader goes there."""


class _Choice(NamedTuple):
    """How one domain above the preferred tier would share the pods."""

    threshold: int
    num_domains: int
    units: Ints
    """Domains of the shared tier that hold enough."""


class _State(NamedTuple):
    """Domains taken so far."""

    many: int
    is_led: bool
    holds: int
    """Slices that fit them, beside the leader where he is among them."""
    size: int
    """The same without a leader."""

    def plus(self, holds: int, size: int, *, is_led: bool = False) -> _State:
        """Return the state with one more domain."""
        return _State(self.many + 1, self.is_led or is_led, self.holds + holds, self.size + size)


class Balancing:
    """The even shares of one group."""

    def __init__(self, rooms: Rooms, preferred: int, num_pods: int, effort: Effort) -> None:
        """Count slices; nothing is chosen yet."""
        self._rooms, self._effort = rooms, effort
        self._preferred, self._size = preferred, rooms.slice_size
        self._needed = num_pods // self._size
        self._shared = max(preferred - 1, rooms.slice_tier)
        self._levels = rooms.problem.snapshot.levels
        self._text = [text_ranks(rooms.problem, tier) for tier in range(self._levels.root + 1)]

    def shares(self) -> list[Share] | None:
        """Return even shares, None where there are none.

        Raises:
            EffortSpent: the budget ended.
        """
        above = min(self._preferred + 1, self._levels.root)
        choices = [
            (-choice.threshold, choice.num_domains, int(self._text[above][unit]), choice)
            for unit in range(len(self._levels.starts[above]))
            if (choice := self._choice(above, unit)) is not None
        ]
        if not choices:
            return None
        choice = min(choices, key=lambda row: row[:3])[3]
        outer = self._fewest(self._preferred, self._outer_counts(choice.units), is_even=True)
        if outer is None:
            return None
        units = choice.units[np.isin(self._outer(choice.units), outer)]
        counts = {int(unit): self._counts(self._shared, unit) for unit in units}
        chosen = self._fewest(self._shared, counts, is_even=False)
        return None if chosen is None else self._given(chosen, choice.threshold)

    def _counts(self, tier: int, unit: int) -> tuple[int, int]:
        """Return whole slices in a unit, and beside the leader; -1 where he does not fit."""
        led = int(self._rooms.led[tier][unit])
        beside = -1 if led < 0 else led // self._size
        return int(self._rooms.fits[tier][unit]) // self._size, beside

    def _choice(self, above: int, unit: int) -> _Choice | None:
        """Return how a domain above the preferred tier would share, None where it cannot."""
        units = inside(self._rooms.problem, above, unit, self._shared)
        rows = [self._counts(self._shared, at) for at in units]
        first, last = self._greedy(rows)
        if not first:
            return None
        threshold = min(self._needed // first, last)
        if self._rooms.has_leader:
            threshold = min(threshold, max(beside for _, beside in rows))
        if threshold < 1:
            return None
        kept = np.array([at for at, row in zip(units, rows, strict=True) if row[0] >= threshold])
        num_domains, _ = self._greedy(list(self._outer_counts(kept).values()))
        return _Choice(threshold, num_domains, kept) if num_domains else None

    def _greedy(self, rows: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return how many of the largest domains hold everything, and what the last one holds."""
        order = sorted(range(len(rows)), key=lambda at: -rows[at][0])
        if self._rooms.has_leader:
            capable = [at for at in order if rows[at][1] >= 0]
            if not capable:
                return 0, 0
            first = max(capable, key=lambda at: rows[at][1])
            order = [first, *(at for at in order if at != first)]
        left = self._needed
        for number, at in enumerate(order, start=1):
            holds = rows[at][1] if self._rooms.has_leader and number == 1 else rows[at][0]
            left -= holds
            if left <= 0:
                return number, holds
        return 0, 0

    def _outer(self, units: Ints) -> Ints:
        """Return the domain of the preferred tier around each unit."""
        starts = self._levels.starts[self._shared][units]
        return self._levels.unit[self._preferred][starts]

    def _outer_counts(self, units: Ints) -> dict[int, tuple[int, int]]:
        """Return what each domain of the preferred tier holds in these units."""
        found: dict[int, tuple[int, int]] = {}
        for unit, over in zip(units, self._outer(units), strict=True):
            whole, beside = self._counts(self._shared, int(unit))
            known, led = found.get(int(over), (0, -1))
            options = [led + whole] if led >= 0 else []
            options += [known + beside] if beside >= 0 else []
            found[int(over)] = (known + whole, max(options, default=-1))
        return found

    def _fewest(
        self, tier: int, counts: dict[int, tuple[int, int]], *, is_even: bool
    ) -> list[int] | None:
        """Return the fewest, then smallest units that hold everything; the leader's comes first.

        Among equals those come first whose own parts are most alike, or else by name.
        """
        order = sorted(
            counts,
            key=lambda at: (self._unevenness(tier, at) if is_even else 0, self._text[tier][at]),
        )
        has_leader = self._rooms.has_leader
        states: dict[_State, tuple[int, ...]] = {_State(0, not has_leader, 0, 0): ()}
        for at in order:
            self._effort.spend(len(states))
            whole, beside = counts[at]
            for state, chosen in list(states.items()):
                if state.holds >= self._needed and state.is_led:
                    continue
                states.setdefault(state.plus(whole, whole), (*chosen, at))
                if not state.is_led and beside >= 0:
                    states.setdefault(state.plus(beside, whole, is_led=True), (at, *chosen))
        done = [state for state in states if state.is_led and state.holds >= self._needed]
        if not done:
            return None
        return list(states[min(done, key=lambda state: (state.many, state.size))])

    def _unevenness(self, tier: int, unit: int) -> float:
        """Return the negated entropy of what the parts of a unit hold."""
        if tier == 0:
            return 0.0
        span = self._levels.children(tier, unit)
        fits = self._rooms.fits[tier - 1][span.start : span.stop]
        parts = fits[fits > 0] / max(int(fits.sum()), 1)
        return round(sum(float(part) * log2(float(part)) for part in parts), 9)

    def _given(self, units: Sequence[int], threshold: int) -> list[Share] | None:
        """Return the threshold for each unit, and the rest to the largest ones first."""
        most = {unit: self._counts(self._shared, unit)[0] for unit in units}
        leader = units[0] if self._rooms.has_leader else None
        if leader is not None:
            most[leader] = self._counts(self._shared, leader)[1]
        left = self._needed - threshold * len(units)
        if left < 0 or min(most.values()) < threshold:
            return None
        order = sorted(units, key=lambda at: (-most[at], self._text[self._shared][at]))
        shares = []
        for unit in order:
            more = min(most[unit] - threshold, left)
            left -= more
            num_pods = (threshold + more) * self._size
            shares.append(Share(self._shared, unit, num_pods, unit == leader))
        return shares if left == 0 else None
