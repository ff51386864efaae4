"""Rounds in which nodes report something new each time keep no more memory than the last round."""

import gc
import tracemalloc

from generator.kube.cache import Cache
from generator.observe.observer import FabricObserver, TreeInputs
from generator.store.interned_reports import REPORT_QUOTA, ReportInterner
from tests.bench.hostile_reports import report_changing_hosts
from topology.reports.compact_reports import CompactReport

NUM_ROUNDS = 10
SETTLED = 4
"""After so many rounds every table has had its usual size once."""
ALLOWED_BYTES = 64 << 10
"""A cache that kept the names of each round would grow by more than this in one of them."""


def test_names_of_earlier_rounds_are_forgotten() -> None:
    cache: Cache[CompactReport] = Cache(ReportInterner(), REPORT_QUOTA)
    observer = FabricObserver()
    held: list[int] = []
    tracemalloc.start()
    try:
        for turn in range(NUM_ROUNDS):
            for document in report_changing_hosts(24, 40, turn):
                cache.put(document)
            previous = observer.observation.tree if observer.observation else None
            observer.update(TreeInputs(cache.values, None), previous)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert held[-1] - held[SETTLED] < ALLOWED_BYTES, held
