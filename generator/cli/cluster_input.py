"""What `place` and `compare` read: the request, the cluster, and what runs there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import click

from generator.cli.input_files import read_running
from generator.cli.observation import read_observation, read_tree
from generator.cli.options import parse_duration, parse_levels, together
from generator.cli.request_input import Asked, read_asked, tell, tell_notes, tell_unused
from generator.cli.source_options import input_options
from generator.ingest.sources import Sources
from generator.kube.access import Access
from generator.objects.inventory import Inventory, capacities
from generator.placement.cluster.snapshot import RunningGang, Snapshot, build_snapshot
from generator.reservations.holds import Kept, occupied
from generator.store.local_files import read_inventory
from topology.model.errors import ParseError
from topology.model.tree import TopologyTree


class Scene(NamedTuple):
    """A cluster to place in, and what of its input was skipped."""

    tree: TopologyTree
    inventory: Inventory | None
    problems: tuple[ParseError, ...]
    nominated: Mapping[str, RunningGang] = MappingProxyType({})
    """What is reserved, by reservation."""


question_options: Final = together(
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
cluster_options: Final = together(
    input_options,
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


def read_question(options: dict[str, Any]) -> Asked:
    """Read what is asked for; another system's manifest is told how it was understood."""
    file, sbatch = options["file"], options["sbatch"]
    if (file is None) == (sbatch is None):
        raise click.UsageError("name one request: --file or --sbatch")
    asked = read_asked(file, sbatch, parse_levels(options["level"]))
    if asked.translation is not None:
        tell(asked.translation)
    else:
        tell_unused(asked.document)
    return asked


def fitted(asked: Asked, inventory: Inventory | None) -> Asked:
    """Write another system's request in the units of the nodes."""
    fitted, notes = asked.fit(inventory)
    tell_notes(notes)
    return fitted


def read_scene(sources: Sources, tree: Path | None) -> Scene:
    """Read the cluster: a tree as it is, or one inferred from what the sources say.

    Raises:
        click.UsageError: both are named, or neither.
    """
    if tree is None:
        read = read_observation(sources)
        seen = read.observation.tree
        if sources.cluster is not None and sources.nodes is None:
            free, kept = _read_free(sources.cluster)
            extra = tuple(one for one in free.problems if one not in read.problems)
            problems = (*read.problems, *extra, *kept.problems)
            return Scene(seen, free, problems, kept.nominated)
        inventory = read.inputs.inventory or read_inventory(sources.nodes)
        return Scene(seen, inventory, read.problems)
    if not sources.is_empty:
        raise click.UsageError("--tree is a tree already; name no other source beside it")
    inventory = read_inventory(sources.nodes)
    return Scene(read_tree(tree), inventory, inventory.problems if inventory else ())


def _read_free(cluster: Access) -> tuple[Inventory, Kept]:
    from generator.reservations.cluster_view import read_kept  # noqa: PLC0415 - heavy, and rarely needed
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - the same

    with open_cluster(cluster, os.environ) as store:
        # Pods first: what they use up of reservations is then taken off the nodes as well.
        kept = read_kept(cluster, os.environ, store.read_pods())
        return store.read_free(), kept


def snapshot_of(scene: Scene, running: str | None) -> Snapshot:
    """Return the cluster with the gangs of a file running on it, and what is reserved."""
    gangs = read_running(running) if running else ()
    free = build_snapshot(scene.tree, capacities(scene.inventory, scene.tree.nodes), gangs)
    return occupied(free, scene.nominated)
