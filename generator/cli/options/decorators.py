"""Decorators that add options to a click command: several options at once, and `--watch`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import reduce, wraps
from typing import Any, TypeVar

import click

from generator.cli.options.values import parse_duration
from generator.cli.output import print_error
from runtime.watch import watch_output
from topology.model.errors import TopologyError

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def combine_options(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds options to a click command; --help lists them in this order."""

    def decorate(command: CommandT) -> CommandT:
        return reduce(lambda made, option: option(made), reversed(options), command)

    return decorate


def watchable(command: CommandT) -> CommandT:
    """Add `--watch` and `--interval` to a command that reads its sources and prints once.

    Errors of a run, such as a source that cannot be read for a while, do not end the watch.
    """

    @click.option("--watch", is_flag=True, help="Print again when the output changes; Ctrl-C ends.")
    @click.option(
        "--interval",
        type=parse_duration,
        metavar="DURATION",
        default="5s",
        show_default=True,
        help="Time between two reads with --watch.",
    )
    @wraps(command)
    def watched(*args: Any, watch: bool, interval: float, **options: Any) -> object:  # noqa: ANN401 - click's
        def run_once() -> None:
            with suppress(click.exceptions.Exit):
                try:
                    command(*args, **options)
                except TopologyError as error:
                    print_error(error)

        if not watch:
            return command(*args, **options)
        watch_output(run_once, interval_s=interval, pause=time.sleep)
        return None

    return watched  # type: ignore[return-value] # the options are keyword arguments
