"""Tables with shares: which rows make room, for any owners."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.model.surplus_rows import find_surplus

OWNERS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@settings(max_examples=examples(300))
@given(pairs=st.lists(OWNERS, max_size=60), limit=st.integers(0, 60), depth=st.integers(1, 2))
def test_owners_share_a_table_equally(pairs: list[tuple[int, int]], limit: int, depth: int) -> None:
    owners = [pair[:depth] for pair in pairs]
    rows = list(range(len(owners)))  # the newest is row 0
    surplus = find_surplus(rows, owners, limit)
    kept = [row for row in rows if row not in set(surplus)]
    assert len(kept) == min(limit, len(rows))
    assert len(surplus) == len(set(surplus)) == len(rows) - len(kept)
    for level in range(1, depth + 1):
        num_kept = Counter(owners[row][:level] for row in kept)
        for row in surplus:
            own = owners[row][:level]
            peers = [owner for owner in num_kept if owner[:-1] == own[:-1]]
            assert all(num_kept[peer] <= num_kept[own] + 1 for peer in peers), (
                "who gave up a row has as many as its peers"
            )
    for row in surplus:
        same = [other for other in kept if owners[other] == owners[row]]
        assert all(other < row for other in same), "its oldest make room"


def test_it_returns_the_oldest_of_the_largest_owner_first() -> None:
    rows = ["new", "eve 3", "eve 2", "eve 1", "old"]
    owners = [("ann",), ("eve",), ("eve",), ("eve",), ("bob",)]
    assert find_surplus(rows, owners, 3) == ["eve 1", "eve 2"]
    assert find_surplus(rows, owners, 2) == ["eve 1", "eve 2", "old"]
    assert find_surplus(rows, owners, 5) == []


def test_a_large_row_takes_the_room_of_many() -> None:
    rows = ["eve 3", "bob 2", "eve 2", "bob 1", "eve 1"]
    owners = [(row[:3],) for row in rows]
    sizes = [4, 1, 4, 1, 4]
    assert find_surplus(rows, owners, 14, sizes=sizes) == []
    assert find_surplus(rows, owners, 10, sizes=sizes) == ["eve 1"]
    assert find_surplus(rows, owners, 5, sizes=sizes) == ["eve 1", "eve 2", "eve 3"]
