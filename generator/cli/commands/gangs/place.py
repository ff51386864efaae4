"""`toponaut place`: place a gang, or say why it does not fit.

A rank is the number of a pod: the pods of the first group come first, in the order of their
indexes. A pod without a node has a rank too, but is not listed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, end, exit_with_problems
from generator.cli.host_lists import HostListFormat, RankedNode, render_host_list
from generator.cli.options import InputOptions, RequestOptions, ServerEndpoint, ServerOptions
from generator.cli.output import (
    MAX_MESSAGE,
    WIDE,
    PlacedPod,
    Table,
    list_nodes,
    list_pod_rows,
    paint,
    print_document,
    render_text,
    show_count,
)
from generator.placement.answer import (
    WITHOUT,
    Placement,
    VerdictKind,
    describe_reason,
)
from generator.placement.presets import ObjectiveKey, Preset
from topology.model.errors import list_some, show
from topology.model.tree import TopologyTree

if TYPE_CHECKING:
    from generator.cli.request_input import LoadedRequest
    from generator.placement.request import PlacementRequest

_FREE_ON_SERVER: Final = (
    "note: a server that reads a cluster counts the pods that run; to one that reads a folder, the "
    "capacity that they use is free"
)
PENDING = "(pending)"
NO_PLACE = "(no place)"
"""The domain of a node that is in none."""
_MAX_MISSES: Final = 3
_MAX_UNKNOWN: Final = 8


@options.command(
    "place",
    examples=(
        'toponaut place --sbatch "--nodes=4 --gpus-per-node=8" --reports fabric/reports',
        "toponaut place -f job.yaml --kube",
    ),
)
def command(
    *,
    request: RequestOptions,
    translate: bool = options.option("Print the request as a PlacementRequest; place nothing."),
    preset: Preset | None = options.option(
        "Order of preferences, instead of the preset in the request."
    ),
    sources: InputOptions,
    tree: Path | None = options.TREE,
    running: Path | None = options.RUNNING,
    server: ServerOptions = options.server("that places the gang, instead of this command"),
    timeout: float = options.TIMEOUT,
    check: bool = options.option("Exit with 5 if there is no placement."),
    output: str = options.output_of(
        WIDE,
        *(row.value for row in HostListFormat),
        note=" text prints nodes as ranges, wide lists every node; hostfile is for Open MPI, "
        "hostfile-mpich for MPICH, rankfile for mpirun --rankfile, nodelist and slurm-hostfile for "
        "Slurm, ranks has RANK NODE per line.",
    ),
) -> None:
    """Print the best placement of a gang, and why no better one exists.

    Free capacity comes from --nodes, or with --kube from the cluster: the capacity that its pods
    leave free. Otherwise each node of the tree has one slot. If the gang does not fit, the exit
    code is still 0, unless --check is given. Formats for launchers, such as hostfile, then print
    nothing and the exit code is 5, because mpirun takes an empty hostfile as this machine.
    """
    from generator.cli.cluster_input import (
        build_input_snapshot,
        note_faulty_ports,
        note_missing_capacity,
        note_unknown_level,
        read_cluster_input,
        read_request,
    )
    from generator.cli.observation import parse_sources
    from generator.cli.request_input import print_translation
    from generator.placement.engine import place

    endpoint, given, cluster = server.find_endpoint(), parse_sources(sources), None
    loaded = read_request(request)
    if translate:
        print_translation(loaded)
        print_document(loaded.document, "json" if output == "json" else "yaml", text=str)
        exit_with_problems((), loaded.code)
    wanted = loaded.to_request(preset)
    if endpoint is not None:
        if not given.is_empty or tree or running or given.nodes:
            raise click.UsageError("--server places in its own tree: give no other source")
        loaded = loaded.fit_to_server()
        print_translation(loaded)
        placement = _place_on_server(endpoint, loaded, preset, timeout)
    else:
        cluster = read_cluster_input(given.with_plane(wanted.plane), tree)
        loaded = loaded.fit_to_nodes(cluster.inventory, cluster.tree.nodes)
        print_translation(loaded)
        wanted = loaded.to_request(preset).with_deadline(timeout)
        snapshot = build_input_snapshot(cluster, running, loaded, wanted)
        placement = place(snapshot, wanted, clock=time.monotonic)
    placement = loaded.with_given_names(placement)
    _print_placement(placement, wanted, cluster.tree if cluster else None, output)
    _note_unknown_places(placement)
    note_unknown_level(placement, loaded)
    if cluster is not None:
        note_faulty_ports(placement, cluster)
        if not placement.is_feasible:
            note_missing_capacity(cluster)
    if (check or output in tuple(HostListFormat)) and not placement.is_feasible:
        end(ExitCode.CHECK_FAILED)
    exit_with_problems(cluster.problems if cluster else (), loaded.code)


def _place_on_server(
    server: ServerEndpoint, loaded: LoadedRequest, preset: str | None, timeout_s: float
) -> Placement:
    from generator.rpc.client import PlacementClient

    running, _ = loaded.build_running(loaded.to_request(preset))
    if running is not None:
        click.echo(_FREE_ON_SERVER, err=True)
    with PlacementClient(server.address, timeout_s, server.identity) as client:
        return client.place(loaded.build_document(preset), running)


def _print_placement(
    placement: Placement, wanted: PlacementRequest, tree: TopologyTree | None, output: str
) -> None:
    def list_text() -> Iterator[str | Table]:
        return _list_parts(placement, wanted, tree, output)

    if output in tuple(HostListFormat):
        if not placement.is_feasible:
            click.echo(render_text(list_text()), err=True)
        _print_host_list(placement, HostListFormat(output))
        return
    print_document(placement.render(), output, text=list_text)


def _note_unknown_places(placement: Placement) -> None:
    """Print on stderr which nodes of the answer are in no domain: they may be unreachable."""
    for node, reason in placement.unplaced[:_MAX_UNKNOWN]:
        why = show(reason, MAX_MESSAGE)
        click.echo(f"note: {show(node)} has no place in the tree: {why}", err=True)
    more = len(placement.unplaced) - _MAX_UNKNOWN
    if more > 0:
        click.echo(f"note: {show_count(more, 'more node')} have no place in the tree", err=True)


def _print_host_list(placement: Placement, chosen: HostListFormat) -> None:
    """Print the nodes; on stderr, what they cost, and how ranks differ from those of ranks."""
    if placement.victims:
        click.echo(f"warning: {_describe_preemption(placement)}", err=True)
    hosts = render_host_list(list_ranks(placement), chosen)
    click.echo(hosts.text, nl=False)
    if hosts.merged:
        names = list_nodes(hosts.merged, chosen)
        click.echo(
            f"note: the ranks of {show_count(len(hosts.merged), 'node')} are not consecutive, and "
            f"a hostfile counts them as if they were; -o ranks keeps them: {names}",
            err=True,
        )


def _list_parts(
    placement: Placement, wanted: PlacementRequest, tree: TopologyTree | None, output: str
) -> Iterator[str | Table]:
    """Yield what text prints of an answer; without a tree, the assignment has no domains."""
    if placement.is_feasible:
        yield _render_headline(placement)
        yield _build_assignment_table(placement, tree, output)
        yield from _explain_tier(placement, output)
        return
    if tree is not None and not tree.nodes:
        yield f"{paint('infeasible', 'red')}: no node has a place in the tree"
        return
    yield _render_infeasible(placement, wanted)
    yield from _render_alternatives(placement)
    rows = [
        (show(row.name), row.verdict.value, show(row.needs, 400))
        for row in placement.domain_verdicts
    ]
    if rows:
        yield Table(("domain", "verdict", "reason"), rows)


def _explain_tier(placement: Placement, output: str) -> Iterator[str]:
    """Yield why no domain of the tier below has the gang, the nearest misses first."""
    from generator.placement.cluster.levels import NODE_TIER  # loads numpy

    if placement.tier == NODE_TIER:
        return
    missed = [
        show(row.needs, 400)
        for row in placement.domain_verdicts
        if row.verdict is VerdictKind.INFEASIBLE
    ]
    shown = len(missed) if output == WIDE else _MAX_MISSES
    yield from (f"{paint('not lower', 'yellow')}: {needs}" for needs in missed[:shown])
    if len(missed) > shown:
        yield f"not lower: {show_count(len(missed) - shown, 'more domain')} (-o wide prints each)"


def _render_headline(placement: Placement) -> str:
    num = sum(node is not None for nodes in placement.assignment.values() for node in nodes)
    total = sum(len(nodes) for nodes in placement.assignment.values())
    pods = show_count(num, "pod") if num == total else f"{num} of {show_count(total, 'pod')}"
    best = "no better placement exists" if placement.is_proved else "a better placement may exist"
    answer = f"{pods} within one {show(placement.tier or '?')}; {best}"
    if placement.victims:
        return f"{paint(_describe_preemption(placement), 'yellow')}\n{answer}"
    return f"{paint('feasible', 'green')}: {answer}"


def _describe_preemption(placement: Placement) -> str:
    """Return which gangs lose their pods; `gang@node` loses only the pods on that node."""
    num_gangs = placement.objective.get(ObjectiveKey.VICTIM_GANGS, len(placement.victims))
    num_pods = placement.objective.get(ObjectiveKey.VICTIM_PODS)
    gangs = "1 gang is" if num_gangs == 1 else f"{num_gangs} gangs are"
    pods = f" ({show_count(num_pods, 'pod')})" if isinstance(num_pods, int) else ""
    return f"feasible after {gangs} preempted{pods}: {', '.join(map(show, placement.victims))}"


def _build_assignment_table(placement: Placement, tree: TopologyTree | None, output: str) -> Table:
    domains = tree.lowest_domains() if tree else {}
    pods = (
        PlacedPod(group, index, domains.get(node, NO_PLACE) if node else PENDING, node or PENDING)
        for group, nodes in placement.assignment.items()
        for index, node in enumerate(nodes)
    )
    rows = list(list_pod_rows(pods, output))
    if tree is not None:
        return Table(("group", "pods", "domain", "nodes"), rows)
    return Table(
        ("group", "pods", "nodes"), [(group, span, nodes) for group, span, _, nodes in rows]
    )


def _render_infeasible(placement: Placement, wanted: PlacementRequest) -> str:
    labels = {
        f"{show(key)}={'|'.join(map(show, values))}": None
        for group in wanted.groups
        for key, values in group.selector
    }
    selector = list_some(labels, _MAX_UNKNOWN)
    reason = describe_reason(placement.reason, selector) if placement.reason else "no reason given"
    return f"{paint('infeasible', 'red')}: {reason}" + (
        "" if placement.is_proved else " (the search ended early)"
    )


def _render_alternatives(placement: Placement) -> Iterator[str]:
    for row in placement.alternatives:
        if row.is_feasible:
            word = "" if row.change.startswith(WITHOUT) else "with "
            tier = show(row.tier or "?")
            yield f"{paint('feasible', 'green')} {word}{show(row.change, 200)}: within one {tier}"


def list_ranks(placement: Placement) -> tuple[RankedNode, ...]:
    """Return the node of each rank; omits ranks without a node."""
    nodes = [node for pods in placement.assignment.values() for node in pods]
    return tuple(RankedNode(rank, node) for rank, node in enumerate(nodes) if node is not None)
