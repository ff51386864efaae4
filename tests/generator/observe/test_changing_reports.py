"""Rounds in which nodes report something new each time keep no more memory than the last round."""

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from generator.kube.cache import Cache
from generator.observe.observer import FabricObserver, TreeInputs
from generator.store.kinds import REPORT_QUOTA, read_stored_report
from tests.bench.hostile_reports import report_changing_hosts, report_changing_shapes
from topology.reports.packed_reports import PackedReport

SETTLED = 3
"""After so many rounds every table has had its usual size once."""
ALLOWED_BYTES = 64 << 10
"""A cache that kept the names of each round would grow by more than this in one of them."""
CACHE_BYTES = 16 << 20
"""Caches that are emptied when they are full hold up to this in some rounds, and less in others.
Bounded by their number alone, they took 60 MB in the rounds below, and have no bound in general."""


def observe_rounds(
    report: Callable[[int], Iterator[Mapping[str, Any]]], num_rounds: int
) -> list[int]:
    """Return the traced bytes after each round, as a server receives the reports."""
    cache: Cache[PackedReport] = Cache(read_stored_report, REPORT_QUOTA)
    observer = FabricObserver()
    held: list[int] = []
    tracemalloc.start()
    try:
        for turn in range(num_rounds):
            for document in report(turn):
                cache.put(document)
            assert not cache.listing.all_problems
            previous = observer.observation.tree if observer.observation else None
            observer.update(TreeInputs(cache.values, None), previous)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return held


def test_names_of_earlier_rounds_are_forgotten() -> None:
    held = observe_rounds(lambda turn: report_changing_hosts(12, 40, turn), 6)
    assert held[-1] - held[SETTLED] < ALLOWED_BYTES, held


@pytest.mark.long
@pytest.mark.timeout(400)
def test_shapes_of_earlier_rounds_take_bounded_memory() -> None:
    held = observe_rounds(lambda turn: report_changing_shapes(8, turn), 24)
    assert max(held) - held[SETTLED] < CACHE_BYTES, held
