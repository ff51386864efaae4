"""Waiting for real programs: always for a condition, always with a deadline."""

import time
from collections.abc import Callable

POLL_S = 0.05


def wait_until(condition: Callable[[], object], *, deadline_s: float, what: str) -> None:
    """Return when `condition` returns a falsy value; a late one is shown in the error.

    Raises:
        AssertionError: the deadline passed; the message has the condition and its last value.
    """
    end = time.monotonic() + deadline_s
    while wrong := condition():
        assert time.monotonic() < end, f"{what}: not within {deadline_s:g} s, still {wrong}"
        time.sleep(POLL_S)
