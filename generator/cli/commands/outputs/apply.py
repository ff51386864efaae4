"""`toponaut apply`: write the HyperNodes of the tree to a store, in a safe order."""

from __future__ import annotations

from pathlib import Path

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.option_types import OutputFolder
from generator.cli.options import InputOptions
from generator.cli.output import print_document


@options.command(
    "apply",
    examples=(
        "toponaut apply --store store --nodes fabric/nodes.yaml",
        "toponaut apply --kube",
    ),
)
def command(
    *,
    sources: InputOptions,
    store: Path | None = options.option(
        "Folder to write: hypernodes/ is written, and neighborreports/ is read if no source is "
        "given. Without --store, the cluster of --kube is written.",
        type=OutputFolder(),
    ),
    approve: str | None = options.option(
        "Apply the plan with this hash even if it is held.", metavar="HASH"
    ),
    namespace: str = options.NAMESPACE,
    output: str = options.OUTPUT,
) -> None:
    """Apply the plan: write the HyperNodes of the tree, and never change HyperNodes of others.

    The other outputs in the spec of the Fabric object follow, with a line on stderr for each.

    Stops at the first write that fails. The set of HyperNodes is valid after every write, and the
    next run continues. A plan that exceeds the change budget is held: nothing is written, and the
    exit code is 5, until you approve its hash here or with `toponaut approve`. While the Fabric
    object pauses writing, nothing is written either. While `toponaut serve` runs on a folder or a
    cluster, it alone writes there: then a plan that is not empty is refused, and so is one with
    other outputs than HyperNodes.
    """
    from generator.cli import plans
    from generator.cli.observation import parse_sources
    from generator.reconcile.decision import DecisionKind, decide

    given = parse_sources(sources)
    cluster = None if store else given.cluster
    with plans.hold_folder(store), plans.open_plan_store(store, cluster) as opened:
        observed = plans.read_observed(store, None, given.cluster)
        given = plans.add_store_reports(given, store, observed.fabric)
        plan = plans.build_plan(given, observed, approved=approve or "")
        decision = decide(plan.state)
        if decision.kind in (DecisionKind.HOLD, DecisionKind.BLOCK):
            plans.drop_approval(decision.without_plan(), opened, namespace)
            print_document([], output, text=lambda: "nothing was changed")
            plans.print_verdict(plan)
            if decision.kind is DecisionKind.HOLD:
                click.echo(
                    f"to carry it out, run this command again with --approve {plan.verdict.hash}",
                    err=True,
                )
            exit_with_problems(plan.problems, ExitCode.CHECK_FAILED)
        plans.drop_approval(decision.without_plan()._replace(record=None), opened, namespace)
        request = plan.outputs if plan.state.is_writing else None
        place = plans.WritePlace(opened, store, cluster, namespace)
        is_good = plans.write_plan(decision, request, place, output, observed=observed)
    exit_with_problems(plan.problems, None if is_good else ExitCode.INTERNAL)
