"""`toponaut plan`: what apply would change, in order, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import Exit
from generator.cli.observation import finish
from generator.cli.output import output_option, print_document, table
from generator.cli.plan_input import Plan, make_plan, observed_in, with_store
from generator.cli.source_options import input_options, sources_of
from generator.objects.write_policy import Policy, policy_of
from generator.reconcile.guard import Verdict
from generator.reconcile.plan import render_action
from topology.model.errors import show

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(name="plan")
@input_options
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
    sources = sources_of(options)
    seen = observed_in(store, observed, sources.cluster)
    sources, policy = with_store(sources, store, seen.fabric), policy_of(seen.fabric)
    plan = make_plan(sources, seen, policy=policy)
    document = [render_action(action) for action in plan.actions]
    print_document(document, output, text=lambda: text_plan(plan))
    say_verdict(plan.verdict, policy)
    if check and plan.actions:
        finish(ctx, plan.problems, Exit.CHECK_FAILED)
    finish(ctx, plan.problems)


def say_verdict(verdict: Verdict, policy: Policy) -> None:
    """Say on stderr whether `serve` and `apply` would carry a plan out, and its hash."""
    if not verdict.counts:
        return
    approved = " and approved" if policy.approves(verdict.hash) else ""
    said = "may be carried out" if verdict.is_allowed else f"is held{approved}: {verdict.why}"
    paused = "; writing is paused" if policy.is_paused else ""
    click.echo(f"plan {verdict.hash} {said}{paused}", err=True)


def text_plan(plan: Plan) -> str:
    """Return a line per action."""
    if not plan.actions:
        return "nothing to change"
    rows = [
        (action.op.value, action.name, str(action.tier), show(action.reason, 200))
        for action in plan.actions
    ]
    return f"{table(('ACTION', 'HYPERNODE', 'TIER', 'WHY'), rows)}\n{len(rows)} actions"
