"""`toponaut apply`: write the tree's HyperNodes into a store, in an order that is always safe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from generator.commands.plan import text_plan
from generator.exits import Exit
from generator.inputs import input_options, sources_of
from generator.planning import make_plan, observed_in, with_store
from generator.printing import output_option, print_document
from generator.reading import finish
from generator.reconcile.apply import apply_plan
from generator.reconcile.plan import render_action
from generator.store.directory import DirectoryStore


@click.command(name="apply")
@input_options
@click.option(
    "--store",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder whose hypernodes/ is written; its neighborreports/ is read if no source is named.",
)
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    store: Path,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Carry out the plan; only HyperNodes of our own are touched.

    Stops at the first write that fails: every step leaves a valid set, and the next run goes on.
    """
    sources = with_store(sources_of(options), store)
    plan = make_plan(sources, observed_in(store, None))
    result = apply_plan(plan.actions, DirectoryStore(store))
    document = [render_action(action) for action in result.done]
    print_document(document, output, text=lambda: text_plan(plan._replace(actions=result.done)))
    if result.error is not None:
        click.echo(f"error: {result.error}; {len(result.pending)} actions not done", err=True)
        finish(ctx, plan.problems, Exit.INTERNAL)
    finish(ctx, plan.problems)
