"""Slots that callers share: what one of them leaves to the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from runtime.fair_share import FairShare

SOON_S = 30.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(64) as made:
        yield made


def hold(stack: ExitStack, share: FairShare, caller: str) -> bool:
    return stack.enter_context(share.hold(caller))


def wait_for(share: FairShare, num: int) -> None:
    """Wait until so many callers wait for a slot."""
    pause = threading.Event()
    assert any(share.num_waiting == num or pause.wait(0.01) for _ in range(3000))


def start_callers(pool: ThreadPoolExecutor, share: FairShare, names: str) -> list[Future[bool]]:
    """Let callers wait for a slot, one after the other; each returns whether it got one."""
    waiting = []
    for number, name in enumerate(names, 1):
        waiting.append(pool.submit(call, share, name))
        wait_for(share, number)
    return waiting


def call(share: FairShare, name: str) -> bool:
    with share.hold(name, timeout_s=SOON_S) as has_slot:
        return has_slot


def test_a_caller_gets_its_share_and_leaves_the_rest() -> None:
    share = FairShare(4, per_caller=3)
    with ExitStack() as stack:
        assert [hold(stack, share, "a") for _ in range(4)] == [True, True, True, False]
        assert [hold(stack, share, name) for name in "bc"] == [True, False]
    with ExitStack() as stack:
        assert [hold(stack, share, "c") for _ in range(3)] == [True] * 3


@pytest.mark.parametrize(
    ("first", "names", "order"),
    [
        pytest.param("first", "aaaabc", "abcaaa", id="callers that never had one"),
        pytest.param("a", "aab", "baa", id="a caller that never had one before others"),
    ],
)
def test_slots_go_to_callers_in_turn(
    pool: ThreadPoolExecutor, first: str, names: str, order: str
) -> None:
    share = FairShare(1, per_caller=1, max_waiting=16, waiting_per_caller=16)
    served: list[str] = []

    def call(name: str) -> None:
        with share.hold(name, timeout_s=SOON_S) as has_slot:
            assert has_slot
            served.append(name)

    with share.hold(first):
        futures: list[Future[None]] = []
        for number, name in enumerate(names, 1):
            futures.append(pool.submit(call, name))
            wait_for(share, number)
    for future in futures:
        future.result(SOON_S)
    assert served == [*order]


def test_a_free_slot_goes_to_the_caller_that_holds_the_fewest(pool: ThreadPoolExecutor) -> None:
    share = FairShare(3, per_caller=3, max_waiting=4, waiting_per_caller=4)
    served: list[str] = []

    def call(name: str) -> None:
        with share.hold(name, timeout_s=SOON_S):
            served.append(name)

    with share.hold("a"), share.hold("a"):
        with share.hold("b"):
            futures = []
            for number, name in enumerate("ac", 1):
                futures.append(pool.submit(call, name))
                wait_for(share, number)
        for future in futures:
            future.result(SOON_S)
    assert served == ["c", "a"]


@pytest.mark.parametrize(
    ("timeout_s", "is_over"),
    [
        pytest.param(0.05, lambda: False, id="in time"),
        pytest.param(SOON_S, lambda: True, id="because the caller has left"),
    ],
)
def test_a_wait_ends(timeout_s: float, is_over: Callable[[], bool]) -> None:
    share = FairShare(1, per_caller=1, max_waiting=1, waiting_per_caller=1)
    with share.hold("a"):
        for _ in range(2):  # the place is free again
            with share.hold("b", timeout_s=timeout_s, is_over=is_over) as has_slot:
                assert not has_slot
    with share.hold("b") as has_slot:
        assert has_slot


def test_a_caller_takes_a_place_of_the_one_that_has_the_most(pool: ThreadPoolExecutor) -> None:
    share = FairShare(1, per_caller=1, max_waiting=4, waiting_per_caller=4)

    with share.hold("first"):
        waiting = start_callers(pool, share, "aaab")
        waiting.append(pool.submit(call, share, "c"))
        assert not waiting[2].result(SOON_S)
        assert not call(share, "a")
        assert not call(share, "b")
    assert [future.result(SOON_S) for future in waiting] == [True, True, False, True, True]


def test_a_caller_takes_a_slot_of_the_one_that_holds_the_most() -> None:
    share, lost = FairShare(4, per_caller=3), list[str]()

    def hold(stack: ExitStack, caller: str, name: str) -> bool:
        return stack.enter_context(share.hold(caller, on_lost=lambda: lost.append(name)))

    with ExitStack() as others:
        with ExitStack() as stack:
            assert all(hold(stack, "a", name) for name in ("a1", "a2", "a3"))
            assert not hold(stack, "a", "a4")
            assert [hold(others, "b", name) for name in ("b1", "b2", "b3")] == [True, True, False]
            assert lost == ["a3"]
            assert [hold(others, name, name) for name in "cd"] == [True, True]
            assert sorted(lost) == ["a2", "a3", "b2"]
            assert not hold(others, "e", "e")
            assert not hold(stack, "a", "a5")
        assert [hold(others, name, name) for name in "fg"] == [True, False]
    with ExitStack() as stack:
        assert [hold(stack, name, name) for name in "aaabb"] == [True, True, True, True, True]
        assert lost[3:] == ["a"]


def test_a_lost_slot_counts_for_its_caller_until_its_body_ends() -> None:
    share, lost = FairShare(6, per_caller=5), list[str]()

    def hold(stack: ExitStack, caller: str) -> bool:
        return stack.enter_context(share.hold(caller, on_lost=lambda: lost.append(caller)))

    with ExitStack() as others, ExitStack() as stack:
        assert all(hold(stack, caller) for caller in "aaaaab")
        for _ in range(3):
            with share.hold("new") as has_slot:
                assert has_slot
            assert hold(stack, "b")
        assert lost == ["a"] * 3
        assert not hold(stack, "a")
        stack.close()
        assert all(hold(others, caller) for caller in "aaaaab")


def test_places_to_wait_are_shared_too(pool: ThreadPoolExecutor) -> None:
    share = FairShare(1, per_caller=1, max_waiting=3, waiting_per_caller=2)

    with share.hold("a"):
        waiting = start_callers(pool, share, "aab")
        assert not call(share, "a")
        assert not call(share, "b")
    assert [future.result(SOON_S) for future in waiting] == [True] * 3


def test_no_slot_is_lost_or_given_twice(pool: ThreadPoolExecutor) -> None:
    share = FairShare(4, per_caller=2, max_waiting=64, waiting_per_caller=64)
    lock, held, most = threading.Lock(), Counter[str](), Counter[str]()

    def call(name: str) -> bool:
        with share.hold(name, timeout_s=SOON_S) as has_slot:
            with lock:
                held.update({name: 1, "all": 1})
                for key in (name, "all"):
                    most[key] = max(most[key], held[key])
            with lock:
                held.subtract({name: 1, "all": 1})
            return has_slot

    assert all(pool.map(call, "abcd" * 500))
    assert most["all"] <= 4
    assert max(most[name] for name in "abcd") <= 2
    assert share.num_waiting == 0
    with ExitStack() as stack:
        assert [hold(stack, share, name) for name in "aabb"] == [True] * 4
