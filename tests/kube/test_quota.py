"""The sender of the most is refused, and nobody else, whatever the order of the objects."""

import random
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from generator.kube.cache import Cache, Quota
from generator.kube.reflector import Paging, list_into_cache
from generator.kube.resources import REPORTS
from generator.store.kinds import REPORT_QUOTA
from tests.effort import examples
from tests.kube.worlds import FakeServer, History
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.reports.neighbor_report import build_report
from topology.reports.packed_reports import pack_report

LIMIT = 1 << 20
QUOTA: Quota[str] = Quota(LIMIT, lambda name: name.partition(".")[0], len)
FLOOD = {f"mallory.{number}": "x" * 50_000 for number in range(100)}
HONEST = {f"n{number}": "y" * 10_000 for number in range(20)}


def item(name: str, text: str, version: int = 1) -> dict[str, object]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}, "text": text}


def cache() -> Cache[str]:
    return Cache(lambda document: str(document["text"]), QUOTA)


@given(st.integers(0, 1000))
def test_it_refuses_the_sender_of_the_most_in_any_order(seed: int) -> None:
    known, rows = cache(), [*FLOOD.items(), *HONEST.items()]
    random.Random(seed).shuffle(rows)  # noqa: S311 - no secret
    for name, text in rows:
        known.put(item(name, text))
        assert sum(map(len, known.values)) <= LIMIT
    assert known.values.count("y" * 10_000) == len(HONEST)
    assert {problem.source.partition(".")[0] for problem in known.listing.all_problems} == {
        "mallory"
    }
    assert "mallory has written more than" in str(known.listing.all_problems[0])


SMALL_LIMIT: Final = 100
SENDERS = [f"n{number}" for number in range(7)]
OBJECTS = st.dictionaries(
    st.builds("{}.{}".format, st.sampled_from(SENDERS), st.integers(0, 3)),
    st.integers(0, 60),
    max_size=20,
)
"""The size of each object by its name, which starts with its sender."""


def kept_of(sizes: dict[str, int]) -> set[str]:
    """Return the objects of the smallest senders that fit together: the whole rule."""
    total: dict[str, int] = {}
    for name, size in sizes.items():
        total[name.partition(".")[0]] = total.get(name.partition(".")[0], 0) + size
    left, senders = SMALL_LIMIT, set()
    for size, sender in sorted((size, sender) for sender, size in total.items()):
        left -= size
        if left < 0:
            break
        senders.add(sender)
    return {name for name in sizes if name.partition(".")[0] in senders}


def small_cache() -> Cache[str]:
    quota: Quota[str] = Quota(SMALL_LIMIT, QUOTA.find_sender, lambda word: int(word.split()[1]))
    return Cache(lambda document: str(document["word"]), quota)


def names_of(known: Cache[str]) -> set[str]:
    return {value.split()[0] for value in known.values}


def listed(known: Cache[str], sizes: dict[str, int], seed: int, version: int = 2000) -> Cache[str]:
    """List objects into a cache from a server that returns them in any order."""
    history = History(version)
    rows = list(sizes.items())
    random.Random(seed).shuffle(rows)  # noqa: S311 - no secret
    for name, size in rows:
        history.put(name, f"{name} {size}")
    server = FakeServer(history, [], on_watch=lambda: None)
    list_into_cache(known, server, REPORTS, paging=Paging(page_size=3))
    return known


@given(OBJECTS, st.lists(OBJECTS, max_size=4), st.integers(0, 99))
@settings(max_examples=examples(3000))
def test_what_a_list_keeps_depends_on_the_objects_alone(
    objects: dict[str, int], earlier: list[dict[str, int]], seed: int
) -> None:
    replica = small_cache()
    for version, changes in enumerate(earlier):
        for name, size in changes.items():
            replica.put({**item(name, "", -version), "word": f"{name} {size}"})
            assert sum(int(value.split()[1]) for value in replica.values) <= SMALL_LIMIT
    for known in (listed(replica, objects, seed), listed(small_cache(), objects, seed + 1)):
        assert names_of(known) == kept_of(objects)
        assert {
            problem.source for problem in known.listing.all_problems
        } == objects.keys() - kept_of(objects)
        assert not known.has_room


@given(OBJECTS, OBJECTS, st.integers(1, 10))
@settings(max_examples=examples(2000))
def test_no_sender_is_refused_because_of_one_that_wrote_more(
    lies: dict[str, int], more: dict[str, int], honest_size: int
) -> None:
    honest = {f"honest{number}.0": honest_size for number in range(SMALL_LIMIT // honest_size)}
    larger = {name: size for name, size in (lies | more).items() if size > honest_size}
    known = listed(small_cache(), honest | larger, seed=1)
    assert names_of(known) == honest.keys()
    for version, (name, size) in enumerate((more | lies).items()):
        known.put({**item(name, "", 5000 + version), "word": f"{name} {size + honest_size + 1}"})
        assert names_of(known) == honest.keys()


@given(OBJECTS, st.lists(st.tuples(st.sampled_from(SENDERS), st.integers(0, 60)), max_size=30))
@settings(max_examples=examples(2000))
def test_events_keep_nothing_that_a_list_would_refuse(
    objects: dict[str, int], events: list[tuple[str, int]]
) -> None:
    known, sizes = listed(small_cache(), objects, seed=1), dict(objects)
    for version, (sender, size) in enumerate(events):
        name = f"{sender}.0"
        document = {**item(name, "", 5000 + version), "word": f"{name} {size}"}
        if size:
            known.put(document)
            sizes[name] = size
        else:
            known.remove(document)
            sizes.pop(name, None)
        assert names_of(known) <= kept_of(sizes)
        assert known.has_room == (names_of(known) < kept_of(sizes))
    assert names_of(listed(known, sizes, seed=2, version=9000)) == kept_of(sizes)


class CountedText:
    """A value that counts the bytes of all values in memory."""

    live_bytes = 0

    def __init__(self, document: Any) -> None:  # noqa: ANN401 - a decoded object
        self.size = len(document["text"])
        CountedText.live_bytes += self.size

    def __del__(self) -> None:
        CountedText.live_bytes -= self.size


def test_refused_values_are_not_in_memory_while_a_list_is_read() -> None:
    quota: Quota[CountedText] = Quota(LIMIT, QUOTA.find_sender, lambda held: held.size)
    known = Cache(CountedText, quota)
    peak = 0

    def objects() -> Iterator[dict[str, object]]:
        nonlocal peak
        for number in range(3000):
            yield item(f"liar{number}", "x" * (50_000 - number))
            peak = max(peak, CountedText.live_bytes)
        yield from (item(name, text) for name, text in HONEST.items())

    for _ in range(2):
        known.replace(objects(), lambda: "1")
        assert peak <= LIMIT + 50_000
        assert sum(held.size == 10_000 for held in known.values) == len(HONEST)
    assert known.has_room is False


def test_a_list_is_bounded_while_it_is_read() -> None:
    known = cache()
    assert known.replace((item(*row) for row in (FLOOD | HONEST).items()), lambda: "1")
    assert sum(map(len, known.values)) <= LIMIT
    assert known.values.count("y" * 10_000) == len(HONEST)


def test_dropped_objects_are_changes_and_come_back_with_their_next_version() -> None:
    known = cache()
    assert known.put(item("n1", "a" * 600_000))
    assert known.put(item("n2", "b" * 500_000))
    assert (known.values, [*known.listing.refused]) == (("b" * 500_000,), ["n1"])
    known.remove(item("n2", ""))
    known.put(item("n1", "a" * 600_000, version=2))
    assert (len(known.values), known.listing.all_problems) == (1, ())


def test_a_new_list_brings_back_what_fits_again() -> None:
    known = cache()
    objects = [item("n1", "a" * 600_000), item("n2", "b" * 500_000)]
    known.replace(objects, lambda: "1")
    assert (len(known.values), known.has_room) == (1, False)
    known.put(item("n3", "c" * 100_000))
    assert [known.has_room] == [False]
    known.remove(item("n2", ""))
    assert [known.has_room] == [True]
    known.replace([objects[0], item("n3", "c" * 100_000)], lambda: "2")
    assert (len(known.values), known.listing.all_problems, known.has_room) == (2, (), False)


def test_a_report_weighs_what_it_unpacks_to() -> None:
    crowd = tuple(Neighbor((), f"g{at}", (), "p", Source.LLDP) for at in range(1000))
    ports = tuple(Port(f"eth{at}", medium=Medium.ETHERNET, neighbors=crowd) for at in range(4))
    small, large = (
        REPORT_QUOTA.weigh(
            pack_report(build_report(Device(DeviceKind.HOST, "n1", (), rows), name="n1"))
        )
        for rows in ((), ports)
    )
    assert small < 2000
    assert large > 4000 * 1500
    assert REPORT_QUOTA.find_sender("n1.sweep.7") == REPORT_QUOTA.find_sender("n1") == "n1"
