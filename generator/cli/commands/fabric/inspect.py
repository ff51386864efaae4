"""`toponaut inspect`: show the content of files of any known format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generator.cli import options
from generator.cli.exit_codes import ExitCode, end
from generator.cli.output import (
    MAX_PROBLEMS_SHOWN,
    print_document,
    print_problems,
    shorten_names,
    show_count,
)
from topology.model.errors import ParseError, show

if TYPE_CHECKING:
    from generator.ingest.file_inspection import FileInspection

_MAX_PROBLEMS_PER_FILE: Final = 100
_CONTENT_COUNTS: Final = (
    *("devices", "neighbors", "ports", "reports", "hypernodes", "nodes", "domains", "groups"),
    *("cables", "gpus", "fabrics"),
)
"""A file is usable if at least one of these counts is above zero."""


@options.command(
    "inspect",
    examples=(
        "toponaut inspect fabric/ibnetdiscover/*.txt fabric/nodes.yaml",
        "toponaut inspect --strict fabric/snmpwalk/* -o json",
    ),
)
def command(
    *,
    files: tuple[Path, ...] = options.argument(nargs=-1, required=True),
    strict: bool = options.option("Refuse a file that has any problem, and list all its problems."),
    output: str = options.OUTPUT,
) -> None:
    """Show the format of each file, the number of devices, ports and links in it, and its problems.

    Recognizes, by content, output of ibnetdiscover, ibdiagnet, opensm, lldpcli, snmpwalk and
    nvidia-smi, reports, HyperNodes, Fabrics, node lists, cabling plans, trees and placement
    requests. A bad line is skipped, and the rest is read, unless --strict is given.
    """
    from generator.ingest.file_inspection import inspect_bytes, inspect_strictly

    inspect = inspect_strictly if strict else inspect_bytes
    rows = [(file, _inspect_file(file, inspect)) for file in files]
    limit = None if strict else _MAX_PROBLEMS_PER_FILE
    document = [_render(file, inspection, limit) for file, inspection in rows]
    print_document(document, output, text=lambda: "\n".join(_render_text(*row) for row in rows))
    problems = [problem for _, inspection in rows for problem in inspection.problems]
    if output == "text":
        print_problems(problems, limit=len(problems) if strict else MAX_PROBLEMS_SHOWN)
    if not any(inspection.counts.get(key) for _, inspection in rows for key in _CONTENT_COUNTS):
        end(ExitCode.NOTHING)
    end(ExitCode.SKIPPED if problems else ExitCode.OK)


def _inspect_file(file: Path, inspect: Callable[..., FileInspection]) -> FileInspection:
    from generator.ingest.file_inspection import FileInspection
    from generator.store.local_files import MAX_SWEEP_BYTES, read_whole_file

    raw = read_whole_file(file, MAX_SWEEP_BYTES)
    if isinstance(raw, ParseError):
        return FileInspection("unknown", {}, (), (raw,))
    return inspect(raw, source=show(str(file), 1024))


def _render(file: Path, inspection: FileInspection, limit: int | None) -> dict[str, Any]:
    return {
        "file": str(file),
        "format": inspection.format,
        "counts": dict(inspection.counts),
        "unresolved": list(inspection.unresolved_guids),
        "problems": [str(problem) for problem in inspection.problems[:limit]],
    }


def _render_text(file: Path, inspection: FileInspection) -> str:
    counts = ", ".join(_show_key(num, key) for key, num in inspection.counts.items())
    line = f"{show(str(file), 1024)}: {inspection.format}: {counts or 'no content'}"
    if inspection.unresolved_guids:
        hcas = show_count(len(inspection.unresolved_guids), "HCA")
        line += f"\n  {hcas} without a host name: {shorten_names(inspection.unresolved_guids)}"
    return line


def _show_key(num: int, key: str) -> str:
    """Return a count with its key as words: `1 bad line`, `2 bad lines`, `3 unplaced`."""
    words = key.replace("_", " ")
    if num == 1:
        words = words.removesuffix("es") if words.endswith("ches") else words.removesuffix("s")
    return f"{num} {words}"
