"""`toponaut plan`: print what `toponaut apply` would change, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.option_types import OutputFolder
from generator.cli.options import InputOptions
from generator.cli.output import print_document

_FOLDER: Final = OutputFolder()


@options.command("plan", is_watchable=True)
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

    stderr shows the hash of the plan, whether the plan is held because it is too large, and how
    many objects of each other output would be written.
    """
    from generator.cli import plans
    from generator.cli.observation import parse_sources
    from generator.reconcile.plan import render_action

    given = parse_sources(sources)
    existing = plans.read_observed(store, observed, given.cluster)
    plan = plans.build_plan(plans.add_store_reports(given, store, existing.fabric), existing)
    document = [render_action(action) for action in plan.actions]
    print_document(document, output, text=lambda: plans.build_plan_table(plan.actions))
    plans.print_verdict(plan)
    is_changed = bool(plan.actions)
    has_place = observed is None and (store is not None or given.cluster is not None)
    if has_place and plan.outputs is not None:
        cluster = None if store else given.cluster
        with plans.open_publisher(store, cluster, namespace=namespace) as publisher:
            is_changed |= not plans.publish(publisher, plan.outputs).is_done
    exit_with_problems(plan.problems, ExitCode.CHECK_FAILED if check and is_changed else None)
