"""Waiting and damping, on a fake clock: no test sleeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from generator.reconcile.write_delays import (
    NO_DEBOUNCE,
    DebounceConfig,
    LastWrite,
    PendingPlan,
    compute_damping_s,
    record_writes,
    update_pending,
)

PACE = DebounceConfig()


class Loop:
    """Rounds of a server, one per second, with a plan for each second and a list of writes."""

    def __init__(self, pace: DebounceConfig = PACE) -> None:
        self.pace = pace
        self.waiting: PendingPlan | None = None
        self.written: Mapping[str, LastWrite] = {}
        self.writes: list[float] = []

    def run(self, seconds: Iterable[int], plan_at: Callable[[int], str]) -> list[float]:
        """Look at each of some seconds; an empty plan is nothing to write."""
        for now_s in seconds:
            self.look(float(now_s), plan_at(now_s))
        return self.writes

    def look(self, now_s: float, plan: str) -> None:
        if not plan:
            self.waiting = None
            return
        self.waiting = update_pending(plan, self.waiting, now_s)
        if self.waiting.compute_wait_s(now_s, self.pace) > 0 or compute_damping_s(
            self.written, ["leaf"], now_s
        ):
            return
        self.waiting = None
        self.writes.append(now_s)
        self.written = record_writes(self.written, ["leaf"], now_s, pace=self.pace)


def test_it_writes_a_plan_that_stays_the_same_for_two_seconds() -> None:
    assert Loop().run(range(3), lambda _: "plan") == [2]


def test_it_waits_again_when_the_plan_changes() -> None:
    assert Loop().run(range(6), lambda now: f"plan {min(now, 3)}") == [5]


def test_it_writes_a_plan_that_never_stays_the_same_after_fifteen_seconds() -> None:
    assert Loop().run(range(20), lambda now: f"plan {now}") == [15]


def test_it_forgets_a_plan_that_is_no_longer_needed() -> None:
    assert Loop().run(range(60), lambda now: "plan" if now % 2 == 0 else "") == []


def test_it_writes_at_once_without_debounce() -> None:
    assert Loop(NO_DEBOUNCE).run(range(3), lambda now: f"plan {now}") == [0, 1, 2]


def test_it_writes_a_flapping_object_less_and_less_often() -> None:
    writes = Loop().run(range(3600), lambda _: "plan")
    gaps = [after - before for before, after in pairwise(writes)]
    assert gaps[:6] == [5, 10, 20, 40, 80, 160]
    assert set(gaps[6:]) == {240}


def test_it_starts_with_the_first_window_again_after_a_quiet_time() -> None:
    loop = Loop()
    loop.run(range(100), lambda _: "plan")
    loop.look(100.0, "")
    last = loop.writes[-1]
    assert loop.written["leaf"].window_s > PACE.min_window_s
    later = int(last + PACE.window_reset_s)
    loop.run(range(later, later + 3), lambda _: "plan")
    assert loop.writes[-1] == later + 2
    assert loop.written["leaf"].window_s == PACE.min_window_s


def test_it_waits_for_the_last_window_of_several_objects() -> None:
    written = {"a": LastWrite(0.0, 5.0), "b": LastWrite(0.0, 40.0), "c": LastWrite(0.0, 80.0)}
    assert compute_damping_s(written, ["a", "b", "new"], 10.0) == 30.0
    assert compute_damping_s(written, ["a", "new"], 10.0) == 0.0
    assert compute_damping_s(written, [], 10.0) == 0.0


def test_it_remembers_only_recently_written_objects() -> None:
    written = record_writes({}, ["old", "new"], 0.0, pace=PACE)
    written = record_writes(written, ["new"], 100.0, pace=PACE)
    assert set(record_writes(written, ["newest"], PACE.window_reset_s, pace=PACE)) == {
        "new",
        "newest",
    }


@given(st.lists(st.sampled_from(["", "one", "two"]), max_size=200))
def test_it_never_writes_an_object_twice_within_its_window(plans: list[str]) -> None:
    loop = Loop()
    window_s = 0.0
    for now_s, plan in enumerate(plans):
        before = len(loop.writes)
        loop.look(float(now_s), plan)
        if len(loop.writes) > before:
            assert before == 0 or now_s - loop.writes[-2] >= window_s
            window_s = loop.written["leaf"].window_s
