"""The input of `plan` and `apply`, and the plan: sources and observed HyperNodes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from generator.cli.observation import LoadedObservation, read_observation
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.objects.pods import Gang
from generator.objects.tree_record import TreeRecord
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, TreeSpec, parse_tree_spec
from generator.objects.write_policy import WritePolicy
from generator.outputs.hypernode import HyperNode
from generator.reconcile.decided_tree import (
    TreeStep,
    add_unplaced,
    build_step,
    find_last_tree,
)
from generator.reconcile.desired import (
    compute_coverage,
    find_decided,
    plan_removal,
    plan_tree_changes,
)
from generator.reconcile.guard import PlanEvidence, PlanVerdict, hash_plan, judge_plan
from generator.reconcile.outputs import PublishRequest, build_request
from generator.reconcile.plan import Action
from generator.store.base import NO_VOLCANO, StoredHyperNodes, StoredRecord
from generator.store.directory import REPORTS, DirectoryStore, read_hypernodes
from runtime.clock import utc_now
from topology.model.errors import KubeForbidden, KubeNotFound, ParseError
from topology.model.tree import TopologyTree


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
        sources = sources._replace(reports=store / REPORTS)
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
    opened = DirectoryStore(store)
    read = opened.read_hypernodes()
    stored = opened.read_record()
    problems = (*read.problems, *stored.problems)
    return ObservedHyperNodes(read.hypernodes, problems, opened.read_fabric(), record=stored.record)


def _fetch_observed(cluster: ClusterAccess) -> ObservedHyperNodes:
    """Read what a plan for a cluster depends on; name what this user may not read.

    Raises:
        KubeError: the cluster cannot be read.
    """
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - loads the Kubernetes client

    with open_cluster(cluster, os.environ) as store:
        fabric = store.read_fabric()
        try:
            read = store.read_hypernodes()
        except KubeNotFound as error:
            if parse_tree_spec(fabric)[0].has_hypernodes:
                raise KubeNotFound(NO_VOLCANO) from error
            read = StoredHyperNodes((), (), 0, is_missing=True)  # a cluster without Volcano
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
