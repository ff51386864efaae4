"""What `place` and `compare` read: the request, the cluster, and what runs there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from generator.cli.input_files import read_running_gangs
from generator.cli.observation import read_observation, read_tree
from generator.cli.options import parse_duration, parse_level_names, combine_options
from generator.cli.request_input import (
    LoadedRequest,
    load_request,
    print_translation,
    print_notes,
    print_unused_arguments,
)
from generator.cli.source_options import source_options
from generator.ingest.sources import Sources
from generator.kube.access import ClusterAccess
from generator.objects.inventory import Inventory, build_node_specs
from generator.placement.cluster.snapshot import RunningGang, Snapshot, build_snapshot
from generator.reservations.holds import ReservedNodes, with_nominations
from generator.store.local_files import read_inventory
from topology.model.errors import ParseError
from topology.model.tree import TopologyTree


class ClusterInput(NamedTuple):
    """A cluster to place in, and what of its input was skipped."""

    tree: TopologyTree
    inventory: Inventory | None
    problems: tuple[ParseError, ...]
    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """What is reserved, by reservation."""


request_options: Final = combine_options(
    click.option(
        "-f",
        "--file",
        help="PlacementRequest, or manifests of Volcano, Kueue, KAI, Koordinator or Godel, as YAML "
        "or JSON, or a script for sbatch; - is stdin.",
    ),
    click.option(
        "--sbatch", metavar="OPTIONS", help='Instead of a file: "--nodes=16 --switches=1".'
    ),
    click.option(
        "--level",
        multiple=True,
        metavar="NAME=TIER",
        help="Tier that another system's manifest calls NAME. May be repeated.",
    ),
)
cluster_options: Final = combine_options(
    source_options,
    click.option(
        "--tree",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="TopologyTree to place in, as `toponaut tree` prints it.",
    ),
    click.option(
        "--running",
        type=click.Path(exists=True, dir_okay=False),
        help="Gangs that run: [{gang, priority, min, pods: [{node, request, count, group}]}].",
    ),
)
timeout_option = click.option(
    "--timeout",
    type=parse_duration,
    metavar="DURATION",
    default="10s",
    show_default=True,
    help="Time for the search; the request's deadline_s may be shorter.",
)


def read_request(options: dict[str, Any]) -> LoadedRequest:
    """Read what is asked for; another system's manifest is told how it was understood."""
    file, sbatch = options["file"], options["sbatch"]
    if (file is None) == (sbatch is None):
        raise click.UsageError("name one request: --file or --sbatch")
    asked = load_request(file, sbatch, parse_level_names(options["level"]))
    if asked.translation is not None:
        print_translation(asked.translation)
    else:
        print_unused_arguments(asked.document)
    return asked


def fit_to_inventory(asked: LoadedRequest, inventory: Inventory | None) -> LoadedRequest:
    """Write another system's request in the units of the nodes."""
    fitted, notes = asked.fit_to_nodes(inventory)
    print_notes(notes)
    return fitted


def read_cluster_input(sources: Sources, tree: Path | None) -> ClusterInput:
    """Read the cluster: a tree as it is, or one inferred from what the sources say.

    Raises:
        click.UsageError: both are named, or neither.
    """
    if tree is None:
        read = read_observation(sources)
        seen = read.observation.tree
        if sources.cluster is not None and sources.nodes is None:
            free, kept = _fetch_free_nodes(sources.cluster)
            extra = tuple(one for one in free.problems if one not in read.problems)
            problems = (*read.problems, *extra, *kept.problems)
            return ClusterInput(seen, free, problems, kept.nominated)
        inventory = read.inputs.inventory or read_inventory(sources.nodes)
        return ClusterInput(seen, inventory, read.problems)
    if not sources.is_empty:
        raise click.UsageError("--tree is a tree already; name no other source beside it")
    inventory = read_inventory(sources.nodes)
    return ClusterInput(read_tree(tree), inventory, inventory.problems if inventory else ())


def _fetch_free_nodes(cluster: ClusterAccess) -> tuple[Inventory, ReservedNodes]:
    from generator.reservations.cluster_view import fetch_reserved_nodes  # noqa: PLC0415 - heavy, and rarely needed
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - the same

    with open_cluster(cluster, os.environ) as store:
        # Pods first: what they use up of reservations is then taken off the nodes as well.
        kept = fetch_reserved_nodes(cluster, os.environ, store.read_pods())
        return store.read_free_nodes(), kept


def build_input_snapshot(scene: ClusterInput, running: str | None) -> Snapshot:
    """Return the cluster with the gangs of a file running on it, and what is reserved."""
    gangs = read_running_gangs(running) if running else ()
    free = build_snapshot(scene.tree, build_node_specs(scene.inventory, scene.tree.nodes), gangs)
    return with_nominations(free, scene.nominated)
