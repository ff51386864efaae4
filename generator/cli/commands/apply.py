"""`toponaut apply`: write the HyperNodes of the tree to a store, in a safe order."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import click

from generator.cli.commands.plan import print_verdict, publish, render_plan_text
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.output import open_progress, print_document, show_count
from generator.cli.plan_input import (
    ObservedHyperNodes,
    Plan,
    add_store_reports,
    build_plan,
    read_observed,
)
from generator.cli.source_values import parse_sources
from generator.cli.store_access import PlanStore, hold_folder, open_plan_store, open_publisher
from generator.objects.outputs import OutputState
from generator.objects.write_policy import parse_write_policy
from generator.reconcile.decided_tree import build_record, with_past_times
from generator.reconcile.outcome import OutputsOutcome
from generator.reconcile.plan import Action, render_action
from generator.reconcile.writer import ApplyResult, apply_plan
from runtime.clock import utc_now
from runtime.signals import noting_interruption
from topology.model.errors import ConfigError, KubeError, KubeForbidden, StoreError

GOOD_STATES: Final = frozenset({OutputState.WRITTEN, OutputState.PENDING})
"""The states of an output after a command that did its work."""


def run(
    ctx: click.Context,
    /,
    output: str,
    store: Path | None,
    approve: str | None,
    namespace: str,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut apply` with the values of its options."""
    sources = parse_sources(options)
    cluster = None if store else sources.cluster
    with hold_folder(store), open_plan_store(store, cluster) as opened:
        observed = read_observed(store, None, sources.cluster)
        policy = parse_write_policy(observed.fabric)
        if not policy.is_paused:
            observed = _redate(observed, opened)
        if approve is not None:
            policy = policy.with_approved_plan(approve)
        plan = build_plan(
            add_store_reports(sources, store, observed.fabric), observed, policy=policy
        )
        _drop_approval(plan, observed, opened, namespace)
        is_held = not (plan.verdict.is_allowed or policy.is_approved(plan.verdict.hash))
        if plan.actions and (is_held or policy.is_paused):
            print_document([], output, text=lambda: "nothing was changed")
            print_verdict(plan.verdict, policy)
            if is_held:
                click.echo(
                    f"to carry it out, run this command again with --approve {plan.verdict.hash}",
                    err=True,
                )
            exit_with_problems(ctx, plan.problems, ExitCode.CHECK_FAILED)
        with hold_writes(plan, opened, namespace):
            result = write_plan(plan, opened, output, observed=observed)
    if result.error is not None:
        click.echo(
            f"error: {result.error}; {show_count(len(result.pending), 'action')} not done", err=True
        )
        exit_with_problems(ctx, plan.problems, ExitCode.INTERNAL)
    published = OutputsOutcome()
    if plan.outputs is not None and not policy.is_paused:
        with open_publisher(store, cluster, namespace=namespace) as publisher:
            published = publish(publisher, plan.outputs._replace(is_writing=True))
    is_refused = any(row.state not in GOOD_STATES for row in published.rows)
    exit_with_problems(ctx, plan.problems, ExitCode.INTERNAL if is_refused else ExitCode.OK)


def hold_writes(plan: Plan, store: PlanStore, namespace: str) -> AbstractContextManager[None]:
    """Let no server write within the context; without anything to write, do nothing."""
    return store.hold_writes(namespace) if plan.actions or _is_new(plan) else nullcontext()


def write_plan(
    plan: Plan, store: PlanStore, output: str, *, observed: ObservedHyperNodes
) -> ApplyResult:
    """Record what is decided, use up its approval, write the actions, and print the done ones."""
    num_done = 0

    def describe() -> str:
        total = show_count(len(plan.actions), "action")
        return f"{num_done} of {total} done; the next run continues"

    with open_progress("writing HyperNodes") as progress, noting_interruption(describe):

        def count_action(_: Action) -> None:
            nonlocal num_done
            num_done += 1
            progress.show("writing HyperNodes", num_done=num_done, total=len(plan.actions))

        try:
            _check_unchanged(plan, observed, store)
            _write_record(plan, store)
        except (KubeError, StoreError) as error:
            result = ApplyResult((), plan.actions, error)
        else:
            unwritten = ApplyResult(plan.actions)
            result = (
                unwritten
                if plan.is_decision_only
                else apply_plan(plan.actions, store, on_done=count_action)
            )
    document = [render_action(action) for action in result.done]
    print_document(
        document, output, text=lambda: render_plan_text(plan._replace(actions=result.done))
    )
    return result


def _redate(observed: ObservedHyperNodes, store: PlanStore) -> ObservedHyperNodes:
    """Rewrite a record of a clock that was ahead: it would use up the budget until then."""
    found = None if observed.record is None else with_past_times(observed.record, utc_now())
    if found is None:
        return observed
    with suppress(KubeError, StoreError):  # the next run tries again
        store.write_record(found)
        return observed._replace(record=found)
    return observed


def _drop_approval(
    plan: Plan, observed: ObservedHyperNodes, store: PlanStore, namespace: str
) -> None:
    """Remove the approval of another plan than this one, unless a server decides about it."""
    approved = parse_write_policy(observed.fabric).approved_plan
    if not approved or (plan.actions and plan.verdict.hash == approved):
        return
    with suppress(ConfigError, KubeError, StoreError), store.hold_writes(namespace):
        if store.consume_approval(approved):
            click.echo(f"the approval of plan {approved} is removed: it is not held", err=True)


def _check_unchanged(plan: Plan, observed: ObservedHyperNodes, store: PlanStore) -> None:
    """Refuse a plan that follows from an outdated decision, or from outdated HyperNodes.

    Raises:
        StoreError: another program, such as `serve`, has decided or written since the plan was
            made.
        KubeError: the cluster cannot be read.
    """
    with suppress(KubeForbidden):  # then it could not be read for the plan either, which is said
        if store.read_record().record != observed.record:
            raise StoreError("another program has decided meanwhile; run the command again")
    if plan.is_decision_only:  # no HyperNode is written; without Volcano, there are none to read
        return
    if plan.actions and store.read_hypernodes().hypernodes != observed.hypernodes:
        raise StoreError("HyperNodes have changed meanwhile; run the command again")


def _is_new(plan: Plan) -> bool:
    """Return whether a plan records a decision."""
    return not plan.decision.is_restoration and bool(plan.actions or plan.is_adoptable)


def _write_record(plan: Plan, store: PlanStore) -> None:
    """Record a decision that is new; what a person approved does not count in the budget."""
    if _is_new(plan):
        is_charged = plan.verdict.is_allowed
        store.write_record(
            build_record(
                plan.decision,
                moved=plan.verdict.moved if is_charged else (),
                deleted=plan.verdict.deleted if is_charged else (),
                now=utc_now(),
            )
        )
    if plan.actions:
        store.consume_approval(plan.verdict.hash)
