"""The exit codes of `toponaut`. Scripts depend on them."""

from __future__ import annotations

from collections.abc import Sized
from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended. Infeasible placements and findings are answers, not failures."""

    OK = 0
    INTERNAL = 1
    """Internal error, or a write failed."""
    USAGE = 2
    """Wrong usage, wrong configuration or an invalid request. click uses it too."""
    SKIPPED = 3
    """Answered, but some input was skipped."""
    NOTHING = 4
    """No usable input."""
    CHECK_FAILED = 5
    """A check (`--check`, `verify`) failed, or `apply` did not write because the plan is held or
    writing is paused."""


def code_for(problems: Sized) -> ExitCode:
    """Return the code of a command that has answered: 3 if it skipped some input, else 0.

    Args:
        problems: the input that was skipped.
    """
    return ExitCode.SKIPPED if len(problems) else ExitCode.OK
