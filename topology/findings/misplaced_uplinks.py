"""Cables between switches in the wrong port: to another pod, or to another switch of the pod."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cache

import numpy as np

from topology.findings.group_columns import NO_GROUP, GroupColumns
from topology.findings.port_cohorts import find_odd_uplinks
from topology.findings.swap_pairs import GroupOrRail, MisplacedCable, PairScore, UpperEnds
from topology.findings.usual_counts import find_most_frequent
from topology.model.fabric import Fabric
from topology.model.lazy_rows import rows_at
from topology.planes.cables import Edge
from topology.planes.plane import Plane


def find_misplaced_uplinks(
    plane: Plane, groups: GroupColumns, upper_ends: UpperEnds
) -> list[MisplacedCable]:
    """Return cables to switches of another pod, without those of a switch that may belong there.

    The cables below a switch put it into its domain. If more of its cables above lead to another
    pod than to its own, which of them are in the wrong place is undecided, so no exchange is
    proposed.
    """
    cables = list(_find_foreign_cables(plane, groups))
    moves = Counter((cable.edge.a, cable.actual) for cable in cables)

    @cache
    def count_home(low: int, expected: GroupOrRail) -> int:
        uppers = (switch for switch, _, _ in upper_ends.list_cables(low))
        return sum(groups.switch_group[upper] == expected for upper in uppers)

    return [
        cable
        for cable in cables
        if (num := moves[cable.edge.a, cable.actual]) == 1  # one cable suggests no domain
        or num <= count_home(cable.edge.a, cable.expected)
    ]


def _find_foreign_cables(plane: Plane, groups: GroupColumns) -> Iterator[MisplacedCable]:
    """Yield cables from a switch to switches of another pod, on the rank of its own parent."""
    a, b, _, _ = plane.switch_edges.columns
    for low, high, is_turned in ((a, b, False), (b, a, True)):
        expected, actual = groups.parents[groups.switch_group[low]], groups.switch_group[high]
        is_misplaced = (expected != NO_GROUP) & (actual != NO_GROUP) & (expected != actual)
        cable_indices = np.flatnonzero(
            is_misplaced & (groups.ranks[expected] == groups.ranks[actual])
        ).tolist()
        for cable_index, edge in zip(
            cable_indices, rows_at(plane.switch_edges, cable_indices), strict=True
        ):
            yield MisplacedCable(
                Edge(edge.b, edge.a, edge.b_port, edge.a_port) if is_turned else edge,
                int(expected[cable_index]),
                int(actual[cable_index]),
            )


def find_crossed_uplinks(
    fabric: Fabric, plane: Plane, groups: GroupColumns, upper_ends: UpperEnds
) -> list[MisplacedCable]:
    """Return cables to another switch of the right pod, sorted."""
    odd = list(find_odd_uplinks(fabric, plane, groups))
    if not odd:  # without any, counting all cables is wasted
        return []
    return sorted(
        {
            *_find_miscounted_uplinks(plane, groups, odd),
            *_find_exchanged_uplinks(upper_ends, odd),
        }
    )


def _find_miscounted_uplinks(
    plane: Plane, groups: GroupColumns, odd: Sequence[tuple[Edge, int]]
) -> Iterator[MisplacedCable]:
    """Yield the cables of a switch that has one switch above too often, and lacks another.

    A switch that has the usual number of cables to each switch above, at other ports than its
    peers, is cabled as somebody planned it. If it lacks one and has another too often, the cables
    in between are in two swaps or more.

    Args:
        plane: the cables.
        groups: the groups of the plane.
        odd: cables at ports where most peers have another switch above, with that switch.
    """
    counts = plane.switch_edges.pairs_both_ways.by_left

    @cache
    def find_usual(high: int) -> int:
        group = groups.switch_group[high]
        lows = (low for low in counts[high] if groups.parents[groups.switch_group[low]] == group)
        return find_most_frequent(Counter(counts[high][low] for low in lows))

    moves: dict[int, list[tuple[Edge, int]]] = defaultdict(list)
    for edge, expected in odd:
        moves[edge.a].append((edge, expected))
    for low, own in moves.items():
        present = counts[low]
        lacking = {high for _, high in own if present.get(high, 0) < find_usual(high)}
        doubled = {edge.b for edge, _ in own if present[edge.b] > find_usual(edge.b)}
        steps = [(expected, edge.b) for edge, expected in own]
        after = _reach(lacking, steps)
        before = _reach(doubled, [(end, start) for start, end in steps])
        for edge, expected in own:
            if expected in after and edge.b in before:
                yield _misplaced_uplink(edge, expected)


def _find_exchanged_uplinks(
    upper_ends: UpperEnds, odd: Sequence[tuple[Edge, int]]
) -> Iterator[MisplacedCable]:
    """Yield the cables of two switches that each have the usual port of the other one above.

    The ports at both ends show these, also if several swaps leave a switch with the usual number
    of cables to each switch above.
    """
    by_move: dict[tuple[int, int], list[MisplacedCable]] = defaultdict(list)
    for edge, expected in odd:
        by_move[expected, edge.b].append(_misplaced_uplink(edge, expected))
    for (expected, actual), cables in by_move.items():
        for cable in cables:
            others = (
                one for one in by_move.get((actual, expected), ()) if one.edge.a != cable.edge.a
            )
            if any(upper_ends.are_exchanged(cable, other) for other in others):
                yield cable


def _misplaced_uplink(edge: Edge, expected: int) -> MisplacedCable:
    return MisplacedCable(edge, f"switch {expected}", f"switch {edge.b}")


def _reach(starts: Collection[int], steps: Sequence[tuple[int, int]]) -> set[int]:
    """Return the switches that steps lead to, also one after another, and the starts."""
    found, num = {*starts}, -1
    while num != len(found):
        num = len(found)
        found |= {end for start, end in steps if start in found}
    return found


def score_uplinks(upper_ends: UpperEnds) -> PairScore:
    """Return the score of two up-links: each switch should lack the cable that the other has."""

    def score(first: MisplacedCable, second: MisplacedCable) -> tuple[int, ...] | None:
        if upper_ends.are_refuted(first, second):
            return None
        return (
            upper_ends.count_unsupported(first, second),
            upper_ends.count_present(first, second),
        )

    return score
