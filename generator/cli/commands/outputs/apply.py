"""`toponaut apply`: write the HyperNodes of the tree to a store, in a safe order."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.option_types import OutputFolder
from generator.cli.options import InputOptions
from generator.cli.output import print_document, show_count
from runtime.clock import utc_now
from topology.model.errors import ConfigError, KubeError, StoreError

if TYPE_CHECKING:
    from generator.cli.plans import ObservedHyperNodes, Plan
    from generator.store.fabric_store import FabricStore


@click.command(name="apply")
@options.sources
@click.option(
    "--store",
    type=OutputFolder(),
    help="Folder to write: hypernodes/ is written, and neighborreports/ is read if no source is "
    "given. Without --store, the cluster of --kube is written.",
)
@click.option("--approve", metavar="HASH", help="Apply the plan with this hash even if it is held.")
@options.namespace
@options.output
def command(
    sources: InputOptions,
    *,
    store: Path | None,
    approve: str | None,
    namespace: str,
    output: str,
) -> None:
    """Apply the plan: write the HyperNodes of the tree, and never change HyperNodes of others.

    The other outputs in the spec of the Fabric object follow, with a line on stderr for each.

    Stops at the first write that fails. The set of HyperNodes is valid after every write, and the
    next run continues. A plan that exceeds the change budget is held: nothing is written, and the
    exit code is 5, until you approve its hash here or with `toponaut approve`. While the Fabric
    object pauses writing, nothing is written either. While `toponaut serve` runs on a folder or a
    cluster, it alone writes there: then a plan that is not empty is refused.
    """
    from generator.cli import plans
    from generator.cli.observation import parse_sources
    from generator.objects.write_policy import parse_write_policy

    given = parse_sources(sources)
    cluster = None if store else given.cluster
    with plans.hold_folder(store), plans.open_plan_store(store, cluster) as opened:
        observed = plans.read_observed(store, None, given.cluster)
        policy = parse_write_policy(observed.fabric)
        if not policy.is_paused:
            observed = _redate(observed, opened)
        if approve is not None:
            policy = policy.with_approved_plan(approve)
        plan = plans.build_plan(
            plans.add_store_reports(given, store, observed.fabric), observed, policy=policy
        )
        _drop_approval(plan, observed, opened, namespace)
        is_held = not (plan.verdict.is_allowed or policy.is_approved(plan.verdict.hash))
        if plan.actions and (is_held or policy.is_paused):
            print_document([], output, text=lambda: "nothing was changed")
            plans.print_verdict(plan.verdict, policy)
            if is_held:
                click.echo(
                    f"to carry it out, run this command again with --approve {plan.verdict.hash}",
                    err=True,
                )
            exit_with_problems(plan.problems, ExitCode.CHECK_FAILED)
        with plans.hold_writes(plan, opened, namespace):
            result = plans.write_plan(plan, opened, output, observed=observed)
    if result.error is not None:
        pending = show_count(len(result.pending), "action")
        click.echo(f"error: {result.error}; {pending} not done", err=True)
        exit_with_problems(plan.problems, ExitCode.INTERNAL)
    is_good = True
    if plan.outputs is not None and not policy.is_paused:
        request = plan.outputs._replace(is_writing=True)
        with plans.open_publisher(store, cluster, namespace=namespace) as publisher:
            is_good = plans.are_good(plans.publish(publisher, request))
    exit_with_problems(plan.problems, None if is_good else ExitCode.INTERNAL)


def _redate(observed: ObservedHyperNodes, store: FabricStore) -> ObservedHyperNodes:
    """Rewrite a record of a clock that was ahead: it would use up the budget until then."""
    from generator.reconcile.decided_tree import with_past_times

    found = None if observed.record is None else with_past_times(observed.record, utc_now())
    if found is None:
        return observed
    with suppress(KubeError, StoreError):  # the next run tries again
        store.write_record(found)
        return observed._replace(record=found)
    return observed


def _drop_approval(
    plan: Plan, observed: ObservedHyperNodes, store: FabricStore, namespace: str
) -> None:
    """Remove the approval of another plan than this one, unless a server decides about it."""
    from generator.objects.write_policy import parse_write_policy

    approved = parse_write_policy(observed.fabric).approved_plan
    if not approved or (plan.actions and plan.verdict.hash == approved):
        return
    with suppress(ConfigError, KubeError, StoreError), store.hold_writes(namespace):
        if store.consume_approval(approved):
            click.echo(f"the approval of plan {approved} is removed: it is not held", err=True)
