"""`toponaut plan`: what apply would change, in order, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import ExitCode
from generator.cli.observation import exit_with_problems
from generator.cli.output import output_option, print_document, render_table
from generator.cli.plan_input import Plan, build_plan, read_observed, add_store_reports
from generator.cli.source_options import source_options, parse_sources
from generator.objects.write_policy import WritePolicy, parse_write_policy
from generator.reconcile.guard import PlanVerdict
from generator.reconcile.plan import render_action
from topology.model.errors import show

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(name="plan")
@source_options
@click.option("--store", type=_FOLDER, help="Folder of neighborreports/ and hypernodes/.")
@click.option("--observed", type=_FOLDER, help="Folder of HyperNodes to compare with instead.")
@click.option("--check", is_flag=True, help="Exit with 5 when something would change.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    store: Path | None,
    observed: Path | None,
    *,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Print the ordered actions that would make the observed HyperNodes the desired ones.

    stderr has the hash of the plan, and whether it would be held as too large.
    """
    sources = parse_sources(options)
    seen = read_observed(store, observed, sources.cluster)
    sources, policy = (
        add_store_reports(sources, store, seen.fabric),
        parse_write_policy(seen.fabric),
    )
    plan = build_plan(sources, seen, policy=policy)
    document = [render_action(action) for action in plan.actions]
    print_document(document, output, text=lambda: render_plan_text(plan))
    print_verdict(plan.verdict, policy)
    if check and plan.actions:
        exit_with_problems(ctx, plan.problems, ExitCode.CHECK_FAILED)
    exit_with_problems(ctx, plan.problems)


def print_verdict(verdict: PlanVerdict, policy: WritePolicy) -> None:
    """Say on stderr whether `serve` and `apply` would carry a plan out, and its hash."""
    if not verdict.counts:
        return
    approved = " and approved" if policy.is_approved(verdict.hash) else ""
    said = (
        "may be carried out" if verdict.is_allowed else f"is held{approved}: {verdict.reason_text}"
    )
    paused = "; writing is paused" if policy.is_paused else ""
    click.echo(f"plan {verdict.hash} {said}{paused}", err=True)


def render_plan_text(plan: Plan) -> str:
    """Return a line per action."""
    if not plan.actions:
        return "nothing to change"
    rows = [
        (action.op.value, action.name, str(action.tier), show(action.reason, 200))
        for action in plan.actions
    ]
    return f"{render_table(('ACTION', 'HYPERNODE', 'TIER', 'WHY'), rows)}\n{len(rows)} actions"
