"""Plans: what they depend on, how they are made, printed and written, and the store they change."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.observation import LoadedObservation, read_observation
from generator.cli.output import Table, open_progress, print_document, show_count
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.kube.resources import REPORTS
from generator.objects.outputs import OutputState
from generator.objects.pods import Gang
from generator.objects.tree_record import TreeRecord
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, parse_tree_spec
from generator.objects.write_policy import WritePolicy
from generator.outputs.hypernode import HyperNode
from generator.reconcile.decided_tree import (
    TreeStep,
    add_unplaced,
    build_record,
    build_step,
    find_last_tree,
)
from generator.reconcile.desired import (
    compute_coverage,
    find_decided,
    plan_removal,
    plan_tree_changes,
)
from generator.reconcile.folder_outputs import FolderPublisher
from generator.reconcile.guard import PlanEvidence, PlanVerdict, hash_plan, judge_plan
from generator.reconcile.outcome import OutputsOutcome
from generator.reconcile.outputs import Publisher, PublishRequest, build_request, publish_once
from generator.reconcile.plan import Action, render_action
from generator.reconcile.writer import ApplyResult, HyperNodeStore, apply_plan
from generator.store.base import NO_VOLCANO, StoredHyperNodes, StoredRecord
from generator.store.fabric_store import FabricStore, open_folder
from generator.store.folder_lock import FolderLock
from generator.store.object_folders import read_hypernodes
from runtime.clock import utc_now
from runtime.signals import noting_interruption
from topology.model.errors import (
    KubeError,
    KubeForbidden,
    KubeNotFound,
    ParseError,
    StoreError,
    show,
)
from topology.model.tree import TopologyTree

_GOOD_STATES: Final = frozenset({OutputState.WRITTEN, OutputState.PENDING})
"""The states of an output after a command that did its work."""


@contextmanager
def open_plan_store(store: Path | None, cluster: ClusterAccess | None) -> Iterator[FabricStore]:
    """Yield the store: the folder or the cluster.

    Raises:
        click.UsageError: neither is given, or both are.
        ConfigError: there are no credentials for the cluster.
    """
    if (store is None) == (cluster is None):
        raise click.UsageError("give the store to write to: either --store or --kube")
    if cluster is None:
        yield open_folder(store or Path())
        return
    from generator.store.cluster_store import open_objects

    with open_objects(cluster, os.environ, on_note=partial(click.echo, err=True)) as objects:
        yield FabricStore(objects, is_shared=True)


@contextmanager
def open_publisher(
    store: Path | None, cluster: ClusterAccess | None, *, namespace: str
) -> Iterator[Publisher]:
    """Yield what writes the outputs other than HyperNodes to the folder or the cluster.

    Raises:
        ConfigError: there are no credentials for the cluster.
    """
    if cluster is None:
        yield FolderPublisher(store or Path(), namespace=namespace)
        return
    from generator.reconcile.cluster_outputs import ClusterPublisher
    from generator.store.cluster_store import open_objects

    with open_objects(cluster, os.environ, on_change=lambda: None) as objects:
        yield ClusterPublisher(objects, namespace=namespace, clock=time.monotonic)


@contextmanager
def hold_folder(store: Path | None) -> Iterator[None]:
    """Hold the right to write a folder.

    In a cluster, `FabricStore.hold_writes` does the same.

    Raises:
        ConfigError: a server or another command writes the folder.
        WriteError: the folder cannot be written.
    """
    lock = FolderLock(store) if store is not None else None
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


class Plan(NamedTuple):
    """Ordered actions, the verdict on them, and the problems met while planning."""

    actions: tuple[Action, ...]
    problems: tuple[ParseError, ...]
    verdict: PlanVerdict
    decision: TreeStep
    """The step from the last decision, which is recorded before the first action."""
    is_adoptable: bool = True
    """Whether the step may be recorded although it needs no action."""
    is_decision_only: bool = False
    """Whether the actions are recorded and not written: there is no output `hypernode`."""
    outputs: PublishRequest | None = None
    """What the other outputs should be once the plan is written; None while it is unknown."""


class ObservedHyperNodes(NamedTuple):
    """The existing HyperNodes, those that could not be read, and what else a plan depends on."""

    hypernodes: tuple[HyperNode, ...] = ()
    problems: tuple[ParseError, ...] = ()
    fabric: Mapping[str, Any] | None = None
    """The Fabric object: budget, approvals, outputs."""
    gangs: tuple[Gang, ...] = ()
    """The running gangs, as far as they are known."""
    record: TreeRecord | None = None
    """The tree that was decided last."""


def add_store_reports(
    sources: Sources, store: Path | None, fabric: Mapping[str, Any] | None
) -> Sources:
    """Return the sources; without a source, the reports of the store.

    The tree has the shape that the Fabric object sets, unless an option overrides it.
    """
    if store is not None and sources.is_empty:
        sources = sources._replace(reports=store / REPORTS.plural)
    tree_spec, problems = parse_tree_spec(fabric)
    # A cluster's Fabric object is read, and reported, with its other inputs.
    unread = () if sources.cluster else problems
    return sources._replace(tree_spec=tree_spec, tree_spec_problems=unread)


def read_observed(
    store: Path | None, folder: Path | None, cluster: ClusterAccess | None = None
) -> ObservedHyperNodes:
    """Read the observed HyperNodes of a store, of a folder that holds them, or of a cluster.

    The cluster is read if neither a store nor a folder is given. A store without the subfolder is
    new: it has no HyperNodes yet. In a store, only HyperNodes that can be replaced and removed
    count: each in a file that has its name.

    Raises:
        click.UsageError: without a cluster, not exactly one of store and folder is given.
        KubeError: the cluster cannot be read.
        StoreError: the folder cannot be read.
    """
    if cluster is not None and store is None and folder is None:
        return _fetch_observed(cluster)
    if (store is None) == (folder is None):
        raise click.UsageError("give the HyperNodes to compare with: either --store or --observed")
    if store is None:
        read = read_hypernodes(folder or Path())
        return ObservedHyperNodes(read.hypernodes, read.problems)
    opened = open_folder(store)
    read = opened.read_hypernodes()
    stored = opened.read_record()
    problems = (*read.problems, *stored.problems)
    return ObservedHyperNodes(read.hypernodes, problems, opened.read_fabric(), record=stored.record)


def _fetch_observed(cluster: ClusterAccess) -> ObservedHyperNodes:
    """Read what a plan for a cluster depends on; name what this user may not read.

    Raises:
        KubeError: the cluster cannot be read.
    """
    from generator.store.cluster_store import open_cluster

    with open_cluster(cluster, os.environ) as store:
        fabric = store.read_fabric()
        try:
            read = store.read_hypernodes()
        except KubeNotFound as error:
            if parse_tree_spec(fabric)[0].has_hypernodes:
                raise KubeNotFound(NO_VOLCANO) from error
            read = StoredHyperNodes(is_missing=True)  # a cluster without Volcano
        problems, stored = [*read.problems], StoredRecord()
        gangs: tuple[Gang, ...] = ()
        try:
            gangs = store.read_gangs()
        except KubeForbidden as error:
            problems.append(ParseError(f"running gangs are unknown: {error}", source="pods"))
        try:
            stored = store.read_record()
        except KubeForbidden as error:
            text = f"the last decision is unknown: {error}"
            problems.append(ParseError(text, source="treerecords"))
        problems += stored.problems
        return ObservedHyperNodes(read.hypernodes, tuple(problems), fabric, gangs, stored.record)


def build_plan(sources: Sources, observed: ObservedHyperNodes, *, policy: WritePolicy) -> Plan:
    """Read the sources, plan the changes towards their tree, and judge the plan.

    Saved reports have no age, so every report counts as fresh.

    Raises:
        click.UsageError: no source is given.
        TopologyError: there is no usable input, so nothing is planned.
    """
    tree_spec, problems = parse_tree_spec(observed.fabric)
    if not tree_spec.has_hypernodes and not tree_spec.outputs:
        return _build_removal(observed, policy, problems)
    previous = find_last_tree(observed.record, observed.hypernodes)
    return plan_observation(read_observation(sources, previous=previous), observed, policy=policy)


def plan_observation(
    read: LoadedObservation, observed: ObservedHyperNodes, *, policy: WritePolicy
) -> Plan:
    """Plan the changes towards an observed tree, and judge the plan."""
    tree_spec = parse_tree_spec(observed.fabric)[0]
    existing = observed.hypernodes
    if not tree_spec.has_hypernodes:  # the plan differs from the last decision
        existing = find_decided(observed.record, read.observation.tree)
    planned = plan_tree_changes(read.observation, existing)
    decision = build_step(
        observed.record,
        planned.desired,
        existing=find_last_tree(observed.record, existing),
        budget=policy.budget,
        now=utc_now(),
    )
    coverage = compute_coverage(read.inputs.inventory, read.inputs.reports, read.observation.tree)
    verdict = judge_plan(
        planned.actions,
        decision,
        budget=policy.budget,
        evidence=PlanEvidence(coverage, observed.gangs, read.observation.doubts),
    )
    problems = (*read.problems, *observed.problems, *policy.problems, *planned.problems)
    # Without a desired tree the fabric is unknown; with conflicts, some were not written.
    is_adoptable = planned.desired is not None and (verdict.is_allowed or not planned.problems)
    is_decided = verdict.is_allowed or policy.is_approved(verdict.hash)
    request = _build_request(read, planned.desired if is_decided else None, tree_spec, observed)
    return Plan(
        planned.actions,
        problems,
        verdict,
        decision,
        is_adoptable=is_adoptable,
        is_decision_only=not tree_spec.has_hypernodes,
        outputs=request,
    )


def _build_request(
    read: LoadedObservation,
    desired: TopologyTree | None,
    tree_spec: TreeSpec,
    observed: ObservedHyperNodes,
) -> PublishRequest | None:
    """Return what the other outputs should be: as decided now, or as decided before."""
    inventory = read.inputs.inventory
    nodes = [node.name for node in inventory.nodes] if inventory else ()
    tree = desired or (observed.record.tree if observed.record is not None else None)
    if tree is not None and tree.domains:
        tree = add_unplaced(tree, nodes=nodes, unplaced=read.observation.tree.unplaced)
    else:
        tree = None
    return build_request(tree, tree_spec, fabric=observed.fabric, gangs=observed.gangs)


def _build_removal(
    observed: ObservedHyperNodes, policy: WritePolicy, spec_problems: tuple[ParseError, ...]
) -> Plan:
    """Return the plan that removes all of our HyperNodes, because the Fabric object wants none."""
    planned = plan_removal(observed.hypernodes)
    counts = Counter(action.op for action in planned.actions)
    decision = build_step(observed.record, planned.desired, budget=policy.budget, now=utc_now())
    problems = (*observed.problems, *policy.problems, *spec_problems, *planned.problems)
    verdict = PlanVerdict(hash_plan(planned.actions), counts=counts)
    removed = build_request(None, DEFAULT_TREE_SPEC, fabric=observed.fabric)
    return Plan(planned.actions, problems, verdict, decision, outputs=removed)


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


def are_good(outcome: OutputsOutcome) -> bool:
    """Return whether all outputs are as they should be after a write."""
    return all(row.state in _GOOD_STATES for row in outcome.rows)


def build_plan_table(plan: Plan) -> Table:
    """Return a row per action, and their number."""
    rows = [
        (action.op.value, action.name, str(action.tier), show(action.reason, 200))
        for action in plan.actions
    ]
    total = show_count(len(rows), "action")
    return Table(("action", "hypernode", "tier", "reason"), rows, total, "nothing to change")


def hold_writes(plan: Plan, store: FabricStore, namespace: str) -> AbstractContextManager[None]:
    """Let no server write within the context; without anything to write, do nothing."""
    return store.hold_writes(namespace) if plan.actions or _is_new(plan) else nullcontext()


def write_plan(
    plan: Plan,
    store: FabricStore,
    output: str,
    *,
    observed: ObservedHyperNodes,
    writer: HyperNodeStore | None = None,
) -> ApplyResult:
    """Record what is decided, use up its approval, write the actions, and print the done ones.

    Args:
        plan: what to do.
        store: where it is recorded.
        output: the format of the done actions.
        observed: what the plan follows from; nothing is written if it has changed.
        writer: where the actions are written; None: the store.
    """
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
                else apply_plan(plan.actions, writer or store, on_done=count_action)
            )
    document = [render_action(action) for action in result.done]
    print_document(
        document, output, text=lambda: build_plan_table(plan._replace(actions=result.done))
    )
    return result


def _check_unchanged(plan: Plan, observed: ObservedHyperNodes, store: FabricStore) -> None:
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


def _write_record(plan: Plan, store: FabricStore) -> None:
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
