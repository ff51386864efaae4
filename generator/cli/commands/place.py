"""`toponaut place`: place a gang, or say why it does not fit."""

from __future__ import annotations

import time
from typing import Any, Final

import click

from generator.cli.cluster_input import (
    build_input_snapshot,
    fit_to_cluster,
    fit_to_server,
    note_missing_capacity,
    note_unknown_level,
    read_cluster_input,
    read_request,
)
from generator.cli.connection_values import ServerEndpoint, parse_server_endpoint
from generator.cli.exit_codes import ExitCode, exit_with_problems
from generator.cli.output import list_nodes, print_document, show_count
from generator.cli.placement_text import HostListFormat, render_host_list, render_placement_text
from generator.cli.request_input import LoadedRequest
from generator.cli.source_values import parse_sources
from generator.placement.answer import Placement, render_placement
from generator.placement.engine import place
from generator.placement.request import PlacementRequest

_FREE_ON_SERVER: Final = (
    "note: a server that reads a cluster counts the pods that run; to one that reads a folder, the "
    "capacity that they use is free"
)


def run(
    ctx: click.Context,
    /,
    output: str,
    *,
    check: bool,
    timeout: float,
    **options: Any,  # noqa: ANN401 - click's
) -> None:
    """Run `toponaut place` with the values of its options."""
    tree, running = options.pop("tree"), options.pop("running")
    server, preset = parse_server_endpoint(options), options.pop("preset")
    sources = parse_sources(options)
    cluster = None
    loaded = read_request(options)
    if options["translate"] or server is not None:
        loaded = fit_to_cluster(loaded, None)
    if options["translate"]:
        print_document(loaded.document, "json" if output == "json" else "yaml", text=str)
        exit_with_problems(ctx, (), loaded.code)
    request = loaded.to_request(preset)
    if server is not None:
        if not sources.is_empty or tree or running or sources.nodes:
            raise click.UsageError("--server places in its own tree: give no other source")
        loaded = fit_to_server(loaded)
        placement = _place_on_server(server, loaded.to_request(preset), loaded, timeout)
    else:
        if not (sources.is_empty or sources.is_tree or sources.plane):
            sources = sources._replace(plane=request.plane)
        cluster = read_cluster_input(sources, tree)
        loaded = fit_to_cluster(loaded, cluster)
        request = loaded.to_request(preset).with_deadline(timeout)
        snapshot = build_input_snapshot(cluster, running, loaded, request)
        placement = place(snapshot, request, clock=time.monotonic)
    is_host_list = output in tuple(HostListFormat)
    known_tree = cluster.tree if cluster else None
    if is_host_list:
        _print_host_list(placement, HostListFormat(output))
    else:
        print_document(
            render_placement(placement),
            output,
            text=lambda: render_placement_text(placement, known_tree, output),
        )
    note_unknown_level(placement, loaded)
    if cluster is not None and not placement.is_feasible:
        note_missing_capacity(cluster)
    if (check or is_host_list) and not placement.is_feasible:
        ctx.exit(ExitCode.CHECK_FAILED)
    exit_with_problems(ctx, cluster.problems if cluster else (), loaded.code)


def _print_host_list(placement: Placement, chosen: HostListFormat) -> None:
    """Print the nodes; on stderr, why there are none, and how ranks differ from those of ranks."""
    if not placement.is_feasible:
        click.echo(render_placement_text(placement, None, chosen), err=True)
    hosts = render_host_list(placement, chosen)
    click.echo(hosts.text, nl=False)
    if hosts.merged:
        names = list_nodes(hosts.merged, chosen)
        click.echo(
            f"note: the ranks of {show_count(len(hosts.merged), 'node')} are not consecutive, and "
            f"a hostfile counts them as if they were; -o ranks keeps them: {names}",
            err=True,
        )


def _place_on_server(
    server: ServerEndpoint, request: PlacementRequest, loaded: LoadedRequest, timeout_s: float
) -> Placement:
    from generator.rpc.client.typed_client import PlacementClient  # noqa: PLC0415 - loads gRPC

    running, _ = loaded.build_running(request)
    if running is not None:
        click.echo(_FREE_ON_SERVER, err=True)
    with PlacementClient(server.address, timeout_s, server.identity) as client:
        return client.place(request, running)
