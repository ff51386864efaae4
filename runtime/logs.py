"""Log lines: an event phrase and its fields, as JSON or as text, on stderr only."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Final

import click

from topology.model.errors import show

MAX_FIELD_CHARS: Final = 1000
_LEVEL_COLORS: Final = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line: time, level, event, logger, then the fields in the order given."""
        line = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        return json.dumps(line | _fields_of(record, self), default=str)


class TextFormatter(logging.Formatter):
    """Formats a record as one line for people.

    Values are escaped, because fields may hold untrusted text of devices and reports.
    """

    def __init__(self, *, has_colors: bool = False) -> None:
        """Store whether warnings and errors have the colors of a terminal."""
        super().__init__()
        self._has_colors = has_colors

    def format(self, record: logging.LogRecord) -> str:
        """Return `TIME LEVEL event key=value …`."""
        fields = "".join(
            f" {key}={show(str(value), MAX_FIELD_CHARS)}"
            for key, value in _fields_of(record, self).items()
        )
        level = f"{record.levelname:<7}"
        if self._has_colors and record.levelname in _LEVEL_COLORS:
            level = click.style(level, fg=_LEVEL_COLORS[record.levelname])
        return f"{_time_of(record)} {level} {record.getMessage()}{fields}"


def start_logging(log_format: str | None, *, level: int = logging.INFO) -> None:
    """Send the log to stderr, and remove all earlier log handlers.

    Args:
        log_format: `text` or `json`; None means text on a terminal and JSON otherwise.
        level: the lowest level that is logged.
    """
    is_text = log_format == "text" or (log_format is None and sys.stderr.isatty())
    stream = logging.StreamHandler(sys.stderr)
    has_colors = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    stream.setFormatter(TextFormatter(has_colors=has_colors) if is_text else JsonFormatter())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(stream)
    root.setLevel(level)
    # The scheduler logs each run at info; the programs log the relevant events themselves.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields_of(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, object]:
    fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
    if record.exc_info:
        fields["traceback"] = formatter.formatException(record.exc_info)
    return fields
