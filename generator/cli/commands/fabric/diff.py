"""`toponaut diff`: compare the fabric with a cabling plan, labels, HyperNodes, or its past."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.history_access import find_generation_since, open_given_history, show_time
from generator.cli.options import HistoryOptions, InputOptions
from generator.cli.output import Table, Text, open_progress, print_document, show_count
from generator.cli.silence_file import print_expired_silences, read_silences
from generator.cli.work_orders import (
    ORDERS,
    OrderOptions,
    Places,
    print_order,
    read_places,
    warn_of_racks,
)
from generator.history.tree_changes import (
    PlaceChange,
    TreePart,
    compare_trees,
    count_changes,
    render_change,
    show_before,
    show_place,
)
from generator.kube.access import ClusterAccess
from generator.observe.domain_witness import Witness, compare_witness
from runtime.clock import utc_now
from topology.findings.silences import (
    Silence,
    SilencedRow,
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
    from generator.kube.cache import Listing
    from generator.outputs.hypernode.model import HyperNode
    from topology.cabling.plan_diff import CablingDiff, Difference, Move, ObservedCable
    from topology.model.fabric import Fabric

MAX_PLAN_BYTES: Final = 256 << 20
_MAX_UNPLANNED_SHOWN: Final = 20
_MAX_ROWS_SHOWN: Final = 100
"""Rows of a table without `--all`, in every format."""
_MESSAGE_CHARS: Final = 600


@options.command(
    "diff",
    examples=(
        "toponaut diff --cabling plan.csv --reports fabric/reports",
        "toponaut diff --since 2025-11-01 --store store",
    ),
)
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
    order: OrderOptions,
    output: str = options.output_of(
        *ORDERS,
        note=" The work orders have the moves of --cabling, as Markdown, CSV, and a page to print.",
    ),
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
    order.check_format(output)
    if cabling is None and (output in ORDERS or order.racks):
        raise click.UsageError("work orders and --racks apply to --cabling only")
    limit = None if all else _MAX_ROWS_SHOWN
    if cabling is not None:
        compared = _compare_cabling(sources, cabling, silence, order, limit=limit)
    elif since is not None:
        compared = _compare_past(sources, history, since, limit=limit)
    else:
        compared = _compare_witness(sources, Witness(str(against)))
    if compared.print_order and output in ORDERS:
        compared.print_order(output)
    else:
        print_document(compared.document, output, text=lambda: compared.text)
    print_expired_silences(compared.expired)
    failed = ExitCode.CHECK_FAILED if check and compared.differs else None
    exit_with_problems(compared.problems, failed)


class _Comparison(NamedTuple):
    """What is printed, whether anything differs, and the input that was skipped."""

    document: object
    text: Text
    differs: bool
    problems: tuple[ParseError, ...]
    expired: tuple[Silence, ...] = ()
    print_order: Callable[[str], None] | None = None
    """Prints the work order in a format; None without a plan."""


class _DiffResult(NamedTuple):
    diff: CablingDiff
    rows: SilenceSplit[Difference]
    moves: tuple[Move, ...]
    """Moves that repair the rows that are not silenced."""


def _compare_cabling(
    given: InputOptions,
    cabling: Path,
    silence: Path | None,
    order: OrderOptions,
    *,
    limit: int | None,
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
        fabric = build_fabric(inputs.all_claims)
        diff = compare_cabling(plan, fabric)
    rows = split_silenced(
        diff.differences,
        silences,
        today=utc_now().date(),
        subject=lambda row: SilenceSubject(row.kind.value, row.ends),
    )
    groups = {row.group for row in rows.active}
    result = _DiffResult(diff, rows, tuple(move for move in diff.moves if move.group in groups))
    places = read_places(inputs.inventory, order.racks)
    sections = _list_sections(result, limit)
    has_cables = bool(fabric.links) or limit is None
    return _Comparison(
        _render_document(result, sections),
        _list_parts(result, sections) if has_cables else _explain_no_cables(plan),
        bool(rows.active),
        (*plan.errors, *diff.errors, *inputs.problems),
        rows.expired,
        lambda output: _print_order(result, places, order, output, fabric),
    )


def _print_order(
    result: _DiffResult, places: Places, order: OrderOptions, output: str, fabric: Fabric
) -> None:
    from generator.outputs.plan_order import build_plan_order
    from generator.outputs.work_order import DIFFERENCES

    if not fabric.links:
        raise ConfigError("this input shows no cable, so a work order would plug in every one")
    active = result.rows.active
    steps = build_plan_order(active, result.moves, places.by_device)
    print_order(steps, order, output, num_all=len(active), source=DIFFERENCES)
    if order.racks is not None:
        known = {name for device in fabric.devices for name in (device.name, device.node)}
        shown = {step.device for step in steps.steps}
        warn_of_racks(places, {*places.in_file} - known, shown)


def _explain_no_cables(plan: CablingPlan) -> str:
    """Return the one line that says why no cable can be compared."""
    return (
        f"the plan lists {show_count(len(plan.cables), 'cable')}; this input shows none, so "
        "nothing is compared: it has ports without neighbors. Add what shows cables: a sweep "
        "(--ibnetdiscover), LLDP (--lldpcli) or walks of switches (--snmpwalk). "
        "toponaut findings says which are missing; --all prints each row."
    )


def read_plan(file: Path) -> CablingPlan:
    """Read a cabling plan.

    Raises:
        ConfigError: the file cannot be read, or has no cable, so that every cable would be extra.
    """
    from generator.store.file_kinds import FileKind, expect_kind
    from generator.store.local_files import read_input
    from topology.sources.cabling.formats import parse_cabling

    source, raw = read_input(str(file), MAX_PLAN_BYTES)
    plan = parse_cabling(raw, source=source)
    with expect_kind(file, FileKind.CABLING_PLAN):
        if not plan.cables:
            reason = f": {plan.errors[0]}" if plan.errors else ""
            raise ConfigError(f"{source}: no cables in this file{reason}")
    return plan


class _Section(NamedTuple):
    """One table of a comparison with a plan."""

    key: str
    """The key in the document."""
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[dict[str, Any], tuple[str, ...]]]
    """Each that is printed, as JSON and as cells."""
    num_all: int
    """The number of all rows, also of rows that are not printed."""


def _list_sections(result: _DiffResult, limit: int | None) -> list[_Section]:
    """Return the tables, each with at most `limit` rows."""
    active, silenced = result.rows.active, result.rows.silenced
    moves, unplanned = result.moves, result.diff.unplanned
    return [
        _Section(
            *("rows", "", ("kind", "what to do")),
            [
                (_render_row(row), (row.kind.value, show(row.message, _MESSAGE_CHARS)))
                for row in active[:limit]
            ],
            len(active),
        ),
        _Section(
            *("moves", "moves, in this order:", ("step", "action")),
            [
                (_render_move(move), (str(step), _describe_move(move)))
                for step, move in enumerate(moves[:limit], 1)
            ],
            len(moves),
        ),
        _Section(
            *("silenced", "silenced:", ("kind", "until", "reason", "difference")),
            [_build_silenced(row) for row in silenced[:limit]],
            len(silenced),
        ),
        _Section(
            *("unplanned", "not in the plan, no fault:", ("end", "other end", "reason")),
            [
                (
                    {**_render_cable(cable), "reason": reason.value},
                    (show_end(cable.a), show_end(cable.b), reason.value),
                )
                for cable, reason in unplanned[:limit]
            ],
            len(unplanned),
        ),
    ]


def _build_silenced(row: SilencedRow[Difference]) -> tuple[dict[str, Any], tuple[str, ...]]:
    reason, until = row.silence.reason, row.silence.until.isoformat()
    texts = (show(text, _MESSAGE_CHARS) for text in (reason, row.row.message))
    document = {**_render_row(row.row), "reason": reason, "until": until}
    return document, (row.row.kind.value, until, *texts)


def _render_document(result: _DiffResult, sections: Sequence[_Section]) -> dict[str, Any]:
    """Return the tables; `leftOut` counts the rows that are not in them."""
    return {
        "apiVersion": API_VERSION,
        "kind": "CablingDiff",
        "asPlanned": result.diff.num_as_planned,
        **{section.key: [row for row, _ in section.rows] for section in sections},
        "expired": [render_silence(silence) for silence in result.rows.expired],
        "leftOut": {section.key: section.num_all - len(section.rows) for section in sections},
    }


def _render_row(row: Difference) -> dict[str, Any]:
    return {
        "kind": row.kind.value,
        "planned": [_render_planned(cable) for cable in row.planned],
        "observed": [_render_cable(cable) for cable in row.observed],
        "message": row.message,
        **({"names": {"plan": row.names[0], "fabric": row.names[1]}} if row.names else {}),
        **({"device": show(row.lost)} if row.lost else {}),
    }


def _render_planned(cable: PlannedCable) -> dict[str, Any]:
    a, b = cable.ends
    return {"a": _render_end(a), "b": _render_end(b), "line": cable.line}


def _render_cable(cable: ObservedCable) -> dict[str, Any]:
    return {"a": _render_end(cable.a), "b": _render_end(cable.b)}


def _render_end(end: PortName) -> dict[str, str]:
    return {"device": show(end.device), "port": show(end.port)}


def _render_move(move: Move) -> dict[str, Any]:
    """Return a move as JSON; `from` and `to` are null if the plug is in no port then."""
    from topology.cabling.plan_diff import MoveKind

    is_pulled = move.kind in {MoveKind.MOVE, MoveKind.EXCHANGE, MoveKind.UNPLUG}
    return {
        "op": move.kind.value,
        "cable": _render_cable(move.cable),
        "from": _render_end(move.cable.b) if is_pulled else None,
        "to": _render_end(move.target) if move.target else None,
        **({"other": _render_cable(move.other)} if move.other else {}),
    }


def _list_parts(result: _DiffResult, sections: Sequence[_Section]) -> Iterator[str | Table]:
    """Yield the tables that have rows, each with the number of rows left out."""
    for section in sections:
        is_fault = section.key != "unplanned"
        rows = section.rows if is_fault else section.rows[:_MAX_UNPLANNED_SHOWN]
        if not rows:
            continue
        if section.title:
            yield section.title
        yield Table(section.columns, [cells for _, cells in rows])
        yield ""
        more = section.num_all - len(rows)
        if more and is_fault:
            yield f"and {more} more; --all prints them"
            yield ""
        elif more:
            yield f"and {more} more"
    yield _render_total(result)


def _describe_move(move: Move) -> str:
    from topology.cabling.plan_diff import MoveKind

    fixed_end, moved_end = move.cable
    stays = f"(the other end of the cable stays in {show_end(fixed_end)})"
    match move.kind:
        case MoveKind.EXCHANGE if move.target and move.other:
            ends = show_cable(fixed_end, move.other.a)
            plugs = show_cable(moved_end, move.target)
            return f"exchange the plugs in {plugs} (the other ends of the cables stay in {ends})"
        case MoveKind.MOVE if move.target:
            return f"move the plug in {show_end(moved_end)} to {show_end(move.target)} {stays}"
        case MoveKind.UNPLUG:
            return f"unplug {show_end(moved_end)} and keep the plug aside {stays}"
        case MoveKind.PLUG if move.target:
            return f"plug the one kept aside into {show_end(move.target)} {stays}"
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
    return _Comparison(document, _build_change_table(changes, limit), bool(changes), problems)


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
    now = show_place(change.part, change.after)
    return (change.part.value, show(change.name), show_before(change), now)


def _list_totals(changes: Sequence[PlaceChange]) -> Iterator[str]:
    for part in TreePart:
        counts = count_changes(changes, part)
        for what, number in counts._asdict().items():
            if number:
                yield f"{show_count(number, part.value)} {what}"


def _compare_witness(given: InputOptions, against: Witness) -> _Comparison:
    """Compare the domains of the cables with those of labels or HyperNodes."""
    from generator.cli.observation import parse_sources, read_observation, refuse_without_hosts
    from generator.cli.witnesses import build_witness_table, render_witness_rows

    if against is Witness.HYPERNODES and (given.node_labels or given.topology):
        raise click.UsageError("--against hypernodes compares with no labels")
    if against is Witness.LABELS and given.hypernodes:
        raise click.UsageError("--against labels compares with no HyperNodes")
    witness = parse_sources(given.without_cables())
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
        document,
        build_witness_table(diff, against),
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
    from generator.cli.observation import load_hypernodes
    from generator.ingest.sources import read_nodes
    from generator.store.object_folders import read_hypernodes

    if witness.hypernodes is not None:
        stored = read_hypernodes(witness.hypernodes)
    elif sources.cluster is not None:
        stored = _fetch_hypernodes(sources)
    else:
        raise click.UsageError("--against hypernodes needs --hypernodes or --kube")
    inventory = read_nodes(sources) if sources.nodes or sources.cluster else None
    read = load_hypernodes(stored, inventory, source="witness")
    return read.observation.tree, read.problems


def _fetch_hypernodes(sources: Sources) -> Listing[HyperNode]:
    from generator.store.cluster_store import open_cluster

    with open_cluster(sources.cluster or ClusterAccess(None, None), os.environ) as store:
        return store.read_hypernodes()


_WITNESS_READERS: Final = {Witness.LABELS: _read_labels, Witness.HYPERNODES: _read_hypernodes}
