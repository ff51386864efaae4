"""Our writes are returned until the watch reports them, and never after a later version."""

import pytest

from generator.store.own_writes import OwnWrites


class Watch:
    """The changes that a watch has reported so far."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.latest = "10"
        self.own: OwnWrites[str] = OwnWrites(lambda name: self.known.get(name, ""), self._latest)

    def _latest(self) -> str:
        return self.latest

    def tell(self, version: str, **known: str) -> None:
        self.known = known
        self.latest = version


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_it_returns_a_write_until_the_watch_reports_it(watch: Watch) -> None:
    watch.tell("10", leaf="7")
    watch.own.record("leaf", "12", "new")
    assert watch.own.pending() == {"leaf": "new"}
    watch.tell("11", leaf="11")
    assert watch.own.pending() == {"leaf": "new"}, "what was told is older than what was written"
    watch.tell("12", leaf="12")
    assert watch.own.pending() == {}


def test_it_prefers_a_later_change_in_the_watch(watch: Watch) -> None:
    watch.own.record("leaf", "12", "new")
    watch.tell("15", leaf="15")
    assert watch.own.pending() == {}


def test_it_returns_a_new_object_that_the_watch_does_not_know(watch: Watch) -> None:
    watch.own.record("leaf", "12", "new")
    assert watch.own.pending() == {"leaf": "new"}
    watch.tell("14")
    assert watch.own.pending() == {}, "it came and went again"


def test_it_returns_a_deletion_until_the_watch_reports_it(watch: Watch) -> None:
    watch.tell("12", leaf="12")
    watch.own.record("leaf", "12", None)
    assert watch.own.pending() == {"leaf": None}
    watch.tell("13")
    assert watch.own.pending() == {}


def test_it_prefers_an_object_recreated_after_our_deletion(watch: Watch) -> None:
    watch.own.record("leaf", "12", None)
    watch.tell("20", leaf="20")
    assert watch.own.pending() == {}


def test_it_keeps_a_deletion_while_the_watch_lags_behind_the_creation(watch: Watch) -> None:
    watch.own.record("leaf", "12", "new")
    watch.own.record("leaf", "12", None)
    assert watch.own.pending() == {"leaf": None}
    watch.tell("12", leaf="12")
    assert watch.own.pending() == {"leaf": None}
    watch.tell("13")
    assert watch.own.pending() == {}
