"""Plans: what they depend on, how they are made, printed and written, and the store they change."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.cli.observation import LoadedObservation, read_observation
from generator.cli.output import Table, open_progress, print_document, show_count
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.kube.cache import Listing
from generator.kube.resources import REPORTS
from generator.objects.outputs import OutputState
from generator.objects.pods import Gang
from generator.objects.tree_record import TreeRecord
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, parse_tree_spec
from generator.objects.write_policy import parse_write_policy
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.decided_tree import add_unplaced, find_last_tree
from generator.reconcile.decision import Decision, RoundState, judge
from generator.reconcile.desired import (
    NO_VOLCANO,
    compute_coverage,
    find_decided,
    plan_removal,
    plan_tree_changes,
)
from generator.reconcile.folder_outputs import FolderPublisher
from generator.reconcile.guard import HoldReason, PlanEvidence, PlanVerdict
from generator.reconcile.hypernode_plan import Action, render_action
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.outputs import (
    Publisher,
    PublishRequest,
    build_request,
    publish_until_settled,
)
from generator.reconcile.writer import ApplyResult, carry_out, find_done
from generator.store.fabric_store import FabricStore, StoredRecord, open_folder
from generator.store.folder_lock import FolderLock
from generator.store.object_folders import read_hypernodes
from generator.store.object_store import Fence
from runtime.clock import utc_now
from runtime.program import noting_interruption
from topology.model.errors import (
    ConfigError,
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
    store: Path | None,
    cluster: ClusterAccess | None,
    *,
    namespace: str,
    fence: Fence = lambda: inf,
) -> Iterator[Publisher]:
    """Yield the publisher of the outputs other than HyperNodes, for the folder or the cluster.

    Args:
        store: the folder.
        cluster: the cluster; None: the folder is written.
        namespace: the namespace of the objects, except cluster-wide ones.
        fence: says before each write to the cluster whether it may be sent.

    Raises:
        ConfigError: there are no credentials for the cluster.
    """
    if cluster is None:
        yield FolderPublisher(store or Path(), namespace=namespace)
        return
    from generator.reconcile.cluster_outputs import ClusterPublisher
    from generator.store.cluster_store import open_objects

    with open_objects(cluster, os.environ, fence=fence, on_change=lambda: None) as objects:
        yield ClusterPublisher(objects, namespace=namespace, clock=time.monotonic)


@contextmanager
def hold_folder(store: Path | None) -> Iterator[None]:
    """Hold the right to write a folder.

    In a cluster, `ObjectStore.hold_writes` does the same.

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
    """What a command would write, the verdict on it, and the problems met while planning."""

    state: RoundState
    """The input of `decide`."""
    verdict: PlanVerdict
    problems: tuple[ParseError, ...]
    outputs: PublishRequest | None = None
    """The other outputs as they should be once the plan is written; None while it is unknown."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """Ordered actions."""
        return self.state.actions

    @property
    def changes(self) -> tuple[Action, ...]:
        """The actions, and the removal of HyperNodes that are no output any more."""
        return (*self.actions, *self.state.unwanted)

    @property
    def is_approved(self) -> bool:
        """Whether a person has approved the plan, in the Fabric object or with an option."""
        return self.verdict.hash in (self.state.approved, self.state.policy.approved_plan)

    @property
    def is_decided(self) -> bool:
        """Whether the plan is written, unless writing is paused."""
        return self.verdict.is_allowed or self.is_approved


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
        return ObservedHyperNodes(read.values, read.all_problems)
    opened = open_folder(store)
    read = opened.read_hypernodes()
    stored = opened.read_record()
    problems = (*read.all_problems, *stored.problems)
    return ObservedHyperNodes(read.values, problems, opened.read_fabric(), record=stored.record)


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
            read = Listing(is_missing=True)  # a cluster without Volcano
        problems, stored = [*read.all_problems], StoredRecord()
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
        return ObservedHyperNodes(read.values, tuple(problems), fabric, gangs, stored.record)


def build_plan(sources: Sources, observed: ObservedHyperNodes, *, approved: str = "") -> Plan:
    """Read the sources, plan the changes towards their tree, and judge the plan.

    Saved reports have no age, so every report counts as fresh.

    Args:
        sources: the inputs of the tree.
        observed: the HyperNodes that the plan changes or depends on.
        approved: the hash of a plan that an option approves.

    Raises:
        click.UsageError: no source is given.
        TopologyError: there is no usable input, so nothing is planned.
    """
    tree_spec, problems = parse_tree_spec(observed.fabric)
    if not tree_spec.has_hypernodes and not tree_spec.outputs:
        return _build_removal(observed, approved, problems)
    previous = find_last_tree(observed.record, observed.hypernodes)
    read = read_observation(sources, previous=previous)
    return plan_observation(read, observed, approved=approved)


def plan_observation(
    read: LoadedObservation,
    observed: ObservedHyperNodes,
    *,
    approved: str = "",
    claims: tuple[Action, ...] = (),
    holds: tuple[HoldReason, ...] = (),
) -> Plan:
    """Plan the changes towards an observed tree, and judge the plan.

    Args:
        read: the observed tree.
        observed: the HyperNodes that the plan changes.
        approved: the hash of a plan that an option approves.
        claims: actions that come before those of the plan.
        holds: reasons to hold the plan whatever it changes.
    """
    tree_spec = parse_tree_spec(observed.fabric)[0]
    existing = observed.hypernodes
    if not tree_spec.has_hypernodes:  # the plan differs from the last decision
        existing = find_decided(observed.record, read.observation.tree)
    planned = plan_tree_changes(read.observation, existing)
    planned = planned._replace(actions=(*claims, *planned.actions))
    coverage = compute_coverage(read.inputs.inventory, read.inputs.reports, read.observation.tree)
    state = _begin(observed, approved)._replace(
        planned=planned,
        observed=observed.hypernodes,
        existing=find_last_tree(observed.record, existing),
        evidence=PlanEvidence(coverage, observed.gangs, read.observation.doubts, holds),
        is_decision_only=not tree_spec.has_hypernodes,
    )
    problems = (*read.problems, *observed.problems, *state.policy.problems, *planned.problems)
    plan = Plan(state, judge(state), problems)
    desired = planned.desired if plan.is_decided else None
    return plan._replace(outputs=_build_publish_request(read, desired, tree_spec, observed))


def _begin(observed: ObservedHyperNodes, approved: str) -> RoundState:
    """Return the input of a command's decision, without a plan yet.

    Raises:
        ConfigError: the option's text is not the hash of a plan.
    """
    policy = parse_write_policy(observed.fabric)
    if approved:
        policy.with_approved_plan(approved)
    return RoundState(None, utc_now(), record=observed.record, policy=policy, approved=approved)


def _build_publish_request(
    read: LoadedObservation,
    desired: TopologyTree | None,
    tree_spec: TreeSpec,
    observed: ObservedHyperNodes,
) -> PublishRequest | None:
    """Return the other outputs as they should be, by the tree decided now or before."""
    inventory = read.inputs.inventory
    nodes = [node.name for node in inventory.nodes] if inventory else ()
    tree = desired or (None if observed.record is None else observed.record.tree)
    if tree is not None:
        unplaced = read.observation.tree.unplaced
        # A tree without domains decides nothing: the outputs stay.
        tree = add_unplaced(tree, nodes=nodes, unplaced=unplaced) if tree.domains else None
    return build_request(tree, tree_spec, fabric=observed.fabric, gangs=observed.gangs)


def _build_removal(
    observed: ObservedHyperNodes, approved: str, spec_problems: tuple[ParseError, ...]
) -> Plan:
    """Return the plan that removes all of our HyperNodes, because the Fabric object wants none."""
    planned = plan_removal(observed.hypernodes)
    state = _begin(observed, approved)._replace(
        planned=planned, observed=observed.hypernodes, is_removal=True
    )
    problems = (*observed.problems, *state.policy.problems, *spec_problems, *planned.problems)
    removed = build_request(None, DEFAULT_TREE_SPEC, fabric=observed.fabric)
    return Plan(state, judge(state), problems, removed)


def print_verdict(plan: Plan) -> None:
    """Print on stderr the hash of a plan, and whether `serve` and `apply` would apply it."""
    verdict, policy = plan.verdict, plan.state.policy
    if not verdict.counts:
        return
    approved = " and approved" if plan.is_approved else ""
    text = "can be applied" if verdict.is_allowed else f"is held{approved}: {verdict.reason_text}"
    why = f": {policy.unknown}" if policy.unknown else ""
    paused = f"; writing is paused{why}" if policy.is_paused else ""
    click.echo(f"plan {verdict.hash} {text}{paused}", err=True)


def publish(publisher: Publisher, request: PublishRequest) -> OutputsOutcome:
    """Compare or write the other outputs, and print a line for each on stderr."""
    with open_progress("comparing outputs") as progress:
        outcome = publish_until_settled(
            publisher, request, clock=time.monotonic, pause=time.sleep, progress=progress
        )
    for row in outcome.rows:
        counts = [f"{row.objects} written", f"{row.pending} to write"]
        if row.deferred:
            counts.append(f"{row.deferred} deferred")
        if row.refused:
            counts.append(f"{row.refused} refused")
        message = f": {row.message}" if row.message else ""
        click.echo(f"output {row.type} {row.state}: {', '.join(counts)}{message}", err=True)
    return outcome


def build_plan_table(actions: Sequence[Action]) -> Table:
    """Return the table of a plan: a row per action, and a last line with the number of actions."""
    rows = [
        (action.op.value, action.name, str(action.tier), show(action.reason, 200))
        for action in actions
    ]
    total = show_count(len(rows), "action")
    return Table(("action", "hypernode", "tier", "reason"), rows, total, "nothing to change")


def drop_approval(decision: Decision, store: FabricStore, namespace: str) -> None:
    """Remove an approval that is not for this plan, unless a server decides about it.

    A record of a clock that was ahead is corrected too, although the plan is not written.
    """
    if not (decision.void_approval or decision.record):
        return
    with suppress(ConfigError, KubeError, StoreError), store.objects.hold_writes(namespace):
        removal = carry_out(decision, store).removal
        if removal.is_removed:
            text = f"the approval of plan {removal.approval} is removed: it is not held"
            click.echo(text, err=True)


class WritePlace(NamedTuple):
    """The folder or the cluster to which a command writes its plan."""

    opened: FabricStore
    folder: Path | None
    cluster: ClusterAccess | None
    """None: the folder."""
    namespace: str
    """The namespace of the lease, and of the objects that are not cluster-wide."""


def write_plan(
    decision: Decision,
    request: PublishRequest | None,
    place: WritePlace,
    output: str,
    *,
    observed: ObservedHyperNodes,
    left: str = "",
) -> bool:
    """Write what was decided, then the other outputs; return whether all succeeded.

    Prints the finished actions, and a line on stderr for a failure and for each other output.

    Args:
        decision: the plan, and whether it may be written.
        request: the other outputs as they should be; None: they stay as they are.
        place: the folder or cluster that the decision is about and is written to.
        output: the format of the finished actions.
        observed: the HyperNodes and the record that the decision was made from; if they have
            changed since, nothing is written.
        left: words for the work that a failure leaves undone; empty: the pending actions.
    """
    is_writing = decision.is_writing or not (request is None or request.is_empty)
    objects = place.opened.objects
    held = objects.hold_writes(place.namespace) if is_writing else nullcontext(lambda: inf)
    with held as fence:
        result = _write_hypernodes(decision, place.opened, output, observed)
        if result.error is not None:
            pending = f"{show_count(len(result.pending), 'action')} not done"
            click.echo(f"error: {result.error}; {left or pending}", err=True)
            return False
        if request is None:
            return True
        with open_publisher(
            place.folder, place.cluster, namespace=place.namespace, fence=fence
        ) as publisher:
            outcome = publish(publisher, request._replace(is_writing=True))
    return all(row.state in _GOOD_STATES for row in outcome.rows)


def _write_hypernodes(
    decision: Decision, store: FabricStore, output: str, observed: ObservedHyperNodes
) -> ApplyResult:
    """Carry out a decision, and print the finished actions."""
    num_done, total = 0, len(decision.plan)

    def describe() -> str:
        return f"{num_done} of {show_count(total, 'action')} done; the next run continues"

    with open_progress("writing HyperNodes") as progress, noting_interruption(describe):

        def count_action(_: Action) -> None:
            nonlocal num_done
            num_done += 1
            progress.show("writing HyperNodes", num_done=num_done, total=total)

        try:
            _check_unchanged(decision, observed, store)
        except (KubeError, StoreError) as error:
            result = ApplyResult((), decision.plan, error)
        else:
            decision = decision._replace(void_approval="")
            result = carry_out(decision, store, on_done=count_action).applied
    done = find_done(decision, result)
    if decision.actions != decision.plan:
        done = (*done, *result.done)
    document = [render_action(action) for action in done]
    print_document(document, output, text=lambda: build_plan_table(done))
    return result


def _check_unchanged(decision: Decision, observed: ObservedHyperNodes, store: FabricStore) -> None:
    """Refuse a plan that follows from an outdated decision, or from outdated HyperNodes.

    Raises:
        StoreError: another program, such as `serve`, has decided or written since the plan was
            made.
        KubeError: the cluster cannot be read.
    """
    with suppress(KubeForbidden):  # then it could not be read for the plan either, which is said
        if store.read_record().record != observed.record:
            raise StoreError("another program has decided meanwhile; run the command again")
    # If no HyperNode is written, there may be none to read: Volcano is not installed.
    if decision.actions and store.read_hypernodes().values != observed.hypernodes:
        raise StoreError("HyperNodes have changed meanwhile; run the command again")
