"""Waiting for real programs: always for a condition, always with a deadline."""

import time
from collections.abc import Callable

POLL_S = 0.05


def wait_until(condition: Callable[[], object], *, deadline_s: float, what: str) -> None:
    """Return once `condition` gives something falsy: what is still wrong, to be shown if late.

    Raises:
        AssertionError: the deadline passed; says what was waited for and what is still wrong.
    """
    end = time.monotonic() + deadline_s
    while wrong := condition():
        assert time.monotonic() < end, f"{what}: not within {deadline_s:g} s, still {wrong}"
        time.sleep(POLL_S)
