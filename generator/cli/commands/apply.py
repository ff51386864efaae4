"""`toponaut apply`: write the tree's HyperNodes into a store, in an order that is always safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.cli.commands.plan import say_verdict, text_plan
from generator.cli.exit_codes import Exit
from generator.cli.observation import finish
from generator.cli.output import output_option, print_document
from generator.cli.plan_input import Plan, make_plan, observed_in, with_store
from generator.cli.source_options import input_options, sources_of
from generator.cli.store_options import Place, open_place
from generator.objects.write_policy import policy_of
from generator.reconcile.apply import ApplyResult, apply_plan
from generator.reconcile.plan import render_action


@click.command(name="apply")
@input_options
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
    sources = sources_of(options)
    with open_place(store, None if store else sources.cluster) as place:
        seen = observed_in(store, None, sources.cluster)
        policy = policy_of(seen.fabric)
        if approve is not None:
            policy = policy.approving(approve)
        plan = make_plan(with_store(sources, store, seen.fabric), seen, policy=policy)
        is_held = not (plan.verdict.is_allowed or policy.approves(plan.verdict.hash))
        if plan.actions and (is_held or policy.is_paused):
            print_document([], output, text=lambda: "nothing was changed")
            say_verdict(plan.verdict, policy)
            finish(ctx, plan.problems, Exit.CHECK_FAILED)
        result = _carry_out(plan, place, output)
    if result.error is not None:
        click.echo(f"error: {result.error}; {len(result.pending)} actions not done", err=True)
        finish(ctx, plan.problems, Exit.INTERNAL)
    finish(ctx, plan.problems)


def _carry_out(plan: Plan, place: Place, output: str) -> ApplyResult:
    """Write the actions, print those that were done, and use up an approval of the whole."""
    result = apply_plan(plan.actions, place)
    document = [render_action(action) for action in result.done]
    print_document(document, output, text=lambda: text_plan(plan._replace(actions=result.done)))
    if result.error is None:
        place.use_up_approval(plan.verdict.hash)
    return result
