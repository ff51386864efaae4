"""SIGTERM as an orderly end of a collection that runs once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

TERMINATED: Final = 128 + signal.SIGTERM
"""What a shell says of a program that the signal ended."""


@contextmanager
def on_sigterm(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` when the signal comes within the block; main thread only.

    The default action would end us alone, and leave commands that run behind; an exception could
    come between the start of a command and the note that it was started.
    """
    before = signal.signal(signal.SIGTERM, lambda *_: tell())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
