"""The exit codes of `toponaut`, and the end of a command. Scripts depend on the codes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

import click

from generator.cli.output import print_problems
from topology.model.errors import ParseError, TopologyError


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
    """`--check` failed, or `apply` did not write because the plan is held or writing is paused."""


def end(code: ExitCode) -> NoReturn:
    """End the command with a code."""
    raise click.exceptions.Exit(code)


def exit_with_problems(problems: Sequence[ParseError], code: ExitCode | None = None) -> NoReturn:
    """Print the skipped input; exit with the given code, else 3 if input was skipped, else 0."""
    print_problems(problems)
    end(code or (ExitCode.SKIPPED if problems else ExitCode.OK))


def exit_without_data(problems: Sequence[ParseError]) -> NoReturn:
    """Print the skipped input, and end because there is no usable input.

    Raises:
        TopologyError: always.
    """
    print_problems(problems)
    raise TopologyError("no usable input; nothing was changed")
