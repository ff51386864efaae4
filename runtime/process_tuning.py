"""How the interpreter and the C library are set, above all for a server.

Memory goes back, and calls get in: rounds make arrays of megabytes and drop them, in the thread
that also answers nobody; calls come meanwhile in others, and want an answer within milliseconds.
"""

from __future__ import annotations

import gc
import sys
from typing import Final

_SWITCH_S: Final = 0.0005
"""How long one thread keeps the interpreter while another waits for it. A call hands over several
times, and with the usual 5 ms waited 20 ms for a round to let it in."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of malloc.h
_OPTIONS: Final = ((_MMAP_THRESHOLD, 1 << 18), (_TRIM_THRESHOLD, 1 << 20), (_ARENA_MAX, 2))
"""glibc learns from the first large array that is freed to keep the next ones; set by hand, these
stay as they are."""


def collect_rarely() -> None:
    """Let the collector of garbage look at new objects seldom.

    Facts and answers are many small immutable objects without cycles; at its default threshold it
    takes nearly half of the time to read 65k HCAs, and a third of a batch's, and finds nothing.
    """
    gc.set_threshold(200_000, 20, 20)


def tune_for_serving() -> None:
    """Set all of it; where the C library knows no such options, the rest."""
    import ctypes  # noqa: PLC0415 - every command loads this file, and only servers want that

    sys.setswitchinterval(_SWITCH_S)
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in _OPTIONS:
        mallopt(option, value)


def settle() -> None:
    """Take all objects that are there now for lasting ones: they are looked through no more."""
    gc.collect()
    gc.freeze()
