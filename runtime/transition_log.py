"""Logs each change of state once: things that appeared since the last round, or are gone."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from typing import Final

MAX_LINES: Final = 100
"""The most lines of one kind in one round; the rest is logged as a count."""


class TransitionLog:
    """Logs when a lasting thing, such as a finding, appears and when it is gone."""

    def __init__(self, log: logging.Logger, what: str, *, level: int = logging.INFO) -> None:
        """Log `WHAT appeared` at a level, and `WHAT gone` at info."""
        self._log = log
        self._what = what
        self._level = level
        self._known: Mapping[Hashable, Mapping[str, object]] = {}

    def update(self, present: Mapping[Hashable, Mapping[str, object]]) -> None:
        """Log the difference from the last round.

        Args:
            present: the log fields of each present thing. The key is its identity: other fields
                under the same key are not a change.
        """
        appeared = [present[key] for key in present if key not in self._known]
        gone = [fields for key, fields in self._known.items() if key not in present]
        self._known = dict(present)
        self._log_rows(f"{self._what} appeared", appeared, self._level)
        self._log_rows(f"{self._what} gone", gone, logging.INFO)

    def _log_rows(self, event: str, rows: list[Mapping[str, object]], level: int) -> None:
        for fields in rows[:MAX_LINES]:
            self._log.log(level, event, extra=dict(fields))
        if len(rows) > MAX_LINES:
            self._log.log(level, f"more {event}", extra={"num": len(rows) - MAX_LINES})
