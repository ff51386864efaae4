"""What was written is read back until the watch tells it, and never after it tells more."""

import pytest

from generator.store.own_writes import OwnWrites


class Watch:
    """What a watch has told so far."""

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


def test_it_reads_a_write_back_until_the_watch_tells_it(watch: Watch) -> None:
    watch.tell("10", leaf="7")
    watch.own.record("leaf", "12", "new")
    assert watch.own.pending() == {"leaf": "new"}
    watch.tell("11", leaf="11")
    assert watch.own.pending() == {"leaf": "new"}, "what was told is older than what was written"
    watch.tell("12", leaf="12")
    assert watch.own.pending() == {}


def test_it_believes_the_watch_where_another_changed_the_object_since(watch: Watch) -> None:
    watch.own.record("leaf", "12", "new")
    watch.tell("15", leaf="15")
    assert watch.own.pending() == {}


def test_it_reads_a_new_object_back_although_the_watch_knows_none(watch: Watch) -> None:
    watch.own.record("leaf", "12", "new")
    assert watch.own.pending() == {"leaf": "new"}
    watch.tell("14")
    assert watch.own.pending() == {}, "it came and went again"


def test_it_takes_a_deleted_object_for_gone_until_the_watch_tells_it(watch: Watch) -> None:
    watch.tell("12", leaf="12")
    watch.own.record("leaf", "12", None)
    assert watch.own.pending() == {"leaf": None}
    watch.tell("13")
    assert watch.own.pending() == {}


def test_it_takes_an_object_for_there_that_was_made_anew_after_we_deleted_it(watch: Watch) -> None:
    watch.own.record("leaf", "12", None)
    watch.tell("20", leaf="20")
    assert watch.own.pending() == {}


def test_it_keeps_a_deletion_in_mind_while_the_watch_is_behind_the_creation(watch: Watch) -> None:
    watch.own.record("leaf", "12", "new")
    watch.own.record("leaf", "12", None)
    assert watch.own.pending() == {"leaf": None}
    watch.tell("12", leaf="12")
    assert watch.own.pending() == {"leaf": None}
    watch.tell("13")
    assert watch.own.pending() == {}
