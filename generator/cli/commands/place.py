"""`toponaut place`: where a gang should run, or why it cannot."""

from __future__ import annotations

import time
from typing import Any

import click

from generator.cli.cluster_input import (
    ClusterInput,
    cluster_options,
    fit_to_inventory,
    request_options,
    read_request,
    read_cluster_input,
    build_input_snapshot,
    timeout_option,
)
from generator.cli.exit_codes import ExitCode
from generator.cli.observation import exit_with_problems
from generator.cli.output import output_option, print_document
from generator.cli.placement_text import render_placement_text
from generator.cli.server_options import ServerEndpoint, parse_server_endpoint, server_options
from generator.cli.source_options import parse_sources
from generator.placement.answer import Placement, render_placement
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest


@click.command(name="place")
@request_options
@click.option("--translate", is_flag=True, help="Print the manifest as a PlacementRequest instead.")
@click.option(
    "--preset",
    type=click.Choice([preset.value for preset in Preset]),
    help="Order of preferences, instead of the request's own.",
)
@cluster_options
@server_options("to ask instead")
@timeout_option
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
    server, preset = parse_server_endpoint(options), options.pop("preset")
    sources = parse_sources(options)
    scene = None
    asked = read_request(options)
    if options["translate"]:
        print_document(asked.document, "yaml" if output == "text" else output, text=str)
        return
    request = asked.to_request(preset)
    if server is not None:
        if not sources.is_empty or tree or running or sources.nodes:
            raise click.UsageError("--server has its own inputs; name no others beside it")
        placement = _place_on_server(server, request, timeout)
    else:
        if not (sources.is_empty or sources.hypernodes or sources.plane):
            sources = sources._replace(plane=request.plane)
        scene = read_cluster_input(sources, tree)
        request = fit_to_inventory(asked, scene.inventory).to_request(preset)
        placement = _place_locally(scene, request, running=running, timeout_s=timeout)
    seen = scene.tree if scene else None
    print_document(
        render_placement(placement), output, text=lambda: render_placement_text(placement, seen)
    )
    if check and not placement.is_feasible:
        ctx.exit(ExitCode.CHECK_FAILED)
    exit_with_problems(ctx, scene.problems if scene else ())


def _place_on_server(
    server: ServerEndpoint, request: PlacementRequest, timeout_s: float
) -> Placement:
    from generator.rpc.client.typed_client import PlacementClient  # noqa: PLC0415 - gRPC only where asked

    with PlacementClient(server.address, timeout_s, server.identity) as client:
        return client.place(request)


def _place_locally(
    scene: ClusterInput, request: PlacementRequest, *, running: str | None, timeout_s: float
) -> Placement:
    return place(
        build_input_snapshot(scene, running), request.with_deadline(timeout_s), clock=time.monotonic
    )
