"""Printed output: one document on stdout as JSON or YAML, or text for people.

Skipped input and progress go to stderr, so that stdout is data. On a terminal rich draws the
tables; in a pipe they are plain aligned lines.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final

import click
import yaml

from topology.model.errors import ParseError, TopologyError, show
from topology.model.name_ranges import fold_names

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_PIECES_PER_BLOCK: Final = 100_000
_MAX_RANGE_CHARS: Final = 120
_FOLDABLE: Final = re.compile(r"[\w.:-]+\Z", re.ASCII)
"""Names that cannot be confused with the separators of a list of ranges."""
MAX_PROBLEMS_SHOWN: Final = 20
MAX_CELL: Final = 32_000
"""Characters of a cell: a spreadsheet holds 32,767."""
MAX_MESSAGE: Final = 2000
"""Characters of one message on stderr, enough for a path and an excerpt."""

WIDE: Final = "wide"
"""The output that lists every node by its full name."""
NAME: Final = "name"
"""The output format for scripts: one name per line."""
CSV: Final = "csv"
"""The output format for spreadsheets."""
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that starts with one of these as a formula. Names are untrusted."""


def build_output_option(*formats: str, note: str = "") -> Callable[..., Any]:
    """Return the option `--output` with text, JSON, YAML and further formats."""
    return click.option(
        "--output",
        "-o",
        type=click.Choice(["text", *formats, "json", "yaml"]),
        default="text",
        show_default=True,
        help=f"Format of the output.{note}",
    )


output_option: Final = build_output_option()
wide_output_option: Final = build_output_option(
    WIDE, note=" text prints nodes as ranges, wide lists every node."
)


def print_document(document: object, output: str, *, text: Callable[[], str]) -> None:
    """Print one document in the chosen format; `text` is called only for text."""
    if output == "json":
        _print_json(document)
    elif output == "yaml":
        shown = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, allow_unicode=False)
        click.echo(shown, nl=False)
    else:
        click.echo(text())


def _print_json(document: object) -> None:
    """Print JSON in blocks: the text of a large document is a multiple of the document."""
    pieces = json.JSONEncoder(indent=2, ensure_ascii=True).iterencode(document)
    while block := "".join(islice(pieces, _PIECES_PER_BLOCK)):
        click.echo(block, nl=False)
    click.echo()


def print_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows for a spreadsheet; a cell that would be a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (header, *rows):
        writer.writerow([_build_csv_cell(cell) for cell in row])
    click.echo(text.getvalue(), nl=False)


def _build_csv_cell(cell: object) -> object:
    if not isinstance(cell, str):
        return cell
    shown = show(cell, MAX_CELL)
    return f"'{shown}" if shown.startswith(_FORMULA_STARTS) else shown


def paint(text: str, style: str) -> str:
    """Return text in a color, or bold, on a terminal; unchanged in a pipe or with NO_COLOR.

    Source: https://no-color.org.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return click.style(text, bold=True) if style == "bold" else click.style(text, fg=style)


def can_draw_lines() -> bool:
    """Return whether stdout has the characters of box drawing: a locale may know ASCII only."""
    try:
        "├─└│".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def print_error(error: TopologyError) -> None:
    """Print the one line of an error on stderr."""
    click.echo(f"error: {show(str(error), MAX_MESSAGE)}", err=True)


def print_problems(problems: Sequence[ParseError], *, limit: int = MAX_PROBLEMS_SHOWN) -> None:
    """List skipped input on stderr: the first problems, and how many more there are."""
    for problem in problems[:limit]:
        click.echo(f"skipped: {show(str(problem), MAX_MESSAGE)}", err=True)
    more = len(problems) - limit
    if more > 0:
        click.echo(f"skipped: {more} more", err=True)


def render_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table. Escape foreign text with `errors.show` first."""
    rows = [tuple(row) for row in rows]
    if sys.stdout.isatty():
        return _render_rich_table(header, rows)
    widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    )


def _render_rich_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    from rich.console import Console  # noqa: PLC0415 - slow to import, and a pipe needs none of it
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


def show_count(num: int, noun: str) -> str:
    """Return a number and its noun: `1 pod`, `3 pods`, `2 leaves`."""
    return f"{num} {noun if num == 1 else _pluralize(noun)}"


def _pluralize(noun: str) -> str:
    """Return the plural of a noun or of a tier's name; a name that ends in a digit stays."""
    if noun.endswith("leaf"):
        return f"{noun.removesuffix('f')}ves"
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    return f"{noun}s" if noun[-1:].isalpha() else noun


def shorten_names(names: Sequence[str], limit: int = 6) -> str:
    """Return names on one line: the first ones, and how many more there are."""
    more = len(names) - limit
    shown = " ".join(show(name) for name in names[:limit])
    return f"{shown} +{more}" if more > 0 else shown


def list_nodes(names: Sequence[str], output: str, *, max_chars: int = _MAX_RANGE_CHARS) -> str:
    """Return the nodes on one line, in the given order: as ranges, or each with `-o wide`.

    Ranges are cut at `max_chars`; the number of the other nodes follows.
    """
    if output == WIDE:
        return " ".join(show(name, MAX_MESSAGE) for name in names)
    if not all(map(_FOLDABLE.match, names)):
        return shorten_names(names)
    folded = fold_names(names)
    if len(folded) <= max_chars:
        return folded
    num = bisect(range(1, len(names)), max_chars, key=lambda n: len(fold_names(names[:n])))
    num = max(num, 1)
    return f"{show(fold_names(names[:num]), MAX_MESSAGE)} +{len(names) - num}"
