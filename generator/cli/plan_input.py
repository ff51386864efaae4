"""The inputs of `plan` and `apply`: sources and observed HyperNodes, and the plan made of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from generator.cli.observation import read_observation
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.objects.pods import Gang
from generator.objects.tree_spec import parse_tree_spec
from generator.objects.write_policy import WritePolicy
from generator.outputs.hypernode import HyperNode
from generator.reconcile.desired import compute_coverage, plan_tree_changes, derive_previous_tree
from generator.reconcile.guard import PlanVerdict, hash_plan, judge_plan
from generator.reconcile.plan import Action
from generator.store.directory import REPORTS, DirectoryStore, read_hypernodes
from topology.model.errors import KubeForbidden, ParseError


class Plan(NamedTuple):
    """Ordered actions, whether they may be carried out, and what stood in their way."""

    actions: tuple[Action, ...]
    problems: tuple[ParseError, ...]
    verdict: PlanVerdict


class ObservedHyperNodes(NamedTuple):
    """HyperNodes that exist, what of them could not be read, and what else decides of a plan."""

    hypernodes: tuple[HyperNode, ...] = ()
    problems: tuple[ParseError, ...] = ()
    fabric: Mapping[str, Any] | None = None
    """What people want."""
    gangs: tuple[Gang, ...] = ()
    """What runs, as far as that is known."""


def add_store_reports(
    sources: Sources, store: Path | None, fabric: Mapping[str, Any] | None
) -> Sources:
    """Return the sources; the reports of the store where no other source is named.

    The tree has the shape that the Fabric object says, as far as no option says another.
    """
    if store is not None and sources.is_empty:
        sources = sources._replace(reports=store / REPORTS)
    return sources._replace(tree_spec=parse_tree_spec(fabric)[0])


def read_observed(
    store: Path | None, folder: Path | None, cluster: ClusterAccess | None = None
) -> ObservedHyperNodes:
    """Read the observed HyperNodes of a store, or of a folder that directly holds them.

    Where neither is named, those of the cluster that is read.

    A store without the folder is new: nothing exists there yet. In a store only those count that
    can be replaced and removed there, each in a file of its own name.

    Raises:
        click.UsageError: neither is named, or both are.
        KubeError: the cluster cannot be read.
        StoreError: the folder cannot be read.
    """
    if cluster is not None and store is None and folder is None:
        return _fetch_observed(cluster)
    if (store is None) == (folder is None):
        raise click.UsageError("name what to compare with: either --store or --observed")
    if store is None:
        read = read_hypernodes(folder or Path())
        return ObservedHyperNodes(read.hypernodes, read.problems)
    place = DirectoryStore(store)
    read = place.read_hypernodes()
    return ObservedHyperNodes(read.hypernodes, read.problems, place.read_fabric())


def _fetch_observed(cluster: ClusterAccess) -> ObservedHyperNodes:
    """Read what a plan for a cluster depends on; warn if listing pods is forbidden.

    Raises:
        KubeError: the cluster cannot be read.
    """
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - loads the Kubernetes client

    with open_cluster(cluster, os.environ) as store:
        read, fabric = store.read_hypernodes(), store.read_fabric()
        try:
            gangs = store.read_gangs()
        except KubeForbidden as error:
            problem = ParseError(f"running gangs are not known: {error}", source="pods")
            return ObservedHyperNodes(read.hypernodes, (*read.problems, problem), fabric)
        return ObservedHyperNodes(read.hypernodes, read.problems, fabric, gangs)


def build_plan(sources: Sources, observed: ObservedHyperNodes, *, policy: WritePolicy) -> Plan:
    """Read the sources, plan towards their tree, and judge the plan.

    What is saved has no age, so every report counts as fresh.

    Raises:
        click.UsageError: no source is named.
        TopologyError: nothing usable was read, so nothing is planned.
    """
    previous = derive_previous_tree(observed.hypernodes)
    read = read_observation(sources, previous=previous)
    if not parse_tree_spec(observed.fabric)[0].has_hypernodes:
        nothing = ParseError("spec.outputs asks for no HyperNodes", source="Fabric default")
        return Plan((), (*read.problems, nothing), PlanVerdict(hash_plan(())))
    actions, conflicts = plan_tree_changes(read.observation, observed.hypernodes)
    coverage = compute_coverage(read.inputs.inventory, read.inputs.reports, read.observation.tree)
    verdict = judge_plan(
        actions,
        observed.hypernodes,
        budget=policy.budget,
        coverage=coverage,
        gangs=observed.gangs,
    )
    problems = (*read.problems, *observed.problems, *policy.problems, *conflicts)
    return Plan(actions, problems, verdict)
