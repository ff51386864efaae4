"""Pairs counted as arrays say what counting them one by one says."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Edge, EdgeRows

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 3)), max_size=30)


def nested(found: Counter[tuple[int, int]]) -> dict[int, dict[int, int]]:
    """Return counts as one to other to count, ascending."""
    rows: dict[int, dict[int, int]] = {}
    for (one, other), count in sorted(found.items()):
        rows.setdefault(one, {})[other] = count
    return rows


@given(PAIRS)
@limits(max_examples=examples(50))
def test_it_counts_pairs_as_one_counts_them(rows: list[tuple[int, int, int]]) -> None:
    table = np.array(rows, np.intp).reshape(-1, 3)
    wanted, weighted = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for one, other, times in rows:
        wanted[one, other] += 1
        weighted[one, other] += times
    assert count_pairs(table[:, 0], table[:, 1]).by_left == nested(wanted)
    found = count_pairs(table[:, 0], table[:, 1], table[:, 2])
    assert found.by_left == nested(weighted)
    assert [list(row) for row in found.by_left.values()] == [
        sorted(row) for row in found.by_left.values()
    ]


@given(PAIRS, st.sets(st.integers(0, 5)))
@limits(max_examples=examples(50))
def test_it_counts_to_some(rows: list[tuple[int, int, int]], chosen: set[int]) -> None:
    table = np.array(rows, np.intp).reshape(-1, 3)
    is_chosen = np.array([at in chosen for at in range(6)])
    found = count_pairs(table[:, 0], table[:, 1]).count_to(is_chosen)
    assert found.tolist() == [
        sum(one == at and other in chosen for one, other, _ in rows) for at in range(6)
    ]


def test_it_gives_some_pairs_by_flags_and_by_places() -> None:
    found = count_pairs(np.array([3, 1, 3]), np.array([4, 2, 4]))
    assert found.where(found.counts > 1).by_left == {3: {4: 2}}
    assert found.where(np.array([0])).by_left == {1: {2: 1}}


@given(PAIRS)
@limits(max_examples=examples(30))
def test_it_counts_cables_alike_whether_they_are_rows_or_arrays(
    rows: list[tuple[int, int, int]],
) -> None:
    edges = [Edge(low, high, 0, 0) for low, high, _ in rows]
    columns = EdgeRows.of(edges)
    assert list(columns) == edges
    one_way = Counter((edge.a, edge.b) for edge in edges)
    assert columns.pairs.by_left == nested(one_way)
    both = one_way + Counter((edge.b, edge.a) for edge in edges)
    assert columns.pairs_both_ways.by_left == nested(both)
