"""`toponaut place`: place a gang, or say why it does not fit."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from generator.cli.client_options import ServerEndpoint, parse_server_endpoint, server_options
from generator.cli.cluster_input import (
    ClusterInput,
    build_input_snapshot,
    cluster_options,
    fit_to_inventory,
    note_missing_capacity,
    read_cluster_input,
    read_request,
    request_options,
    timeout_option,
)
from generator.cli.exit_codes import ExitCode
from generator.cli.observation import exit_with_problems
from generator.cli.output import WIDE, build_output_option, list_nodes, print_document, show_count
from generator.cli.placement_text import HostListFormat, render_host_list, render_placement_text
from generator.cli.source_options import parse_sources
from generator.placement.answer import Placement, render_placement
from generator.placement.engine import place
from generator.placement.presets import Preset
from generator.placement.request import PlacementRequest


@click.command(name="place")
@request_options
@click.option(
    "--translate", is_flag=True, help="Print the request as a PlacementRequest; place nothing."
)
@click.option(
    "--preset",
    type=click.Choice([preset.value for preset in Preset]),
    help="Order of preferences, instead of the preset in the request.",
)
@cluster_options
@server_options("that places the gang, instead of this command")
@timeout_option
@click.option("--check", is_flag=True, help="Exit with 5 if there is no placement.")
@build_output_option(
    WIDE,
    *(row.value for row in HostListFormat),
    note=" text prints nodes as ranges, wide lists every node; hostfile is for Open MPI, "
    "hostfile-mpich for MPICH, nodelist for Slurm, ranks has RANK NODE per line.",
)
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
    """Print the best placement of a gang, and why no better one exists.

    Free capacity comes from --nodes, or with --kube from the cluster: the capacity that its pods
    leave free. Otherwise each node of the tree has one slot. If the gang does not fit, the exit
    code is still 0, unless --check is given. hostfile, nodelist and ranks are then empty, and the
    exit code is 5: mpirun takes an empty hostfile as this machine.
    """
    tree, running = options.pop("tree"), options.pop("running")
    server, preset = parse_server_endpoint(options), options.pop("preset")
    sources = parse_sources(options)
    cluster = None
    loaded = read_request(options)
    if options["translate"]:
        print_document(loaded.document, "json" if output == "json" else "yaml", text=str)
        exit_with_problems(ctx, (), loaded.code)
    request = loaded.to_request(preset)
    if server is not None:
        if not sources.is_empty or tree or running or sources.nodes:
            raise click.UsageError("--server places in its own tree: give no other source")
        placement = _place_on_server(server, request, timeout)
    else:
        if not (sources.is_empty or sources.is_tree or sources.plane):
            sources = sources._replace(plane=request.plane)
        cluster = read_cluster_input(sources, tree)
        request = fit_to_inventory(loaded, cluster.inventory).to_request(preset)
        placement = _place_locally(cluster, request, running=running, timeout_s=timeout)
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
    server: ServerEndpoint, request: PlacementRequest, timeout_s: float
) -> Placement:
    from generator.rpc.client.typed_client import PlacementClient  # noqa: PLC0415 - loads gRPC

    with PlacementClient(server.address, timeout_s, server.identity) as client:
        return client.place(request)


def _place_locally(
    cluster: ClusterInput, request: PlacementRequest, *, running: Path | None, timeout_s: float
) -> Placement:
    snapshot = build_input_snapshot(cluster, running)
    return place(snapshot, request.with_deadline(timeout_s), clock=time.monotonic)
