"""Compares or writes all outputs once, as a command does, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from generator.publish.outcome import OutputsOutcome
from generator.publish.request import Publisher, PublishRequest

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
) -> OutputsOutcome:
    """Return the result of the outputs: compared, or written as far as they can be now.

    Args:
        publisher: of the folder or the cluster.
        request: what the outputs should be.
        clock: monotonic, in seconds.
        pause: waits for some seconds.
    """
    started_s = clock()
    while True:
        outcome = publisher.update(request)
        spent_s = clock() - started_s
        is_listing = any(not row.is_known for row in outcome.outputs)
        if is_listing and request.tree is not None and spent_s < LIST_DEADLINE_S:
            pause(_LIST_PAUSE_S)
        elif outcome.retry_s is not None and spent_s < WRITE_DEADLINE_S:
            pause(outcome.retry_s)
        else:
            return outcome
