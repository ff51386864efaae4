"""Compares or writes all outputs once, as a command does, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from generator.publish.outcome import OutputsOutcome
from generator.publish.request import Publisher, PublishRequest
from runtime.progress import NO_PROGRESS, Progress

LIST_DEADLINE_S: Final = 30.0
"""For the first list of every kind."""
WRITE_DEADLINE_S: Final = 1800.0
"""For the writes: 90,000 objects at the rate of `store.output_objects`."""
_LIST_PAUSE_S: Final = 0.2


def publish_once(
    publisher: Publisher,
    request: PublishRequest,
    *,
    clock: Callable[[], float],
    pause: Callable[[float], object],
    progress: Progress = NO_PROGRESS,
) -> OutputsOutcome:
    """Return the result of the outputs: compared, or written as far as they can be now.

    Args:
        publisher: of the folder or the cluster.
        request: what the outputs should be.
        clock: monotonic, in seconds.
        pause: waits for some seconds.
        progress: shows how many objects are as wanted.
    """
    started_s = clock()
    while True:
        outcome = publisher.update(request)
        num_current = sum(row.num_current for row in outcome.outputs)
        num_pending = sum(row.num_pending for row in outcome.outputs)
        text = "writing outputs" if request.is_writing else "comparing outputs"
        progress.show(text, num_done=num_current, total=num_current + num_pending)
        spent_s = clock() - started_s
        is_listing = any(not row.is_known for row in outcome.outputs)
        if is_listing and request.tree is not None and spent_s < LIST_DEADLINE_S:
            pause(_LIST_PAUSE_S)
        elif outcome.retry_s is not None and spent_s < WRITE_DEADLINE_S:
            pause(outcome.retry_s)
        else:
            return outcome
