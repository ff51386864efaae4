"""Rows in pieces are the tuple that they stand for, however often some of them are replaced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.lazy_rows import rows_at, splice_rows

SPLICES = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 600), st.integers(0, 700)))


@given(st.integers(0, 2500), SPLICES)
def test_it_equals_the_tuple_with_other_rows_in_some_places(
    size: int, splices: list[tuple[int, int, int]]
) -> None:
    wanted, rows = tuple(range(size)), splice_rows(range(size), (0, 0), ())
    for at, num_gone, num_come in splices:
        start = min(at, len(wanted))
        stop = min(start + num_gone, len(wanted))
        fresh = range(-num_come, 0)
        before = rows
        was, rows = wanted, splice_rows(rows, (start, stop), fresh)
        wanted = (*wanted[:start], *fresh, *wanted[stop:])
        assert before == was
        assert rows[start : start + 3] == wanted[start : start + 3]
    assert len(rows) == len(wanted)
    assert rows_at(rows, range(len(wanted) - 1, -1, -1)) == list(wanted[::-1])
    assert rows == wanted
    assert hash(rows) == hash(wanted)


@pytest.mark.parametrize("at", [-1, 1999])
def test_it_finds_single_rows_and_no_others(at: int) -> None:
    rows = splice_rows(range(2000), (10, 11), (7,))
    assert (rows[10], rows[at]) == (7, 1999)
    with pytest.raises(IndexError):
        rows[2000]
