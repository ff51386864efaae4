"""The checks of `doctor`: a line each, with the command that mends what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from topology.model.errors import show

_MAX_MESSAGE: Final = 600
_OUTCOME_WIDTH: Final = 7


class Outcome(StrEnum):
    """The result of one check."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"
    """The subject could not be checked."""


class Check(NamedTuple):
    """One line of the answer."""

    subject: str
    outcome: Outcome
    message: str
    fix: str = ""
    """How to mend the fault; empty if there is none."""


def document_of_checks(checks: Sequence[Check]) -> list[dict[str, str]]:
    """Return the checks as JSON objects."""
    return [{**row._asdict(), "outcome": row.outcome.value} for row in checks]


def _show_plain(text: str, _outcome: Outcome) -> str:
    return text


def render_checks(
    checks: Sequence[Check], paint: Callable[[str, Outcome], str] = _show_plain
) -> str:
    """Return one line per check, and what to do below it.

    Args:
        checks: at least one.
        paint: returns the text of an outcome in its color.
    """
    width = max(len(row.subject) for row in checks)
    lines = []
    for row in checks:
        outcome = paint(row.outcome.value.ljust(_OUTCOME_WIDTH), row.outcome)
        message = show(row.message, _MAX_MESSAGE)
        lines.append(f"{outcome}  {row.subject.ljust(width)}  {message}")
        if row.fix:
            lines.append(f"{' ' * (_OUTCOME_WIDTH + width + 4)}-> {row.fix}")
    return "\n".join(lines)
