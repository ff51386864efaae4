"""A cache returns what is computed, and never stores more bytes than its bound."""

from hypothesis import given
from hypothesis import strategies as st

from topology.model.bounded_cache import BoundedCache

BOUND = 160


def twice(text: str) -> str:
    return text * 2


def weigh(key: str, value: str) -> int:
    return len(key) + len(value)


@given(st.lists(st.text(max_size=8), max_size=200))
def test_values_are_those_computed_within_the_bound(keys: list[str]) -> None:
    cache = BoundedCache(twice, weigh=weigh, max_bytes=BOUND)
    for key in keys:
        assert cache[key] == twice(key)
        assert sum(weigh(*item) for item in cache.items()) <= BOUND


def test_a_stored_value_is_not_computed_again() -> None:
    computed: list[str] = []

    def build(key: str) -> str:
        computed.append(key)
        return twice(key)

    cache = BoundedCache(build, weigh=weigh, max_bytes=BOUND)
    assert cache["a"] is cache["a"]
    assert computed == ["a"]


def test_a_large_value_displaces_no_other() -> None:
    cache = BoundedCache(twice, weigh=weigh, max_bytes=BOUND)
    assert cache["a"] == "aa"
    assert cache["b" * BOUND] == "b" * 2 * BOUND
    assert list(cache) == ["a"]


def test_a_full_cache_goes_on_storing() -> None:
    cache = BoundedCache(twice, weigh=weigh, max_bytes=BOUND)
    for number in range(100):
        assert cache[f"{number:02}"]
    assert "99" in cache
