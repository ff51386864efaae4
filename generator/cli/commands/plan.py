"""`toponaut plan`: print what `toponaut apply` would change, in order."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.output import open_progress, print_document, render_table, show_count
from generator.cli.plan_input import Plan, add_store_reports, build_plan, read_observed
from generator.cli.source_values import parse_sources
from generator.cli.store_access import open_publisher
from generator.objects.write_policy import WritePolicy, parse_write_policy
from generator.reconcile.guard import PlanVerdict
from generator.reconcile.outcome import OutputsOutcome
from generator.reconcile.outputs import Publisher, PublishRequest, publish_once
from generator.reconcile.plan import render_action
from topology.model.errors import show


def run(
    ctx: click.Context,
    /,
    output: str,
    store: Path | None,
    observed: Path | None,
    namespace: str,
    *,
    check: bool,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut plan` with the values of its options."""
    sources = parse_sources(options)
    existing = read_observed(store, observed, sources.cluster)
    policy = parse_write_policy(existing.fabric)
    plan = build_plan(add_store_reports(sources, store, existing.fabric), existing, policy=policy)
    document = [render_action(action) for action in plan.actions]
    print_document(document, output, text=lambda: render_plan_text(plan))
    print_verdict(plan.verdict, policy)
    published = OutputsOutcome()
    has_place = observed is None and (store is not None or sources.cluster is not None)
    if has_place and plan.outputs is not None:
        cluster = None if store else sources.cluster
        with open_publisher(store, cluster, namespace=namespace) as publisher:
            published = publish(publisher, plan.outputs)
    if check and (plan.actions or not published.is_done):
        exit_with_problems(ctx, plan.problems, ExitCode.CHECK_FAILED)
    exit_with_problems(ctx, plan.problems)


def print_verdict(verdict: PlanVerdict, policy: WritePolicy) -> None:
    """Print on stderr the hash of a plan, and whether `serve` and `apply` would apply it."""
    if not verdict.counts:
        return
    approved = " and approved" if policy.is_approved(verdict.hash) else ""
    text = "can be applied" if verdict.is_allowed else f"is held{approved}: {verdict.reason_text}"
    why = f": {policy.unknown}" if policy.unknown else ""
    paused = f"; writing is paused{why}" if policy.is_paused else ""
    click.echo(f"plan {verdict.hash} {text}{paused}", err=True)


def publish(publisher: Publisher, request: PublishRequest) -> OutputsOutcome:
    """Compare or write the other outputs, and print a line for each on stderr."""
    with open_progress("comparing outputs") as progress:
        outcome = publish_once(
            publisher, request, clock=time.monotonic, pause=time.sleep, progress=progress
        )
    for row in outcome.rows:
        counts = [f"{row.objects} written", f"{row.pending} to write"]
        counts += [f"{row.deferred} deferred"] if row.deferred else []
        counts += [f"{row.refused} refused"] if row.refused else []
        message = f": {row.message}" if row.message else ""
        click.echo(f"output {row.type} {row.state}: {', '.join(counts)}{message}", err=True)
    return outcome


def render_plan_text(plan: Plan) -> str:
    """Return a table with one row per action, and their number."""
    if not plan.actions:
        return "nothing to change"
    rows = [
        (action.op.value, action.name, str(action.tier), show(action.reason, 200))
        for action in plan.actions
    ]
    table = render_table(("ACTION", "HYPERNODE", "TIER", "REASON"), rows)
    return f"{table}\n{show_count(len(rows), 'action')}"
