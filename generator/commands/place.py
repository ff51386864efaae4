"""`toponaut place`: where a gang should run, or why it cannot."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import click

from generator.answers import text_answer
from generator.asking import read_running
from generator.exits import Exit
from generator.inputs import Sources, input_options, read_inventory, sources_of
from generator.inventory import Inventory, capacities
from generator.options import parse_duration, parse_levels
from generator.placement.answer import Placement, render_placement
from generator.placement.capacity import build_snapshot
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest
from generator.printing import output_option, print_document
from generator.reading import finish, read_observation, read_tree
from generator.requesting import Asked, read_asked, tell, tell_notes
from generator.server_options import Server, server_of, server_options
from generator.store.access import Access
from topology.errors import ParseError
from topology.tree import TopologyTree


class Scene(NamedTuple):
    """A cluster to place in, and what of its input was skipped."""

    tree: TopologyTree
    inventory: Inventory | None
    problems: tuple[ParseError, ...]


@click.command(name="place")
@click.option(
    "-f",
    "--file",
    help="PlacementRequest, or manifests of Volcano, Kueue, KAI, Koordinator or Godel, as YAML or "
    "JSON, or a script for sbatch; - is stdin.",
)
@click.option("--sbatch", metavar="OPTIONS", help='Instead of a file: "--nodes=16 --switches=1".')
@click.option(
    "--level",
    multiple=True,
    metavar="NAME=TIER",
    help="Tier that another system's manifest calls NAME. May be repeated.",
)
@click.option("--translate", is_flag=True, help="Print the manifest as a PlacementRequest instead.")
@click.option(
    "--preset",
    type=click.Choice([preset.value for preset in Preset]),
    help="Order of preferences, instead of the request's own.",
)
@input_options
@click.option(
    "--tree",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TopologyTree to place in, as `toponaut tree` prints it.",
)
@click.option(
    "--running",
    type=click.Path(exists=True, dir_okay=False),
    help="Gangs that run: [{gang, priority, min, pods: [{node, request, count, group}]}].",
)
@server_options
@click.option(
    "--timeout",
    type=parse_duration,
    metavar="DURATION",
    default="10s",
    show_default=True,
    help="Time for the search; the request's deadline_s may be shorter.",
)
@click.option("--check", is_flag=True, help="Exit with 5 when there is no placement.")
@output_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    output: str,
    *,
    check: bool,
    timeout: float,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Print the best placement of a gang, and why it is not better.

    Free capacity comes from --nodes, with --kube from the cluster less what its pods take; else
    each node of the tree has one slot. Infeasible is an answer too.
    """
    tree, running = options.pop("tree"), options.pop("running")
    server, preset = server_of(options), options.pop("preset")
    sources = sources_of(options)
    scene = None
    asked = _read_asked(options)
    if options["translate"]:
        print_document(asked.document, "yaml" if output == "text" else output, text=str)
        return
    request = asked.request(preset)
    if server is not None:
        if not sources.is_empty or tree or running or sources.nodes:
            raise click.UsageError("--server has its own inputs; name no others beside it")
        placement = _ask(server, request, timeout)
    else:
        if not (sources.is_empty or sources.hypernodes or sources.plane):
            sources = sources._replace(plane=request.plane)
        scene = _read_scene(sources, tree)
        request = _fitted(asked, scene.inventory).request(preset)
        placement = _place(scene, request, running=running, timeout_s=timeout)
    print_document(
        render_placement(placement),
        output,
        text=lambda: text_answer(placement, scene.tree if scene else None),
    )
    if check and not placement.is_feasible:
        ctx.exit(Exit.CHECK_FAILED)
    finish(ctx, scene.problems if scene else ())


def _read_asked(options: dict[str, Any]) -> Asked:
    """Read what is asked for; another system's manifest is told how it was understood."""
    file, sbatch = options["file"], options["sbatch"]
    if (file is None) == (sbatch is None):
        raise click.UsageError("name one request: --file or --sbatch")
    asked = read_asked(file, sbatch, parse_levels(options["level"]))
    if asked.translation is not None:
        tell(asked.translation)
    return asked


def _fitted(asked: Asked, inventory: Inventory | None) -> Asked:
    """Write another system's request in the units of the nodes."""
    fitted, notes = asked.fit(inventory)
    tell_notes(notes)
    return fitted


def _read_scene(sources: Sources, tree: Path | None) -> Scene:
    if tree is None:
        read = read_observation(sources)
        seen = read.observation.tree
        if sources.cluster is not None and sources.nodes is None:
            free = _read_free(sources.cluster)
            extra = tuple(one for one in free.problems if one not in read.problems)
            return Scene(seen, free, (*read.problems, *extra))
        inventory = read.inputs.inventory or read_inventory(sources.nodes)
        return Scene(seen, inventory, read.problems)
    if not sources.is_empty:
        raise click.UsageError("--tree is a tree already; name no other source beside it")
    inventory = read_inventory(sources.nodes)
    return Scene(read_tree(tree), inventory, inventory.problems if inventory else ())


def _read_free(cluster: Access) -> Inventory:
    from generator.store.cluster import open_cluster  # noqa: PLC0415 - heavy, and rarely needed

    with open_cluster(cluster, os.environ) as store:
        return store.read_free()


def _ask(server: Server, request: PlacementRequest, timeout_s: float) -> Placement:
    from generator.rpc.client import PlacementClient  # noqa: PLC0415 - gRPC only where asked

    with PlacementClient(server.address, timeout_s, server.proof) as client:
        return client.place(request)


def _place(
    scene: Scene, request: PlacementRequest, *, running: str | None, timeout_s: float
) -> Placement:
    gangs = read_running(running) if running else ()
    snapshot = build_snapshot(scene.tree, capacities(scene.inventory, scene.tree.nodes), gangs)
    bounded = replace(request, deadline_s=min(timeout_s, request.deadline_s or timeout_s))
    return place(snapshot, bounded, clock=time.monotonic)
