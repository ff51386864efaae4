"""The progress of long work, for a person who waits for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

_NUM_UPDATES: Final = 200
"""Updates of a bar whose length is known; more could not be seen."""
ItemT = TypeVar("ItemT")


class Progress(Protocol):
    """Shows what is done. Texts are ours: they contain no foreign names."""

    def show(self, text: str, *, num_done: int | None = None, total: int | None = None) -> None:
        """Show what is done now, and how much of it; without numbers, the end is unknown."""
        ...


class _NoProgress:
    def show(self, text: str, *, num_done: int | None = None, total: int | None = None) -> None:
        del text, num_done, total


NO_PROGRESS: Final[Progress] = _NoProgress()
"""Shows nothing, for work that nobody waits for."""


def track(items: Sequence[ItemT], text: str, progress: Progress) -> Iterable[ItemT]:
    """Yield items, and show the text and how many of them are done."""
    total = len(items)
    step = max(1, math.ceil(total / _NUM_UPDATES))
    for num, item in enumerate(items):
        if num % step == 0:
            progress.show(text, num_done=num, total=total)
        yield item
