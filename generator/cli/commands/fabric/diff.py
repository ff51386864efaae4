"""`toponaut diff`: compare the fabric with a cabling plan, labels, HyperNodes, or its past."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems, exit_without_data
from generator.cli.history_access import find_generation_since, open_given_history, show_time
from generator.cli.options import HistoryOptions, InputOptions
from generator.cli.output import Table, Text, open_progress, print_document, show_count
from generator.cli.silence_file import print_expired_silences, read_silences
from generator.history.tree_changes import (
    OUTSIDE,
    PlaceChange,
    TreePart,
    compare_trees,
    count_changes,
    render_change,
)
from generator.kube.access import ClusterAccess
from generator.observe.domain_witness import Witness, compare_witness
from runtime.clock import utc_now
from topology.findings.silences import (
    Silence,
    SilenceSplit,
    SilenceSubject,
    render_silence,
    split_silenced,
)
from topology.model.cabling_plan import CablingPlan, PlannedCable, show_cable, show_end
from topology.model.errors import ConfigError, ParseError, show
from topology.model.facts import PortName
from topology.model.tree import API_VERSION, TopologyTree

if TYPE_CHECKING:
    from generator.ingest.sources import Sources
    from generator.store.base import StoredHyperNodes
    from topology.cabling.plan_diff import CablingDiff, Difference, Move, ObservedCable

MAX_PLAN_BYTES: Final = 256 << 20
_MAX_UNPLANNED_SHOWN: Final = 20
_MAX_ROWS_SHOWN: Final = 100
"""Rows of a table without `--all`, in every format."""
_MESSAGE_CHARS: Final = 600


@options.command("diff")
def command(
    *,
    sources: InputOptions,
    cabling: Path | None = options.option(
        "Cabling plan: CSV with device_a,port_a,device_b,port_b, a NetBox cable export (CSV or "
        "JSON), an ibdm topology file, or a topology.dot."
    ),
    against: Witness | None = options.option(
        "Compare the cables with the labels of --node-labels, or with the HyperNodes of "
        "--hypernodes or --kube, instead of a plan."
    ),
    since: datetime | None = options.SINCE,
    history: HistoryOptions,
    silence: Path | None = options.SILENCE,
    check: bool = options.option("Exit with 5 if anything differs."),
    all: bool = options.option(  # noqa: A002 - the option's name
        "Print every row, not the first 100 of a table."
    ),
    output: str = options.OUTPUT,
) -> None:
    """Compare the fabric with a cabling plan, with labels or HyperNodes, or with its past.

    Prints cables that are swapped, in a wrong port, missing or extra, and the shortest list of
    moves that repairs them. Cables that are not in the plan are listed separately; they
    are not faults. With --against, prints the nodes that are labelled, or listed in HyperNodes,
    into another domain than their cables say. With --since, prints the nodes, switches and
    domains that came, went or moved since then; without a source, up to the last generation.
    """
    if sum(given is not None for given in (cabling, against, since)) != 1:
        raise click.UsageError("give one thing to compare with: --cabling, --against or --since")
    if since is None and any(history):
        raise click.UsageError("--store and --history apply to --since only")
    if cabling is None and silence is not None:
        raise click.UsageError("--silence applies to --cabling only")
    limit = None if all else _MAX_ROWS_SHOWN
    if cabling is not None:
        compared = _compare_cabling(sources, cabling, silence, limit=limit)
    elif since is not None:
        compared = _compare_past(sources, history, since, limit=limit)
    else:
        compared = _compare_witness(sources, Witness(str(against)))
    document = compared.build_document() if output != "text" else None
    print_document(document, output, text=compared.build_text)
    print_expired_silences(compared.expired)
    failed = ExitCode.CHECK_FAILED if check and compared.differs else None
    exit_with_problems(compared.problems, failed)


class _Comparison(NamedTuple):
    """What is printed, whether anything differs, and the input that was skipped."""

    build_document: Callable[[], object]
    build_text: Callable[[], Text]
    differs: bool
    problems: tuple[ParseError, ...]
    expired: tuple[Silence, ...] = ()


class _DiffResult(NamedTuple):
    diff: CablingDiff
    rows: SilenceSplit[Difference]
    moves: tuple[Move, ...]
    """Moves that repair the rows that are not silenced."""


def _compare_cabling(
    given: InputOptions, cabling: Path, silence: Path | None, *, limit: int | None
) -> _Comparison:
    from generator.cli.observation import parse_sources, read_claims
    from topology.cabling.plan_diff import compare_cabling
    from topology.join.fabric_join import build_fabric

    sources = parse_sources(given)
    if not sources.is_tree and (sources.planes or sources.plane):
        raise click.UsageError("--cabling compares all networks: give no --planes and no --plane")
    plan, silences = read_plan(cabling), read_silences(silence)
    inputs = read_claims(sources, lacking="cables")
    if inputs.cuts:
        # A cable that is absent from a cut input is not missing, so no move can be advised.
        not_compared = ParseError("not compared with the plan: an input is cut", source="diff")
        exit_with_problems((not_compared, *plan.errors, *inputs.problems))
    with open_progress("comparing the cables"):
        diff = compare_cabling(plan, build_fabric(inputs.all_claims))
    rows = split_silenced(
        diff.differences,
        silences,
        today=utc_now().date(),
        subject=lambda row: SilenceSubject(row.kind.value, row.ends),
    )
    groups = {row.group for row in rows.active}
    result = _DiffResult(diff, rows, tuple(move for move in diff.moves if move.group in groups))
    return _Comparison(
        partial(_render_document, result, limit),
        partial(_list_parts, result, limit),
        bool(rows.active),
        (*plan.errors, *diff.errors, *inputs.problems),
        rows.expired,
    )


def read_plan(file: Path) -> CablingPlan:
    """Read a cabling plan.

    Raises:
        ConfigError: the file cannot be read, or has no cable, so that every cable would be extra.
    """
    from generator.cli.input_files import read_input
    from generator.store.file_kinds import FileKind, expect_kind
    from topology.sources.cabling.formats import parse_cabling

    source, raw = read_input(str(file), MAX_PLAN_BYTES)
    plan = parse_cabling(raw, source=source)
    with expect_kind(file, FileKind.CABLING_PLAN):
        if not plan.cables:
            reason = f": {plan.errors[0]}" if plan.errors else ""
            raise ConfigError(f"{source}: no cables in this file{reason}")
    return plan


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
        "leftOut": {name: len(rows) - len(rows[:limit]) for name, rows in tables.items()},
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


def _list_parts(result: _DiffResult, limit: int | None) -> Iterator[str | Table]:
    """Yield the tables, each with at most `limit` rows and the number of the others."""
    rows, moves, unplanned = result.rows, result.moves, result.diff.unplanned
    differences = [
        (row.kind.value, show(row.message, _MESSAGE_CHARS)) for row in rows.active[:limit]
    ]
    yield from _list_section("", Table(("kind", "what to do"), differences), rows.active)
    steps = [(str(step), _describe_move(move)) for step, move in enumerate(moves[:limit], 1)]
    yield from _list_section("moves, in this order:", Table(("step", "action"), steps), moves)
    silenced = [
        (
            row.row.kind.value,
            row.silence.until.isoformat(),
            show(row.silence.reason, _MESSAGE_CHARS),
            show(row.row.message, _MESSAGE_CHARS),
        )
        for row in rows.silenced[:limit]
    ]
    table = Table(("kind", "until", "reason", "difference"), silenced)
    yield from _list_section("silenced:", table, rows.silenced)
    cables = [
        (show_end(row.cable.a), show_end(row.cable.b), row.reason.value)
        for row in unplanned[:_MAX_UNPLANNED_SHOWN]
    ]
    table = Table(("end", "other end", "reason"), cables)
    yield from _list_section("not in the plan, no fault:", table)
    if len(unplanned) > len(cables):
        yield f"and {len(unplanned) - len(cables)} more"
    yield _render_total(result)


def _list_section(title: str, table: Table, rows: Sequence[object] = ()) -> Iterator[str | Table]:
    """Yield a title, a table, and how many more of the rows there are; nothing without rows."""
    if not table.rows:
        return
    if title:
        yield title
    yield table
    yield ""
    if len(rows) > len(table.rows):
        yield f"and {len(rows) - len(table.rows)} more; --all prints them"
        yield ""


def _describe_move(move: Move) -> str:
    from topology.cabling.plan_diff import MoveKind

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


def _compare_past(
    given: InputOptions, history: HistoryOptions, since: datetime, *, limit: int | None
) -> _Comparison:
    """Compare the tree with that of an earlier time; without a source, the last in the history."""
    from generator.cli.observation import parse_sources, read_observation

    with open_given_history(history) as opened:
        before = find_generation_since(opened, since)
        now = opened.read_generations(limit=1)[0].tree
    sources, problems = parse_sources(given), tuple[ParseError, ...]()
    if not sources.is_empty:
        read = read_observation(sources, previous=now)
        now, problems = read.observation.tree, read.problems
    changes = compare_trees(before.tree, now)
    document = {
        "apiVersion": API_VERSION,
        "kind": "TreeDiff",
        "since": show_time(int(since.timestamp())),
        "generation": before.number,
        "rows": [render_change(change) for change in changes[:limit]],
        "leftOut": len(changes) - len(changes[:limit]),
    }
    return _Comparison(
        lambda: document, partial(_build_change_table, changes, limit), bool(changes), problems
    )


def _build_change_table(changes: Sequence[PlaceChange], limit: int | None) -> Table:
    more = len(changes) - len(changes[:limit])
    totals = ", ".join(_list_totals(changes))
    return Table(
        ("what", "name", "before", "now"),
        [_build_cells(change) for change in changes[:limit]],
        f"and {more} more; --all prints them\n{totals}" if more > 0 else totals,
        "no differences",
    )


def _build_cells(change: PlaceChange) -> tuple[str, ...]:
    places = (_show_place(change.part, place) for place in (change.before, change.after))
    return (change.part.value, show(change.name), *places)


def _show_place(part: TreePart, place: str | None) -> str:
    if place is None:
        return "-"
    if place == OUTSIDE:
        return "unplaced" if part is TreePart.NODE else "top"
    return show(place)


def _list_totals(changes: Sequence[PlaceChange]) -> Iterator[str]:
    for part in TreePart:
        counts = count_changes(changes, part)
        for number, what in zip(counts, ("added", "removed", "moved"), strict=True):
            if number:
                plural = {TreePart.SWITCH: "switches"}.get(part)
                name = plural if plural and number != 1 else part.value
                yield f"{number} {name} {what}" if plural else f"{show_count(number, name)} {what}"


def _compare_witness(given: InputOptions, against: Witness) -> _Comparison:
    """Compare the domains of the cables with those of labels or HyperNodes."""
    from generator.cli.observation import parse_sources, read_observation, refuse_without_hosts
    from generator.cli.witnesses import build_witness_table, render_witness_rows

    if against is Witness.HYPERNODES and (given.node_labels or given.topology):
        raise click.UsageError("--against hypernodes compares with no labels")
    if against is Witness.LABELS and given.hypernodes:
        raise click.UsageError("--against labels compares with no HyperNodes")
    no_cables: dict[str, Any] = {"ibnetdiscover": (), "files": ()}
    no_cables |= dict.fromkeys(("reports", "lldpcli", "snmpwalk", "planes", "plane"))
    witness = parse_sources(given._replace(**no_cables))
    sources = parse_sources(given._replace(hypernodes=None, node_labels=None, topology=None))
    read = read_observation(sources)
    refuse_without_hosts(read)
    tree, problems = _WITNESS_READERS[against](witness, sources)
    diff = compare_witness(read.observation.tree, tree)
    document = {
        "apiVersion": API_VERSION,
        "kind": "WitnessDiff",
        "against": against.value,
        "agreed": diff.num_agreed,
        "rows": render_witness_rows(diff, against),
    }
    return _Comparison(
        lambda: document,
        partial(build_witness_table, diff, against),
        bool(diff.rows),
        tuple(dict.fromkeys((*read.problems, *problems))),
    )


_LoadedTree = tuple[TopologyTree, Sequence[ParseError]]


def _read_labels(witness: Sources, sources: Sources) -> _LoadedTree:
    from generator.cli.observation import read_labelled_nodes

    if not witness.node_labels:
        raise click.UsageError("--against labels needs --node-labels or --topology")
    read = read_labelled_nodes(witness._replace(cluster=sources.cluster))
    return read.observation.tree, read.problems


def _read_hypernodes(witness: Sources, sources: Sources) -> _LoadedTree:
    from generator.cli.observation import derive_hypernode_tree
    from generator.ingest.sources import read_nodes
    from generator.objects.inventory import list_node_labels
    from generator.outputs.hypernode.lint import resolve_selectors
    from generator.store.object_folders import read_hypernodes

    if witness.hypernodes is not None:
        stored = read_hypernodes(witness.hypernodes)
    elif sources.cluster is not None:
        stored = _fetch_hypernodes(sources)
    else:
        raise click.UsageError("--against hypernodes needs --hypernodes or --kube")
    hypernodes = stored.hypernodes
    if sources.nodes or sources.cluster:
        labels = list_node_labels(read_nodes(sources))
        hypernodes = tuple(resolve_selectors(row, labels) for row in hypernodes)
    tree, problems = derive_hypernode_tree([row for row in hypernodes if not row.is_unreadable])
    if not tree.nodes:
        exit_without_data([*stored.problems, ParseError("no HyperNodes found", source="witness")])
    return tree, (*stored.problems, *problems)


def _fetch_hypernodes(sources: Sources) -> StoredHyperNodes:
    from generator.store.cluster_store import open_cluster

    with open_cluster(sources.cluster or ClusterAccess(None, None), os.environ) as store:
        return store.read_hypernodes()


_WITNESS_READERS: Final = {Witness.LABELS: _read_labels, Witness.HYPERNODES: _read_hypernodes}
