"""A cache has our writes until the watch reports them, and never after a later version."""

from typing import Any

import pytest

from generator.kube.cache import Cache


def leaf(version: int, word: str = "new") -> dict[str, Any]:
    return {"metadata": {"name": "leaf", "resourceVersion": str(version)}, "word": word}


@pytest.fixture
def cache() -> Cache[str]:
    known = Cache(lambda found: str(found["word"]))
    known.replace([leaf(7, "old")], lambda: "10")
    return known


def test_it_keeps_a_write_that_the_watch_has_not_reported(cache: Cache[str]) -> None:
    assert cache.record(leaf(12))
    assert not cache.put(leaf(11, "older"))
    assert cache.values == ("new",)
    assert not cache.put(leaf(12))
    assert cache.put(leaf(15, "later"))
    assert cache.values == ("later",)


def test_it_ignores_a_write_that_the_watch_is_past(cache: Cache[str]) -> None:
    cache.put(leaf(12))
    cache.remove(leaf(13))
    assert not cache.record(leaf(12))
    assert not cache.values
    cache.advance("20")
    assert not cache.record(leaf(19))


@pytest.mark.parametrize(
    ("listed", "values"),
    [
        pytest.param(11, ("new",), id="an earlier list does not replace it"),
        pytest.param(14, (), id="a later list without it shows that it was deleted"),
    ],
)
def test_it_compares_a_write_with_a_list(
    cache: Cache[str], listed: int, values: tuple[str, ...]
) -> None:
    cache.record(leaf(12))
    cache.replace([], lambda: str(listed))
    assert cache.values == values


def test_an_earlier_version_in_a_list_does_not_replace_a_write(cache: Cache[str]) -> None:
    cache.record(leaf(12))
    cache.replace([leaf(9, "older")], lambda: "11")
    assert cache.values == ("new",)


def test_a_list_with_smaller_versions_replaces_all_but_our_writes(cache: Cache[str]) -> None:
    cache.put(leaf(12))
    cache.replace([leaf(3, "restored from a backup")], lambda: "4")
    assert cache.values == ("restored from a backup",)


def test_it_keeps_a_deletion_that_the_watch_has_not_reported(cache: Cache[str]) -> None:
    cache.put(leaf(12))
    assert cache.forget("leaf", "12")
    assert not cache.put(leaf(12))
    cache.replace([leaf(12)], lambda: "12")
    assert not cache.values
    cache.remove(leaf(13))
    assert cache.put(leaf(14, "another"))
    assert cache.values == ("another",)


def test_it_shows_an_object_that_was_created_again(cache: Cache[str]) -> None:
    cache.forget("leaf")
    assert cache.record(leaf(20, "another"))
    assert not cache.remove(leaf(12))
    assert cache.values == ("another",)
    assert not cache.forget("leaf", "12"), "that was the first one"


def test_it_shows_an_object_whose_deletion_waits_for_others(cache: Cache[str]) -> None:
    cache.forget("leaf", "7")
    cache.replace([leaf(11, "is being deleted")], lambda: "13")
    assert cache.values == ("is being deleted",)


def test_a_list_beside_the_watch_adds_what_is_later(cache: Cache[str]) -> None:
    twig = {"metadata": {"name": "twig", "resourceVersion": "12"}, "word": "grown"}
    cache.merge([twig], lambda: "13")
    assert cache.values == ("grown",)
    assert not cache.put(leaf(11, "before the list")), "the list shows that it was deleted"
    cache.remove(leaf(12))
    cache.advance("20")
    cache.merge([leaf(14)], lambda: "15")
    assert cache.values == ("grown",), "the watch is past that list"


def test_its_listing_is_the_same_value_until_an_object_changes(cache: Cache[str]) -> None:
    before = cache.listing
    assert cache.listing is before
    cache.advance("11")
    assert cache.listing is before
    cache.put(leaf(12, "new"))
    assert cache.listing is not before
