"""The sender of the most is refused, and nobody else, whatever the order of the objects."""

import random

from hypothesis import given
from hypothesis import strategies as st

from generator.kube.cache import Cache
from generator.kube.quota import Quota
from generator.store.interned_reports import REPORT_QUOTA
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, Source
from topology.reports.compact_reports import compact_report
from topology.reports.neighbor_report import build_report

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
    assert {problem.source.partition(".")[0] for problem in known.problems} == {"mallory"}
    assert "mallory has written the most" in str(known.problems[0])


def test_a_list_is_bounded_while_it_is_read() -> None:
    known = cache()
    changes = known.replace(item(name, text) for name, text in (FLOOD | HONEST).items())
    assert {change.name for change in changes} >= set(HONEST)
    assert sum(map(len, known.values)) <= LIMIT
    assert known.values.count("y" * 10_000) == len(HONEST)


def test_dropped_objects_are_changes_and_come_back_with_their_next_version() -> None:
    known = cache()
    assert [change.kind for change in known.put(item("n1", "a" * 600_000))] == ["added"]
    changes = known.put(item("n2", "b" * 500_000))
    assert [(change.name, change.kind.value) for change in changes] == [
        ("n1", "deleted"),
        ("n2", "added"),
    ]
    known.remove(item("n2", ""))
    known.put(item("n1", "a" * 600_000, version=2))
    assert (len(known.values), known.problems) == (1, ())


def test_a_new_list_brings_back_what_fits_again() -> None:
    known = cache()
    objects = [item("n1", "a" * 600_000), item("n2", "b" * 500_000)]
    known.replace(objects)
    assert (len(known.values), known.has_room) == (1, False)
    known.put(item("n3", "c" * 100_000))
    assert [known.has_room] == [False]
    known.remove(item("n2", ""))
    assert [known.has_room] == [True]
    known.replace([objects[0], item("n3", "c" * 100_000)])
    assert (len(known.values), known.problems, known.has_room) == (2, (), False)


def test_a_report_weighs_what_it_unpacks_to() -> None:
    crowd = tuple(Neighbor((), f"g{at}", (), "p", Source.LLDP) for at in range(1000))
    ports = tuple(Port(f"eth{at}", medium=Medium.ETHERNET, neighbors=crowd) for at in range(4))
    small, large = (
        REPORT_QUOTA.weigh(
            compact_report(build_report(Device(DeviceKind.HOST, "n1", (), rows), name="n1"))
        )
        for rows in ((), ports)
    )
    assert small < 2000
    assert large > 4000 * 1500
    assert REPORT_QUOTA.find_sender("n1.sweep.7") == REPORT_QUOTA.find_sender("n1") == "n1"
