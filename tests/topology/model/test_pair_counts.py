"""Counting pairs as arrays gives the same result as counting them one by one."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from topology.model.pair_counts import count_pairs
from topology.planes.cables import Edge, EdgeColumns, EdgeRows, pairs_both_ways, pairs_of

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 3)), max_size=30)


def nested(counter: Counter[tuple[int, int]]) -> dict[int, dict[int, int]]:
    """Return counts as left to right to count, ascending."""
    rows: dict[int, dict[int, int]] = {}
    for (one, other), count in sorted(counter.items()):
        rows.setdefault(one, {})[other] = count
    return rows


@given(PAIRS)
@limits(max_examples=50)
def test_it_counts_like_a_counter(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.intp).reshape(-1, 3)
    wanted, weighted = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for left, right, times in rows:
        wanted[left, right] += 1
        weighted[left, right] += times
    assert count_pairs(table[:, 0], table[:, 1]).by_left() == nested(wanted)
    pairs = count_pairs(table[:, 0], table[:, 1], table[:, 2])
    assert pairs.by_left() == nested(weighted)
    assert [list(row) for row in pairs.by_left().values()] == [
        sorted(row) for row in pairs.by_left().values()
    ]


@given(PAIRS, st.sets(st.integers(0, 5)))
@limits(max_examples=50)
def test_it_counts_pairs_with_chosen_numbers(
    rows: list[tuple[int, int, int]], chosen: set[int]
) -> None:
    table = np.array(rows, np.intp).reshape(-1, 3)
    is_chosen = np.array([number in chosen for number in range(6)])
    counts = count_pairs(table[:, 0], table[:, 1]).count_to(is_chosen)
    assert counts.tolist() == [
        sum(one == number and other in chosen for one, other, _ in rows) for number in range(6)
    ]


def test_it_selects_pairs_by_flags_and_by_indices() -> None:
    pairs = count_pairs(np.array([3, 1, 3]), np.array([4, 2, 4]))
    assert pairs.where(pairs.counts > 1).by_left() == {3: {4: 2}}
    assert pairs.where(np.array([0])).by_left() == {1: {2: 1}}


@given(PAIRS)
@limits(max_examples=30)
def test_it_counts_edges_alike_as_rows_and_as_arrays(
    rows: list[tuple[int, int, int]],
) -> None:
    edges = [Edge(left, right, 0, 0) for left, right, _ in rows]
    table = np.array(edges, np.intp).reshape(-1, 4)
    lazy = EdgeRows(EdgeColumns(*table.T))
    for count in (pairs_of, pairs_both_ways):
        assert count(lazy).by_left() == count(edges).by_left()
    both = Counter((edge.a, edge.b) for edge in edges) + Counter((e.b, e.a) for e in edges)
    assert pairs_both_ways(edges).by_left() == nested(both)
