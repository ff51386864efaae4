"""Logs each change of state once: things that appeared since the last round, or are gone.

Things that change all the time, such as the findings about a node whose report changes every
second, are logged up to a rate and then counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Mapping
from time import monotonic
from typing import Final

from runtime.clock import Monotonic
from runtime.retry import Allowance

MAX_LINES: Final = 100
"""The most lines of one event and kind in a row; the rest is logged as a count."""
REFILL_S: Final = 3.0
"""After a line, so many seconds until another one may follow: 100 lines in five minutes."""


class TransitionLog:
    """Logs when a lasting thing, such as a finding, appears and when it is gone."""

    def __init__(
        self,
        log: logging.Logger,
        what: str,
        *,
        level: int = logging.INFO,
        clock: Monotonic = monotonic,
    ) -> None:
        """Log `WHAT appeared` at a level, and `WHAT gone` at info."""
        self._log = log
        self._what = what
        self._level = level
        self._clock = clock
        self._known: Mapping[Hashable, Mapping[str, object]] = {}
        self._allowances: dict[tuple[str, object], Allowance] = {}
        """Allowances of lines, by event and kind: many things of one kind leave room for the
        others."""
        self._num_left_out: Counter[tuple[str, object]] = Counter()
        """Lines that were left out since the last count, by event and kind."""

    def update(self, present: Mapping[Hashable, Mapping[str, object]]) -> None:
        """Log the difference from the last round.

        Args:
            present: the log fields of each present thing. The key is its identity: other fields
                under the same key are not a change. Things have a rate per field `kind`, which is
                from a closed set.
        """
        appeared = [present[key] for key in present if key not in self._known]
        gone = [fields for key, fields in self._known.items() if key not in present]
        self._known = dict(present)
        self._log_rows(f"{self._what} appeared", appeared, self._level)
        self._log_rows(f"{self._what} gone", gone, logging.INFO)

    def _log_rows(self, event: str, rows: list[Mapping[str, object]], level: int) -> None:
        by_kind: dict[object, list[Mapping[str, object]]] = {}
        for fields in rows:
            by_kind.setdefault(fields.get("kind"), []).append(fields)
        for kind, of_kind in by_kind.items():
            self._log_kind((event, kind), of_kind, level)

    def _log_kind(
        self, key: tuple[str, object], rows: list[Mapping[str, object]], level: int
    ) -> None:
        event, kind = key
        now_s = self._clock()
        full = Allowance(per_second=1 / REFILL_S, burst=MAX_LINES, now_s=now_s)
        allowance = self._allowances.setdefault(key, full)
        num_allowed = allowance.refill(now_s)
        num_lines = min(len(rows), int(num_allowed))
        allowance.tokens -= num_lines
        for fields in rows[:num_lines]:
            self._log.log(level, event, extra=dict(fields))
        self._num_left_out[key] += len(rows) - num_lines
        if self._num_left_out[key] and (num_allowed >= MAX_LINES or num_lines):
            fields = {"num": self._num_left_out.pop(key)}
            fields |= {"kind": kind} if kind is not None else {}
            self._log.log(level, f"more {event}", extra=fields)
