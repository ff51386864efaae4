"""After any failures, a reflector knows all objects and has reported every change."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.kube.cache import Cache
from generator.kube.reflector import Paging, Reflector, ReflectorConfig
from generator.kube.resources import REPORTS
from runtime.retry import WaitContext
from runtime.stop import Stop
from tests.effort import examples
from tests.kube.worlds import FakeServer, History, Trouble
from topology.model.errors import ConfigError, KubeUnavailable

NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
CHANGES = st.lists(st.tuples(NAMES, st.sampled_from(["", "one", "two", "three"])), max_size=6)
"""Names and words; without a word the object is deleted."""


def word_of(found: Mapping[str, Any]) -> str:
    return str(found["word"])


class Rounds(Stop):
    """Changes the objects at each watch, and stops after a number of watches."""

    def __init__(self, history: History, turns: list[list[tuple[str, str]]], *, count: int) -> None:
        super().__init__()
        self.rests: list[float] = []
        self.time_s = 0.0
        self._history, self._turns, self._left = history, turns, count

    def clock(self) -> float:
        """Return a time; each reading is a little later."""
        self.time_s += 0.4
        return self.time_s

    def wait(self, timeout: float) -> bool:
        self.rests.append(timeout)
        self.time_s += timeout
        return self.is_set

    def turn(self) -> None:
        change(self._history, self._turns.pop(0) if self._turns else [])
        self._left -= 1
        if self._left <= 0:
            self.set()


def change(history: History, turn: list[tuple[str, str]]) -> None:
    for name, word in turn:
        if word:
            history.put(name, word)
        else:
            history.drop(name)


def follow(
    history: History, troubles: list[Trouble], stop: Rounds
) -> tuple[Reflector[str], list[tuple[str, ...]], FakeServer]:
    server = FakeServer(history, troubles, on_watch=stop.turn)
    told: list[tuple[str, ...]] = []
    reflector: Reflector[str] = Reflector(
        server,
        REPORTS,
        parse=word_of,
        on_change=lambda: told.append(reflector.cache.values),
        pace=WaitContext(stop, stop.clock, lambda low, _high: low),
        config=ReflectorConfig(Paging(page_size=2)),
    )
    reflector.run()
    return reflector, told, server


@given(CHANGES, st.lists(CHANGES, max_size=12), st.lists(st.sampled_from(Trouble), max_size=12))
@settings(max_examples=examples(150))
def test_it_finally_knows_all_objects(
    first: list[tuple[str, str]], turns: list[list[tuple[str, str]]], troubles: list[Trouble]
) -> None:
    history = History()
    change(history, first)
    stop = Rounds(history, turns, count=2 * len(troubles) + len(turns) + 2)
    reflector, told, server = follow(history, troubles, stop)
    assert reflector.is_synced
    assert reflector.problem == ""
    assert reflector.cache.values == history.words
    assert told[-1] == history.words
    assert all("resourceVersion=&" not in one for one in server.asked)
    assert all(rest >= 0.05 for rest in stop.rests), "never hot"


def test_it_keeps_its_state_while_a_list_fails() -> None:
    cache = Cache(word_of)
    known = [{"metadata": {"name": "a", "resourceVersion": "1"}, "word": "one"}]
    assert cache.replace(known, lambda: "1")

    def broken() -> Any:  # noqa: ANN401 - objects, then a failure
        yield {"metadata": {"name": "b", "resourceVersion": "2"}, "word": "two"}
        raise KubeUnavailable("cut")

    with pytest.raises(KubeUnavailable):
        cache.replace(broken(), lambda: "2")
    assert cache.values == ("one",)
    nameless: list[dict[str, Any]] = [{}, {"metadata": {}}, {"metadata": {"name": "x"}}]
    for odd in nameless:
        with pytest.raises(KubeUnavailable):
            cache.put(odd)
    assert cache.values == ("one",)


def test_it_reports_an_object_that_turns_bad_as_a_change() -> None:
    def parse(found: Mapping[str, Any]) -> str:
        if found["word"] == "bad":
            raise ConfigError("a bad word")
        return word_of(found)

    cache, changes = Cache(parse), []
    for version, word in enumerate(["one", "bad", "bad", "two", "two"], 1):
        metadata = {"name": "a", "namespace": "n", "resourceVersion": str(version)}
        is_changed = cache.put({"metadata": metadata, "word": word})
        changes.append((is_changed, cache.values, tuple(cache.listing.refused)))
    assert changes == [
        (True, ("one",), ()),
        (True, (), ("n/a",)),
        (False, (), ("n/a",)),
        (True, ("two",), ()),
        (False, ("two",), ()),
    ]
