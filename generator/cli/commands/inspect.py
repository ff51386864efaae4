"""`toponaut inspect`: what files hold, whatever their format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.output import (
    MAX_PROBLEMS_SHOWN,
    output_option,
    print_document,
    print_problems,
    shorten_names,
)
from generator.ingest.file_inspection import FileInspection, inspect_bytes, inspect_strictly
from generator.store.local_files import MAX_SWEEP_BYTES, read_whole_file
from topology.model.errors import ParseError, show

_MAX_PROBLEMS_PER_FILE = 100
_CONTENT_COUNTS = (
    *("devices", "neighbors", "ports", "reports", "hypernodes", "nodes", "domains", "groups"),
    *("cables", "gpus", "fabrics"),
)
"""Counts of which one at least is above zero where anything usable was read."""


@click.command(name="inspect")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--strict", is_flag=True, help="Refuse a file with anything bad in it, and list all that is."
)
@output_option
@click.pass_context
def command(ctx: click.Context, /, output: str, files: tuple[Path, ...], *, strict: bool) -> None:
    """Tell what each file is, how many devices, ports and links are in it, and what is bad.

    Knows output of ibnetdiscover, ibdiagnet, opensm, lldpcli, snmpwalk and nvidia-smi, reports,
    HyperNodes, Fabrics, node lists, cabling plans, trees and placement requests, and tells them
    apart by content. A bad line costs itself, unless --strict.
    """
    inspect = inspect_strictly if strict else inspect_bytes
    found = [(file, _inspect_file(file, inspect)) for file in files]
    limit = None if strict else _MAX_PROBLEMS_PER_FILE
    document = [_render(file, one, limit) for file, one in found]
    print_document(
        document, output, text=lambda: "\n".join(_render_text(file, one) for file, one in found)
    )
    problems = [problem for _, one in found for problem in one.problems]
    if output == "text":
        print_problems(problems, limit=len(problems) if strict else MAX_PROBLEMS_SHOWN)
    if not any(any(one.counts.get(key, 0) for key in _CONTENT_COUNTS) for _, one in found):
        ctx.exit(ExitCode.NOTHING)
    ctx.exit(ExitCode.SKIPPED if problems else ExitCode.OK)


def _inspect_file(file: Path, inspect: Callable[..., FileInspection]) -> FileInspection:
    raw = read_whole_file(file, MAX_SWEEP_BYTES)
    if isinstance(raw, ParseError):
        return FileInspection("unknown", {}, (), (raw,))
    return inspect(raw, source=show(str(file), 1024))


def _render(file: Path, found: FileInspection, limit: int | None) -> dict[str, Any]:
    return {
        "file": str(file),
        "format": found.format,
        "counts": dict(found.counts),
        "unresolved": list(found.unresolved_guids),
        "problems": [str(problem) for problem in found.problems[:limit]],
    }


def _render_text(file: Path, found: FileInspection) -> str:
    counts = ", ".join(f"{count} {key.replace('_', ' ')}" for key, count in found.counts.items())
    line = f"{show(str(file), 1024)}: {found.format}: {counts or 'nothing'}"
    if found.unresolved_guids:
        count = len(found.unresolved_guids)
        line += f"\n  {count} CAs name no host: {shorten_names(found.unresolved_guids)}"
    return line
