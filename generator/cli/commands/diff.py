"""`toponaut diff`: how the fabric differs from a cabling plan, and which plugs to move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.observation import exit_with_problems, exit_without_data
from generator.cli.output import output_option, print_document, render_table
from generator.cli.silence import print_expired_silences, read_silences, silence_option
from generator.cli.source_options import source_options, parse_sources
from generator.ingest.sources import NO_SOURCE_MESSAGE, read_inputs
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
_MESSAGE_CHARS: Final = 600


class _DiffResult(NamedTuple):
    diff: CablingDiff
    fetch_rows: SilenceSplit[Difference]
    moves: tuple[Move, ...]
    """Of the rows that are not silenced."""


@click.command(name="diff")
@source_options
@click.option(
    "--cabling",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="The plan: CSV of device_a,port_a,device_b,port_b, a NetBox cable export (CSV or JSON), "
    "an ibdm topology file, or a topology.dot.",
)
@silence_option
@click.option("--check", is_flag=True, help="Exit with 5 when anything differs.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    *,
    cabling: Path,
    silence: Path | None,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Compare the fabric with a cabling plan.

    Prints what is swapped, in a wrong port, missing or extra, and the shortest list of moves that
    mends it. Cables that the plan does not speak of are listed apart and are no fault.
    """
    sources = parse_sources(options)
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE_MESSAGE)
    if sources.hypernodes:
        raise click.UsageError("--hypernodes holds no cables; name another source")
    plan = read_plan(cabling)
    silences = read_silences(silence)
    inputs = read_inputs(sources)
    if not inputs.claims:
        exit_without_data(inputs.problems)
    diff = compare_cabling(plan, build_fabric(inputs.all_claims))
    rows = split_silenced(diff.fetch_rows, silences, today=utc_now().date(), subject=_build_subject)
    groups = {row.group for row in rows.active}
    answer = _DiffResult(diff, rows, tuple(move for move in diff.moves if move.group in groups))
    print_document(_render_document(answer), output, text=lambda: _render_text(answer))
    print_expired_silences(rows.expired)
    failed = ExitCode.CHECK_FAILED if check and rows.active else None
    exit_with_problems(ctx, (*plan.errors, *diff.errors, *inputs.problems), failed)


def read_plan(file: Path) -> CablingPlan:
    """Read a cabling plan.

    Raises:
        ConfigError: it cannot be read, or holds no cable: then everything would be extra.
    """
    source = show(str(file), 1024)
    raw = read_whole_file(file, MAX_PLAN_BYTES)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    plan = parse_cabling(raw, source=source)
    if not plan.cables:
        why = f": {plan.errors[0]}" if plan.errors else ""
        raise ConfigError(f"{source}: no cable in it{why}")
    return plan


def _build_subject(row: Difference) -> SilenceSubject:
    return SilenceSubject(row.kind.value, row.ends)


def _render_document(answer: _DiffResult) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "CablingDiff",
        "asPlanned": answer.diff.num_as_planned,
        "rows": [_render_row(row) for row in answer.fetch_rows.active],
        "moves": [_render_move(move) for move in answer.moves],
        "silenced": [
            {
                **_render_row(found.row),
                "reason": found.silence.reason,
                "until": found.silence.until.isoformat(),
            }
            for found in answer.fetch_rows.silenced
        ],
        "expired": [render_silence(silence) for silence in answer.fetch_rows.expired],
        "unplanned": [
            {**_render_cable(found.cable), "reason": found.reason.value}
            for found in answer.diff.unplanned
        ],
    }


def _render_row(row: Difference) -> dict[str, Any]:
    return {
        "kind": row.kind.value,
        "planned": [_render_planned(cable) for cable in row.planned],
        "observed": [_render_cable(cable) for cable in row.observed],
        "message": row.message,
    }


def _render_planned(cable: PlannedCable) -> dict[str, Any]:
    a, b = cable.ends
    return {"a": _render_end(a), "b": _render_end(b), "line": cable.line}


def _render_cable(cable: ObservedCable) -> dict[str, Any]:
    return {"a": _render_end(cable.a), "b": _render_end(cable.b)}


def _render_end(end: PortName) -> dict[str, str]:
    return {"device": show(end.device), "port": show(end.port)}


def _render_move(move: Move) -> dict[str, Any]:
    """Return a move; `from` and `to` are null of a cable that is added or removed whole."""
    return {
        "op": move.kind.value,
        "cable": _render_cable(move.cable),
        "from": _render_end(move.cable.b) if move.target else None,
        "to": _render_end(move.target) if move.target else None,
        "pullFirst": move.is_target_full,
    }


def _render_text(answer: _DiffResult) -> str:
    parts = [
        *_render_section(
            "", ("KIND", "WHAT TO DO"), map(_render_row_cells, answer.fetch_rows.active)
        ),
        *_render_section(
            "moves, in this order:",
            ("STEP", "DO"),
            [(str(step), _describe_move(move)) for step, move in enumerate(answer.moves, 1)],
        ),
        *_render_section(
            "silenced:",
            ("KIND", "UNTIL", "REASON", "WHAT"),
            [
                (
                    found.row.kind.value,
                    found.silence.until.isoformat(),
                    show(found.silence.reason, _MESSAGE_CHARS),
                    show(found.row.message, _MESSAGE_CHARS),
                )
                for found in answer.fetch_rows.silenced
            ],
        ),
        *_render_unplanned(answer.diff),
        _render_total(answer),
    ]
    return "\n".join(parts)


def _render_section(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]]
) -> Iterable[str]:
    """Return a titled table, nothing where it has no rows."""
    rows = list(rows)
    if not rows:
        return ()
    return (*((title,) if title else ()), render_table(header, rows), "")


def _render_row_cells(row: Difference) -> tuple[str, str]:
    return row.kind.value, show(row.message, _MESSAGE_CHARS)


def _describe_move(move: Move) -> str:
    stays, goes = move.cable
    match move.kind:
        case MoveKind.MOVE if move.target:
            target = show_end(move.target)
            first = (
                f"pull the plug out of {target}, it moves later; " if move.is_target_full else ""
            )
            return (
                f"{first}move the plug in {show_end(goes)} to {target} "
                f"(the cable's other end stays in {show_end(stays)})"
            )
        case MoveKind.ADD:
            return f"plug in a cable between {show_cable(stays, goes)}"
        case _:
            return f"take out the cable between {show_cable(stays, goes)}"


def _render_unplanned(diff: CablingDiff) -> Iterable[str]:
    shown = [
        (show_end(found.cable.a), show_end(found.cable.b), found.reason.value)
        for found in diff.unplanned[:_MAX_UNPLANNED_SHOWN]
    ]
    yield from _render_section("not in the plan, no fault:", ("END", "OTHER END", "WHY"), shown)
    more = len(diff.unplanned) - len(shown)
    if more:
        yield f"and {more} more"


def _render_total(answer: _DiffResult) -> str:
    rows = answer.fetch_rows
    num = len(rows.active)
    differ = f"{num} difference{'s' if num != 1 else ''}" if num else "no difference"
    parts = [
        f"{differ}, {answer.diff.num_as_planned} cables as planned",
        *([f"{len(answer.moves)} moves"] if answer.moves else ()),
        *([f"{len(rows.silenced)} silenced"] if rows.silenced else ()),
    ]
    return ", ".join(parts)
