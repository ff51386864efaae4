"""`toponaut diff`: compare the fabric with a cabling plan, and list the plugs to move.

- witness: `--against`, the cables compared with labels or HyperNodes
- since: `--since`, the tree compared with that of an earlier time
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.commands.diff.since import print_tree_diff
from generator.cli.commands.diff.witness import print_witness_diff
from generator.cli.exit_codes import ExitCode, exit_with_problems, exit_without_data
from generator.cli.output import open_progress, print_document, render_table, show_count
from generator.cli.silence_file import print_expired_silences, read_silences
from generator.cli.source_values import parse_sources
from generator.ingest.sources import NO_SOURCE_MESSAGE, read_inputs
from generator.observe.domain_witness import Witness
from generator.store.file_kinds import FileKind, expect_kind
from generator.store.local_files import read_whole_file
from runtime.clock import utc_now
from topology.cabling.plan_diff import (
    CablingDiff,
    Difference,
    Move,
    MoveKind,
    ObservedCable,
    compare_cabling,
)
from topology.findings.silences import SilenceSplit, SilenceSubject, render_silence, split_silenced
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan, PlannedCable, show_cable, show_end
from topology.model.errors import ConfigError, ParseError, show
from topology.model.facts import PortName
from topology.model.tree import API_VERSION
from topology.sources.cabling.formats import parse_cabling

MAX_PLAN_BYTES: Final = 256 << 20
_MAX_UNPLANNED_SHOWN: Final = 20
_MAX_ROWS_SHOWN: Final = 100
"""Rows of a table without `--all`, in every format."""
_MESSAGE_CHARS: Final = 600


class _DiffResult(NamedTuple):
    diff: CablingDiff
    rows: SilenceSplit[Difference]
    moves: tuple[Move, ...]
    """Moves that repair the rows that are not silenced."""


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    cabling: Path | None,
    silence: Path | None,
    check: bool,
    all: bool,  # noqa: A002 - the option's name, which its variable has too
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut diff` with the values of its options."""
    against, since = options.pop("against"), options.pop("since")
    if sum(given is not None for given in (cabling, against, since)) != 1:
        raise click.UsageError("give one thing to compare with: --cabling, --against or --since")
    if since is None and (options.pop("store"), options.pop("history")) != (None, None):
        raise click.UsageError("--store and --history apply to --since only")
    if cabling is None:
        if silence is not None:
            raise click.UsageError("--silence applies to --cabling only")
        if since is not None:
            limit = None if all else _MAX_ROWS_SHOWN
            print_tree_diff(ctx, since, options, output=output, check=check, limit=limit)
            return
        print_witness_diff(ctx, Witness(against), options, output=output, check=check)
        return
    _print_cabling_diff(
        ctx, cabling, options, silence=silence, shown=_Shown(output, check=check, all_rows=all)
    )


class _Shown(NamedTuple):
    """How the differences are printed, and whether they fail."""

    output: str
    check: bool
    all_rows: bool


def _print_cabling_diff(
    ctx: click.Context,
    cabling: Path,
    options: dict[str, Any],
    *,
    silence: Path | None,
    shown: _Shown,
) -> None:
    sources = parse_sources(options)
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE_MESSAGE)
    if sources.is_tree:
        raise click.UsageError("HyperNodes and labels have no cables: give another source")
    if sources.planes or sources.plane:
        raise click.UsageError("--cabling compares all networks: give no --planes and no --plane")
    plan = read_plan(cabling)
    silences = read_silences(silence)
    with open_progress("reading the sources") as progress:
        inputs = read_inputs(sources, progress=progress)
    if not inputs.claims:
        exit_without_data(inputs.problems)
    if inputs.cuts:
        # A cable that is absent from a cut input is not missing, so no move can be advised.
        not_compared = ParseError("not compared with the plan: an input is cut", source="diff")
        exit_with_problems(ctx, (not_compared, *plan.errors, *inputs.problems))
    with open_progress("comparing the cables"):
        diff = compare_cabling(plan, build_fabric(inputs.all_claims))
    rows = split_silenced(
        diff.differences, silences, today=utc_now().date(), subject=_build_subject
    )
    groups = {row.group for row in rows.active}
    result = _DiffResult(diff, rows, tuple(move for move in diff.moves if move.group in groups))
    output = shown.output
    limit = None if shown.all_rows else _MAX_ROWS_SHOWN
    print_document(
        _render_document(result, limit) if output != "text" else None,
        output,
        text=lambda: _render_text(result, limit),
    )
    print_expired_silences(rows.expired)
    failed = ExitCode.CHECK_FAILED if shown.check and rows.active else None
    exit_with_problems(ctx, (*plan.errors, *diff.errors, *inputs.problems), failed)


def read_plan(file: Path) -> CablingPlan:
    """Read a cabling plan.

    Raises:
        ConfigError: the file cannot be read, or has no cable, so that every cable would be extra.
    """
    source = show(str(file), 1024)
    raw = read_whole_file(file, MAX_PLAN_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    plan = parse_cabling(raw, source=source)
    with expect_kind(file, FileKind.CABLING_PLAN):
        if not plan.cables:
            reason = f": {plan.errors[0]}" if plan.errors else ""
            raise ConfigError(f"{source}: no cables in this file{reason}")
    return plan


def _build_subject(row: Difference) -> SilenceSubject:
    return SilenceSubject(row.kind.value, row.ends)


def _render_document(result: _DiffResult, limit: int | None) -> dict[str, Any]:
    """Return the tables, each with at most `limit` rows; `leftOut` counts the others."""
    tables: dict[str, Sequence[object]] = {
        "rows": result.rows.active,
        "moves": result.moves,
        "silenced": result.rows.silenced,
        "unplanned": result.diff.unplanned,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "CablingDiff",
        "asPlanned": result.diff.num_as_planned,
        "rows": [_render_row(row) for row in result.rows.active[:limit]],
        "moves": [_render_move(move) for move in result.moves[:limit]],
        "silenced": [
            {
                **_render_row(silenced.row),
                "reason": silenced.silence.reason,
                "until": silenced.silence.until.isoformat(),
            }
            for silenced in result.rows.silenced[:limit]
        ],
        "expired": [render_silence(silence) for silence in result.rows.expired],
        "unplanned": [
            {**_render_cable(unplanned.cable), "reason": unplanned.reason.value}
            for unplanned in result.diff.unplanned[:limit]
        ],
        "leftOut": {
            name: 0 if limit is None else max(0, len(rows) - limit) for name, rows in tables.items()
        },
    }


def _render_row(row: Difference) -> dict[str, Any]:
    return {
        "kind": row.kind.value,
        "planned": [_render_planned(cable) for cable in row.planned],
        "observed": [_render_cable(cable) for cable in row.observed],
        "message": row.message,
        **({"names": {"plan": row.names[0], "fabric": row.names[1]}} if row.names else {}),
    }


def _render_planned(cable: PlannedCable) -> dict[str, Any]:
    a, b = cable.ends
    return {"a": _render_end(a), "b": _render_end(b), "line": cable.line}


def _render_cable(cable: ObservedCable) -> dict[str, Any]:
    return {"a": _render_end(cable.a), "b": _render_end(cable.b)}


def _render_end(end: PortName) -> dict[str, str]:
    return {"device": show(end.device), "port": show(end.port)}


def _render_move(move: Move) -> dict[str, Any]:
    """Return a move as JSON; `from` and `to` are null if a whole cable is added or removed."""
    return {
        "op": move.kind.value,
        "cable": _render_cable(move.cable),
        "from": _render_end(move.cable.b) if move.target else None,
        "to": _render_end(move.target) if move.target else None,
        "pullFirst": move.is_target_full,
    }


def _render_text(result: _DiffResult, limit: int | None) -> str:
    """Return the tables, each with at most `limit` rows and the number of the others."""
    active, moves = result.rows.active, result.moves
    parts = [
        *_render_section("", ("KIND", "WHAT TO DO"), map(_render_row_cells, active[:limit])),
        *_render_more(active, limit),
        *_render_section(
            "moves, in this order:",
            ("STEP", "ACTION"),
            [(str(step), _describe_move(move)) for step, move in enumerate(moves[:limit], 1)],
        ),
        *_render_more(moves, limit),
        *_render_section(
            "silenced:",
            ("KIND", "UNTIL", "REASON", "DIFFERENCE"),
            [
                (
                    silenced.row.kind.value,
                    silenced.silence.until.isoformat(),
                    show(silenced.silence.reason, _MESSAGE_CHARS),
                    show(silenced.row.message, _MESSAGE_CHARS),
                )
                for silenced in result.rows.silenced[:limit]
            ],
        ),
        *_render_more(result.rows.silenced, limit),
        *_render_unplanned(result.diff),
        _render_total(result),
    ]
    return "\n".join(parts)


def _render_more(rows: Sequence[object], limit: int | None) -> Iterable[str]:
    """Return the line that counts the rows of a table that are not shown."""
    more = 0 if limit is None else len(rows) - limit
    return (f"and {more} more; --all prints them", "") if more > 0 else ()


def _render_section(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterable[str]:
    """Return the lines of a titled table; none without rows."""
    rows = list(rows)
    if not rows:
        return ()
    return (*((title,) if title else ()), render_table(header, rows), "")


def _render_row_cells(row: Difference) -> tuple[str, str]:
    return row.kind.value, show(row.message, _MESSAGE_CHARS)


def _describe_move(move: Move) -> str:
    fixed_end, moved_end = move.cable
    match move.kind:
        case MoveKind.MOVE if move.target:
            target = show_end(move.target)
            first = (
                f"pull the plug out of {target} (a later step moves it); "
                if move.is_target_full
                else ""
            )
            return (
                f"{first}move the plug in {show_end(moved_end)} to {target} "
                f"(the other end of the cable stays in {show_end(fixed_end)})"
            )
        case MoveKind.ADD:
            return f"plug in a cable between {show_cable(fixed_end, moved_end)}"
        case _:
            return f"remove the cable between {show_cable(fixed_end, moved_end)}"


def _render_unplanned(diff: CablingDiff) -> Iterable[str]:
    shown = [
        (show_end(unplanned.cable.a), show_end(unplanned.cable.b), unplanned.reason.value)
        for unplanned in diff.unplanned[:_MAX_UNPLANNED_SHOWN]
    ]
    yield from _render_section("not in the plan, no fault:", ("END", "OTHER END", "REASON"), shown)
    more = len(diff.unplanned) - len(shown)
    if more:
        yield f"and {more} more"


def _render_total(result: _DiffResult) -> str:
    rows = result.rows
    num = len(rows.active)
    parts = [
        show_count(num, "difference") if num else "no differences",
        f"{show_count(result.diff.num_as_planned, 'cable')} as planned",
        *([show_count(len(result.moves), "move")] if result.moves else ()),
        *([f"{len(rows.silenced)} silenced"] if rows.silenced else ()),
    ]
    return ", ".join(parts)
