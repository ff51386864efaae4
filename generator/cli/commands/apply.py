"""`toponaut apply`: write the tree's HyperNodes into a store, in an order that is always safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.commands.plan import print_verdict, render_plan_text
from generator.cli.exit_codes import ExitCode
from generator.cli.observation import exit_with_problems
from generator.cli.output import output_option, print_document
from generator.cli.plan_input import Plan, build_plan, read_observed, add_store_reports
from generator.cli.source_options import source_options, parse_sources
from generator.cli.store_options import PlanStore, open_plan_store
from generator.objects.write_policy import parse_write_policy
from generator.reconcile.apply import ApplyResult, apply_plan
from generator.reconcile.plan import render_action


@click.command(name="apply")
@source_options
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder whose hypernodes/ is written; its neighborreports/ is read if no source is named. "
    "Without it the cluster of --kube is written.",
)
@click.option("--approve", metavar="HASH", help="Carry out the plan of this hash though held.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    store: Path | None,
    approve: str | None,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Carry out the plan; only HyperNodes of our own are touched.

    Stops at the first write that fails: every step leaves a valid set, and the next run goes on.
    A plan that exceeds the change budget is held: exit 5, nothing written, until its hash is
    approved here or by `toponaut approve`. So is every plan while the Fabric object says paused.
    """
    sources = parse_sources(options)
    with open_plan_store(store, None if store else sources.cluster) as place:
        seen = read_observed(store, None, sources.cluster)
        policy = parse_write_policy(seen.fabric)
        if approve is not None:
            policy = policy.with_approved_plan(approve)
        plan = build_plan(add_store_reports(sources, store, seen.fabric), seen, policy=policy)
        is_held = not (plan.verdict.is_allowed or policy.is_approved(plan.verdict.hash))
        if plan.actions and (is_held or policy.is_paused):
            print_document([], output, text=lambda: "nothing was changed")
            print_verdict(plan.verdict, policy)
            exit_with_problems(ctx, plan.problems, ExitCode.CHECK_FAILED)
        result = _apply_plan(plan, place, output)
    if result.error is not None:
        click.echo(f"error: {result.error}; {len(result.pending)} actions not done", err=True)
        exit_with_problems(ctx, plan.problems, ExitCode.INTERNAL)
    exit_with_problems(ctx, plan.problems)


def _apply_plan(plan: Plan, place: PlanStore, output: str) -> ApplyResult:
    """Write the actions, print those that were done, and use up an approval of the whole."""
    result = apply_plan(plan.actions, place)
    document = [render_action(action) for action in result.done]
    print_document(
        document, output, text=lambda: render_plan_text(plan._replace(actions=result.done))
    )
    if result.error is None:
        place.consume_approval(plan.verdict.hash)
    return result
