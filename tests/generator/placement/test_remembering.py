"""A snapshot caches proved answers, and only its own."""

from __future__ import annotations

from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import with_running
from generator.placement.engine import MAX_CACHED_ANSWERS, as_running_gang, place
from tests.generator.placement.documents import (
    ReadingClock,
    cluster,
    racks,
    request,
    workers,
)
from tests.generator.placement.solve.test_greedy import MIXED


def test_it_reuses_an_answer_for_any_deadline() -> None:
    snapshot = cluster(racks(2, 2))
    first = place(snapshot, request(groups=workers(2)))
    assert place(snapshot, request(groups=workers(2), deadline_s=5)) is first


def test_it_caches_nothing_across_changes_of_the_cluster() -> None:
    snapshot, parsed = cluster(racks(2, 2)), request(groups=workers(2), gang="a")
    first = place(snapshot, parsed)
    changed = with_running(snapshot, as_running_gang(parsed, first))
    again = place(changed, request(groups=workers(2), gang="b"))
    assert first.assignment == {"workers": ("n0", "n1")}
    assert again.assignment == {"workers": ("n2", "n3")}
    assert not cluster(racks(2), {"n0": NodeSpec("n0")}).answers


def test_it_searches_again_if_an_answer_is_not_proved() -> None:
    snapshot, parsed = (
        cluster(racks(6, 6, 6, 6, per_block=4)),
        request(groups=MIXED, deadline_s=0.5),
    )
    assert not place(snapshot, parsed, clock=ReadingClock()).is_proved
    assert not snapshot.answers
    assert place(snapshot, request(groups=MIXED)).is_proved


def test_it_bounds_the_number_of_cached_answers() -> None:
    snapshot = cluster(racks(2, 2))
    for index in range(MAX_CACHED_ANSWERS + 1):
        place(snapshot, request(groups=workers(1), priority=index))
    assert len(snapshot.answers) == 1


def test_it_reuses_an_answer_for_another_gang_with_an_equal_request() -> None:
    snapshot = cluster(racks(2, 2))
    first = place(snapshot, request(groups=workers(2), gang="a"))
    assert place(snapshot, request(groups=workers(2), gang="b")) is first


def test_it_answers_a_running_gang_separately() -> None:
    snapshot, parsed = cluster(racks(2, 2)), request(groups=workers(1), gang="a")
    changed = with_running(snapshot, as_running_gang(parsed, place(snapshot, parsed)))
    other = place(changed, request(groups=workers(1), gang="b", required="1"))
    same = place(changed, request(groups=workers(1), gang="a", required="1"))
    assert other is not same
    assert same.assignment == {"workers": ("n1",)}
