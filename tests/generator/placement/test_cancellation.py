"""A search ends when nobody waits for its answer any more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from generator.placement.batch.joint import place_batch
from generator.placement.budget import IsCancelled, SearchCancelledError
from generator.placement.engine import place
from tests.generator.placement.hard_gangs import HARD_CLUSTER, hard_request

MAX_CHECKS = 3000


class Countdown:
    """Cancels a search at one of its checks, and counts the checks."""

    def __init__(self, at_check: int) -> None:
        self._at_check = at_check
        self.num_checks = 0

    def __call__(self) -> bool:
        self.num_checks += 1
        return self.num_checks >= self._at_check


def place_one(is_cancelled: IsCancelled) -> object:
    return place(HARD_CLUSTER, hard_request(), is_cancelled=is_cancelled)


def place_beside_others(is_cancelled: IsCancelled) -> object:
    """Run every part of a batch: in sequence, and the local search with searches of its own."""
    gangs = [hard_request(f"gang-{at}", num_groups=3) for at in range(4)]
    return place_batch(HARD_CLUSTER, gangs, is_cancelled=is_cancelled)


def place_like_a_scheduler(is_cancelled: IsCancelled) -> object:
    return place(HARD_CLUSTER, hard_request(preset="volcano"), is_cancelled=is_cancelled)


SEARCHES: list[Callable[[IsCancelled], object]] = [
    place_one,
    place_beside_others,
    place_like_a_scheduler,
]


@pytest.mark.parametrize("at_check", [1, 2, 30, MAX_CHECKS])
@pytest.mark.parametrize("search", SEARCHES)
def test_it_has_no_answer_after_its_cancellation(
    search: Callable[[IsCancelled], object], at_check: int
) -> None:
    countdown = Countdown(at_check)
    with pytest.raises(SearchCancelledError):
        search(countdown)
    assert countdown.num_checks == at_check


def test_a_cancelled_search_leaves_no_answer_for_the_next_one() -> None:
    request = hard_request(num_groups=2)
    with pytest.raises(SearchCancelledError):
        place(HARD_CLUSTER, request, is_cancelled=Countdown(5))
    assert place(HARD_CLUSTER, request) == place(HARD_CLUSTER, request)
