"""What `toponaut` prints: one document on stdout as JSON or YAML, or text for people.

Everything that describes it (skipped input, progress) goes to stderr, so that stdout is data.
Tables are drawn by rich on a terminal and are plain aligned lines in a pipe.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import click
import yaml

from topology.model.errors import ParseError, show

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MAX_PROBLEMS_SHOWN: Final = 20
MAX_MESSAGE: Final = 2000
"""Characters of a message on stderr: a path, an excerpt and some words."""

output_option: Final[Callable[..., Any]] = click.option(
    "--output",
    "-o",
    type=click.Choice(["text", "json", "yaml"]),
    default="text",
    show_default=True,
    help="Form of what is printed.",
)


def print_document(document: object, output: str, *, text: Callable[[], str]) -> None:
    """Print one document in the form asked for; `text` is called for text alone."""
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=True))
    elif output == "yaml":
        shown = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=False)
        click.echo(shown, nl=False)
    else:
        click.echo(text())


def print_problems(problems: Sequence[ParseError], *, limit: int = MAX_PROBLEMS_SHOWN) -> None:
    """List on stderr what was skipped: the first ones, and how many more."""
    for problem in problems[:limit]:
        click.echo(f"skipped: {show(str(problem), MAX_MESSAGE)}", err=True)
    more = len(problems) - limit
    if more > 0:
        click.echo(f"skipped: {more} more", err=True)


def render_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table; foreign text must have been shown by `errors.show` before."""
    rows = [tuple(row) for row in rows]
    if sys.stdout.isatty():
        return _render_rich_table(header, rows)
    widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def _render_rich_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from rich.console import Console  # noqa: PLC0415 - a pipe should not pay for it
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    console = Console()
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for title in header:
        grid.add_column(title, overflow="fold")
    for row in rows:
        grid.add_row(*map(escape, row))
    with console.capture() as capture:
        console.print(grid)
    return capture.get().rstrip("\n")


def shorten_names(names: Sequence[str], limit: int = 6) -> str:
    """Return names in one line, the first ones and how many more."""
    more = len(names) - limit
    shown = " ".join(show(name) for name in names[:limit])
    return f"{shown} +{more}" if more > 0 else shown
