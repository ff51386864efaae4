"""The history that a command reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli.options import HistoryOptions
from topology.model.errors import StoreError

if TYPE_CHECKING:
    from generator.history.history_file import Generation, History


@contextmanager
def open_given_history(given: HistoryOptions) -> Iterator[History]:
    """Yield the history of a folder, or that of a file.

    Raises:
        click.UsageError: neither is given, or both are.
        StoreError: there is no history, or it cannot be read.
    """
    if (given.store is None) == (given.history is None):
        raise click.UsageError("give the history to read: either --store or --history")
    from generator.history.history_file import FILE_NAME, open_history

    with open_history(given.history or (given.store or Path()) / FILE_NAME) as history:
        yield history


def find_generation_since(history: History, since: datetime) -> Generation:
    """Return the generation of a time.

    Raises:
        StoreError: the history begins later.
    """
    generation = history.find_generation(int(since.timestamp()))
    if generation is None:
        raise StoreError(
            f"nothing is known of {show_time(int(since.timestamp()))}: the history begins at "
            f"{show_time(history.begin_s)}, with generation {history.first}"
        )
    return generation


def show_time(at_s: int) -> str:
    """Return seconds since 1970 as a time in UTC."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%dT%H:%M:%SZ}"
