"""Waiting for real programs: always for a condition, always with a deadline."""

import time
from collections.abc import Callable

POLL_S = 0.05
LONGEST_POLL_S = 0.2
"""Less than a generator's round of a second: a question may cost it and its server 10 ms."""


def wait_until(condition: Callable[[], object], *, deadline_s: float, what: str) -> None:
    """Return when `condition` returns a falsy value; a late one is shown in the error.

    It is asked less often once it has not held for a second.

    Raises:
        AssertionError: the deadline passed; the message has the condition and its last value.
    """
    begin_s = time.monotonic()
    while wrong := condition():
        waited_s = time.monotonic() - begin_s
        assert waited_s < deadline_s, f"{what}: not within {deadline_s:g} s, still {wrong}"
        time.sleep(min(max(POLL_S, waited_s / 20), LONGEST_POLL_S))
