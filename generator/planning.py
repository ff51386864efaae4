"""Sources and observed HyperNodes to a plan: shared by `plan`, `apply` and the server."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from generator.app import Observation
from generator.inputs import Sources
from generator.outputs.hypernode import HyperNode, lint, render_hypernodes, tree_of_hypernodes
from generator.reading import read_observation
from generator.reconcile.conflicts import find_conflicts
from generator.reconcile.plan import Action, plan_changes
from generator.store.access import Access
from generator.store.directory import REPORTS, DirectoryStore, read_hypernodes
from topology.errors import InvariantError, ParseError, show
from topology.tree import TopologyTree


class Plan(NamedTuple):
    """Ordered actions, and what stood in their way."""

    actions: tuple[Action, ...]
    problems: tuple[ParseError, ...]


class Observed(NamedTuple):
    """HyperNodes that exist, and what of them could not be read."""

    hypernodes: tuple[HyperNode, ...] = ()
    problems: tuple[ParseError, ...] = ()


def with_store(sources: Sources, store: Path | None) -> Sources:
    """Return the sources; the reports of the store where no other source is named."""
    if store is not None and sources.is_empty:
        return sources._replace(reports=store / REPORTS)
    return sources


def observed_in(store: Path | None, folder: Path | None, cluster: Access | None = None) -> Observed:
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
        return _observed_in_cluster(cluster)
    if (store is None) == (folder is None):
        raise click.UsageError("name what to compare with: either --store or --observed")
    read = DirectoryStore(store).read_hypernodes() if store else read_hypernodes(folder or Path())
    return Observed(read.hypernodes, read.problems)


def _observed_in_cluster(cluster: Access) -> Observed:
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - heavy, and rarely needed

    with open_cluster(cluster, os.environ) as opened:
        read = opened.read_hypernodes()
    return Observed(read.hypernodes, read.problems)


def make_plan(sources: Sources, observed: Observed) -> Plan:
    """Read the sources and plan towards their tree.

    Raises:
        click.UsageError: no source is named.
        TopologyError: nothing usable was read, so nothing is planned.
    """
    previous = previous_tree(observed.hypernodes)
    read = read_observation(sources, previous=previous)
    actions, conflicts = plan_towards(read.observation, observed.hypernodes)
    return Plan(actions, (*read.problems, *observed.problems, *conflicts))


def previous_tree(observed: Sequence[HyperNode]) -> TopologyTree | None:
    """Return the last generation's tree, None where nothing of ours exists."""
    ours = [found for found in observed if found.is_ours]
    return tree_of_hypernodes(ours).tree if ours else None


def plan_towards(
    observation: Observation, observed: Sequence[HyperNode]
) -> tuple[tuple[Action, ...], tuple[ParseError, ...]]:
    """Return the actions towards a tree's HyperNodes, and what stands in their way.

    A tree without any domain is a sweep that failed or captures that miss, not a fabric without
    switches, and a subnet without a whole sweep is unknown: what exists stays.

    Raises:
        InvariantError: what we rendered is not what Volcano accepts.
    """
    ours = sum(found.is_ours for found in observed)
    unknown = _unknown(observation)
    if ours and unknown:
        held = f"{unknown}: {ours} HyperNodes stay as they are"
        return (), (ParseError(held, source="HyperNodes"),)
    desired = render_hypernodes(observation.tree)
    faults = lint(desired)
    if faults:
        raise InvariantError("; ".join(faults[:5]))
    conflicts = tuple(
        ParseError(
            f"HyperNode {found.name} is left out: foreign {found.foreign} has its {found.kind}",
            source="HyperNodes",
        )
        for found in find_conflicts(desired, observed)
    )
    return plan_changes(desired, observed), conflicts


def _unknown(observation: Observation) -> str:
    """Return what is not known of the fabric, empty where that is nothing."""
    if observation.unknown_subnets:
        subnets = ", ".join(map(show, observation.unknown_subnets))
        return f"there is no whole sweep of subnet {subnets}, which is no data"
    return "" if observation.tree.domains else "no domain was found, which is no data"
