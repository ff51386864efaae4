"""`toponaut plan`: print what `toponaut apply` would change, in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.option_types import OutputFolder
from generator.cli.options import InputOptions
from generator.cli.output import Table, list_nodes, print_document, show_count
from topology.model.errors import show
from topology.model.ids import natural_key

if TYPE_CHECKING:
    from generator.reconcile.hypernode_plan import Action, NodeMove

_FOLDER: Final = OutputFolder()


@options.command(
    "plan",
    is_watchable=True,
    examples=(
        "toponaut plan --store store --nodes fabric/nodes.yaml",
        "toponaut plan --kube --check",
    ),
)
def command(
    *,
    sources: InputOptions,
    store: Path | None = options.option(
        "Folder with neighborreports/ and hypernodes/.", type=_FOLDER
    ),
    observed: Path | None = options.option(
        "Folder of HyperNodes to compare with, instead of --store.", type=_FOLDER
    ),
    namespace: str = options.NAMESPACE,
    check: bool = options.option("Exit with 5 if anything would change."),
    output: str = options.OUTPUT,
) -> None:
    """Print the actions, in order, that change the observed HyperNodes into the desired ones.

    Below them, it prints which nodes go from which HyperNode to which. In JSON, the moves stand in
    the last action on the HyperNode that takes the nodes, or that loses them if none takes them.
    stderr shows the hash of the plan, whether the plan is held because it is too large, and how
    many objects of each other output would be written.
    """
    from generator.cli import plans
    from generator.cli.observation import parse_sources
    from generator.reconcile.hypernode_plan import find_moves

    given = parse_sources(sources)
    existing = plans.read_observed(store, observed, given.cluster)
    plan = plans.build_plan(plans.add_store_reports(given, store, existing.fabric), existing)
    moves = find_moves(plan.actions, plan.state.observed)
    print_document(
        _render_changes(plan.changes, moves), output, text=lambda: _list_parts(plan.changes, moves)
    )
    plans.print_verdict(plan)
    is_changed = bool(plan.changes)
    has_place = observed is None and (store is not None or given.cluster is not None)
    if has_place and plan.outputs is not None:
        cluster = None if store else given.cluster
        with plans.open_publisher(store, cluster, namespace=namespace) as publisher:
            is_changed |= not plans.publish(publisher, plan.outputs).is_done
    exit_with_problems(plan.problems, ExitCode.CHECK_FAILED if check and is_changed else None)


def _render_changes(changes: Sequence[Action], moves: Sequence[NodeMove]) -> list[dict[str, Any]]:
    from generator.reconcile.hypernode_plan import render_action

    last = {action.name: at for at, action in enumerate(changes)}
    rows = [render_action(action) | {"moves": []} for action in changes]
    for move in moves:
        rows[last[move.target or move.source]]["moves"].append(
            {
                "from": move.source or None,
                "to": move.target or None,
                "nodes": sorted(move.nodes, key=natural_key),
            }
        )
    return rows


def _list_parts(changes: Sequence[Action], moves: Sequence[NodeMove]) -> Iterator[str | Table]:
    from generator.cli.plans import build_plan_table

    yield build_plan_table(changes)
    if moves:
        yield ""
        yield Table(
            ("nodes", "from", "to"),
            [
                (
                    list_nodes(sorted(move.nodes, key=natural_key), "text"),
                    show(move.source) or "-",
                    show(move.target) or "-",
                )
                for move in moves
            ],
            total=show_count(sum(len(move.nodes) for move in moves), "node"),
        )
