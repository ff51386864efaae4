"""Printed output: one document on stdout as JSON or YAML, or text for people.

Skipped input and progress go to stderr, so that stdout is data. On a terminal rich draws the
tables and a bar of the progress; in a pipe tables are plain aligned lines.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import shutil
import sys
import time
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from runtime.progress import Progress
from topology.model.errors import ParseError, TopologyError, show
from topology.model.name_ranges import fold_names

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_PIECES_PER_BLOCK: Final = 100_000
_MAX_RANGE_CHARS: Final = 120
_FOLDABLE: Final = re.compile(r"[\w.:-]+\Z", re.ASCII)
"""Names that cannot be confused with the separators of a list of ranges."""
MAX_PROBLEMS_SHOWN: Final = 20
MAX_CELL: Final = 32_000
"""Characters of a cell: a spreadsheet holds 32,767."""
MAX_MESSAGE: Final = 2000
"""Characters of one message on stderr, enough for a path and an excerpt."""
PROGRESS_DELAY_S: Final = 2.0
"""Work that is shorter shows nothing: a line that flashes helps nobody."""
_UPDATES_PER_S: Final = 4.0
WIDE: Final = "wide"
"""The output that lists every node by its full name."""
NAME: Final = "name"
"""The output format for scripts: one name per line."""
CSV: Final = "csv"
"""The output format for spreadsheets."""
SEVERITY_COLORS: Final = {"error": "red", "warning": "yellow", "info": "blue"}
_SEVERITY_TITLE: Final = "SEVERITY"
_PIECES: Final = re.compile(r"\s*(?:[^\s,]+,*|,+)")
"""What a line may end after: a word, or a part of a list or range with its comma."""
_INDENT: Final = 2
_GAP: Final = 2
"""Blanks between two columns."""
_GBPS: Final = 1_000_000_000
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet runs a cell that starts with one of these as a formula. Names are untrusted."""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns and rows, for people and for spreadsheets. Cells are escaped with `errors.show`."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    total: str = ""
    """A line below the rows in text."""
    empty: str = ""
    """The sentence that is printed instead of a table without rows."""


Text = str | Table | Iterable[str | Table]
"""Text for people: lines and tables, from top to bottom."""


def print_document(
    document: object,
    output: str,
    *,
    text: Callable[[], Text],
    table: Callable[[], Table] | None = None,
) -> None:
    """Print one document in the chosen format; only what the format needs is called.

    Args:
        document: the document that JSON and YAML print.
        output: the format.
        text: the text or table that text and wide print; CSV prints it too if it is a table.
        table: the table that CSV prints instead.
    """
    if output == "json":
        _print_json(document)
    elif output == "yaml":
        _print_yaml(document)
    else:
        shown = table() if output == CSV and table is not None else text()
        if output == CSV and isinstance(shown, Table):
            print_csv(shown.columns, shown.rows)
        else:
            click.echo(render_text(shown))


def render_text(text: Text) -> str:
    """Return the lines and tables, each table with its titles in capitals."""
    parts = (text,) if isinstance(text, str | Table) else text
    return "\n".join(
        _wrap_lines(part) if isinstance(part, str) else _render_part(part) for part in parts
    )


def _wrap_lines(text: str) -> str:
    """Return a text in lines that fit a terminal; in a pipe, the text as it is."""
    if not sys.stdout.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + _INDENT)
        first, *rest = wrap_pieces(line, width, indent)
        lines += [first, *rest]
    return "\n".join(lines)


def wrap_pieces(text: str, width: int, indent: str = "") -> list[str]:
    """Return a line in lines of at most `width` characters; colors do not count.

    A line ends at a blank or after a comma, never before a bracket or inside a name; a longer name
    has a line of its own, as it is.

    Args:
        text: text without line breaks.
        width: the most columns of a line.
        indent: the blanks before each line but the first.
    """
    lines = [""]
    for piece in _PIECES.findall(text):
        if lines[-1].strip() and len(click.unstyle(lines[-1] + piece)) > width:
            lines.append(indent + piece.lstrip())
        else:
            lines[-1] += piece
    return lines


def _render_part(table: Table) -> str:
    if table.empty and not table.rows:
        return table.empty
    shown = render_table([column.upper() for column in table.columns], table.rows)
    return f"{shown}\n{table.total}" if table.total else shown


def _print_json(document: object) -> None:
    """Print JSON in blocks: the text of a large document would take several times its memory."""
    pieces = json.JSONEncoder(indent=2, ensure_ascii=True).iterencode(document)
    while block := "".join(islice(pieces, _PIECES_PER_BLOCK)):
        click.echo(block, nl=False)
    click.echo()


def _print_yaml(document: object) -> None:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    shown = yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=False)
    click.echo(shown, nl=False)


def print_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows for a spreadsheet, as `render_csv` does."""
    click.echo(render_csv(header, rows), nl=False)


def render_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows for a spreadsheet; a cell that would be a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (header, *rows):
        writer.writerow([_build_csv_cell(cell) for cell in row])
    return text.getvalue()


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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    widths = _choose_widths([header, *rows], console.width)
    console.width = max(console.width, sum(widths) + _GAP * len(widths))
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for title, width in zip(header, widths, strict=True):
        grid.add_column(title, width=width, no_wrap=True)
    for row in rows:
        lines = ("\n".join(wrap_pieces(*cell)) for cell in zip(row, widths, strict=True))
        styles = (
            SEVERITY_COLORS.get(cell, "") if title == _SEVERITY_TITLE else ""
            for cell, title in zip(row, header, strict=True)
        )
        grid.add_row(*map(Text, lines, styles))
    with console.capture() as capture:
        console.print(grid)
    return "\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n"))


def _choose_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the widths of columns: the widest ones give way until the table fits a terminal.

    No column is narrower than the longest piece in it: rich would cut names, or break them.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    least = [
        max(len(piece.strip()) for cell in (*column, "-") for piece in _PIECES.findall(cell))
        for column in columns
    ]
    room = width - _GAP * (len(columns) - 1)
    while sum(widths) > room:
        spare = [(now, at) for at, now in enumerate(widths) if now > least[at]]
        if not spare:
            break
        widths[max(spare)[1]] -= 1
    return widths


def show_count(num: int, noun: str) -> str:
    """Return a number and its noun: `1 pod`, `3 pods`, `2 leaves`."""
    return f"{num} {noun if num == 1 else pluralize(noun)}"


def show_severity(num: int, severity: str) -> str:
    """Return the number of findings of a severity: `2 errors`, `1 warning`, `3 info`."""
    return f"{num} {severity}" if severity == "info" else show_count(num, severity)


def show_rate(rate_bps: int | None) -> str:
    """Return a rate in Gb/s; `-` for an unknown rate."""
    return f"{rate_bps / _GBPS:g} Gb/s" if rate_bps else "-"


def pluralize(noun: str) -> str:
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


class PlacedPod(NamedTuple):
    """A pod of a placement: its number in its group, its domain and its node."""

    group: str
    number: int
    domain: str
    node: str


def list_pod_rows(pods: Iterable[PlacedPod], output: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield (group, first and last number, domain, nodes) of each run of pods in one domain."""
    for (group, domain), run in groupby(pods, lambda pod: (pod.group, pod.domain)):
        members = list(run)
        first, last = members[0].number, members[-1].number
        nodes = list(dict.fromkeys(pod.node for pod in members))
        span = str(first) if first == last else f"{first}-{last}"
        yield show(group), span, show(domain), list_nodes(nodes, output)


@contextmanager
def open_progress(
    first: str, *, every_s: float = math.inf, delay_s: float = PROGRESS_DELAY_S
) -> Iterator[Progress]:
    """Yield the progress of work that begins; nothing of it stays on the terminal.

    Args:
        first: the name of the first step.
        every_s: without a terminal, a line is printed when so many seconds have passed.
        delay_s: on a terminal, a line with a bar is drawn when so many seconds have passed.
    """
    # What captures stderr to print it later, such as `--watch`, has no use for a bar.
    if not (isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr.isatty()):
        yield _ProgressLines(every_s)
        return
    bar = _ProgressBar(delay_s)
    bar.show(first)
    try:
        yield bar
    finally:
        bar.close()


class _ProgressLines:
    """Prints a line if enough time has passed since the last one."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._last_s = time.monotonic()

    def show(self, text: str, *, num_done: int | None = None, total: int | None = None) -> None:
        if time.monotonic() - self._last_s < self._every_s:
            return
        self._last_s = time.monotonic()
        counts = f": {num_done:,} of {total:,}" if num_done is not None and total else ""
        click.echo(f"{text}{counts}", err=True)


class _ProgressBar:
    """Draws a line with a bar, once the delay is over."""

    def __init__(self, delay_s: float) -> None:
        self._lock = Lock()
        self._step = _ProgressStep("")
        self._drawn: RichProgress | None = None
        self._is_closed = False
        self._timer = Timer(delay_s, self._draw)
        self._timer.daemon = True
        self._timer.start()

    def show(self, text: str, *, num_done: int | None = None, total: int | None = None) -> None:
        with self._lock:
            self._step = _ProgressStep(text, num_done, total)
            self._update()

    def close(self) -> None:
        """Remove the line; it is never drawn again."""
        self._timer.cancel()
        with self._lock:
            self._is_closed = True
            if self._drawn is not None:
                self._drawn.stop()

    def _draw(self) -> None:
        drawn = _build_bar()
        with self._lock:
            if self._is_closed:
                return
            self._drawn = drawn
            self._update()
            drawn.start()

    def _update(self) -> None:
        if self._drawn is None:
            return
        step = self._step
        task = next(iter(self._drawn.tasks), None)
        if task is None or task.description != step.text or task.total != step.total:
            if task is not None:
                self._drawn.remove_task(task.id)  # a task cannot lose its total
            self._drawn.add_task(step.text, total=step.total, completed=step.num_done or 0)
        else:
            self._drawn.update(task.id, completed=step.num_done or 0)


class _ProgressStep(NamedTuple):
    """What is done now."""

    text: str
    num_done: int | None = None
    total: int | None = None


def _build_bar() -> RichProgress:
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        console=Console(stderr=True),
        refresh_per_second=_UPDATES_PER_S,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
