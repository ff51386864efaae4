"""`toponaut place`: place a gang, or say why it does not fit.

Host lists are for MPI, Slurm and scripts: the nodes in the order of the ranks. Ranks count the pods
in the order of the answer: group after group, each by the index of its pods. A pod without a node
keeps its rank and is not listed.

Sources: the manual of mpirun of Open MPI 5 (`HOST slots=N`), of mpiexec.hydra of MPICH 4 (`HOST:N`)
and of `srun --nodelist`.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from generator.cli import options
from generator.cli.exit_codes import ExitCode, end, exit_with_problems
from generator.cli.options import InputOptions, RequestOptions, ServerEndpoint, ServerOptions
from generator.cli.output import (
    WIDE,
    PlacedPod,
    Table,
    list_nodes,
    list_pod_rows,
    print_document,
    render_text,
    show_count,
)
from generator.placement.answer import Placement, describe_reason, render_placement
from generator.placement.presets import Preset
from topology.model.errors import ConfigError, list_some, show
from topology.model.name_ranges import fold_names
from topology.model.tree import TopologyTree

if TYPE_CHECKING:
    from generator.cli.request_input import LoadedRequest

_FREE_ON_SERVER: Final = (
    "note: a server that reads a cluster counts the pods that run; to one that reads a folder, the "
    "capacity that they use is free"
)
PENDING = "(pending)"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z", re.ASCII)
"""A name that a host list can hold. Blanks, commas, colons and brackets separate names in these
lists, and # starts a comment."""
_MAX_NAMES: Final = 5


class HostListFormat(StrEnum):
    """The formats, by the option value that chooses them."""

    HOSTFILE = "hostfile"
    """Open MPI."""
    HOSTFILE_MPICH = "hostfile-mpich"
    NODELIST = "nodelist"
    RANKS = "ranks"


@options.command("place")
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
        "hostfile-mpich for MPICH, nodelist for Slurm, ranks has RANK NODE per line.",
    ),
) -> None:
    """Print the best placement of a gang, and why no better one exists.

    Free capacity comes from --nodes, or with --kube from the cluster: the capacity that its pods
    leave free. Otherwise each node of the tree has one slot. If the gang does not fit, the exit
    code is still 0, unless --check is given. The formats hostfile, nodelist and ranks then print
    nothing and the exit code is 5, because mpirun takes an empty hostfile as this machine.
    """
    from generator.cli.cluster_input import (
        build_input_snapshot,
        fit_to_cluster,
        note_missing_capacity,
        note_unknown_level,
        read_cluster_input,
        read_request,
    )
    from generator.cli.observation import parse_sources
    from generator.placement.engine import place

    endpoint, given, cluster = server.find_endpoint(), parse_sources(sources), None
    loaded = read_request(request)
    if translate or endpoint is not None:
        loaded = fit_to_cluster(loaded, None)
    if translate:
        print_document(loaded.document, "json" if output == "json" else "yaml", text=str)
        exit_with_problems((), loaded.code)
    wanted = loaded.to_request(preset)
    if endpoint is not None:
        if not given.is_empty or tree or running or given.nodes:
            raise click.UsageError("--server places in its own tree: give no other source")
        placement = _place_on_server(endpoint, loaded, preset, timeout)
    else:
        cluster = read_cluster_input(given.with_plane(wanted.plane), tree)
        loaded = fit_to_cluster(loaded, cluster)
        wanted = loaded.to_request(preset).with_deadline(timeout)
        snapshot = build_input_snapshot(cluster, running, loaded, wanted)
        placement = place(snapshot, wanted, clock=time.monotonic)
    _print_placement(placement, cluster.tree if cluster else None, output)
    note_unknown_level(placement, loaded)
    if cluster is not None and not placement.is_feasible:
        note_missing_capacity(cluster)
    if (check or output in tuple(HostListFormat)) and not placement.is_feasible:
        end(ExitCode.CHECK_FAILED)
    exit_with_problems(cluster.problems if cluster else (), loaded.code)


def _place_on_server(
    server: ServerEndpoint, loaded: LoadedRequest, preset: str | None, timeout_s: float
) -> Placement:
    from generator.cli.cluster_input import fit_to_server
    from generator.rpc.client import PlacementClient

    fitted = fit_to_server(loaded)
    running, _ = fitted.build_running(fitted.to_request(preset))
    if running is not None:
        click.echo(_FREE_ON_SERVER, err=True)
    with PlacementClient(server.address, timeout_s, server.identity) as client:
        return client.place(fitted.build_document(preset), running)


def _print_placement(placement: Placement, tree: TopologyTree | None, output: str) -> None:
    if output in tuple(HostListFormat):
        _print_host_list(placement, HostListFormat(output))
        return
    print_document(
        render_placement(placement),
        output,
        text=lambda: list_parts(placement, tree, output),
    )


def _print_host_list(placement: Placement, chosen: HostListFormat) -> None:
    """Print the nodes; on stderr, why there are none, and how ranks differ from those of ranks."""
    if not placement.is_feasible:
        click.echo(render_text(list_parts(placement, None, chosen)), err=True)
    hosts = render_host_list(placement, chosen)
    click.echo(hosts.text, nl=False)
    if hosts.merged:
        names = list_nodes(hosts.merged, chosen)
        click.echo(
            f"note: the ranks of {show_count(len(hosts.merged), 'node')} are not consecutive, and "
            f"a hostfile counts them as if they were; -o ranks keeps them: {names}",
            err=True,
        )


def list_parts(
    placement: Placement, tree: TopologyTree | None, output: str
) -> Iterator[str | Table]:
    """Yield what text prints of an answer; without a tree, the assignment has no domains."""
    if placement.is_feasible:
        yield _render_headline(placement)
        yield _build_assignment_table(placement, tree, output)
        return
    yield _render_infeasible(placement)
    yield from _render_alternatives(placement)
    rows = [
        (show(row.name), row.verdict.value, show(row.needs, 400))
        for row in placement.domain_verdicts
    ]
    if rows:
        yield Table(("domain", "verdict", "reason"), rows)


def _render_headline(placement: Placement) -> str:
    num = sum(node is not None for nodes in placement.assignment.values() for node in nodes)
    total = sum(len(nodes) for nodes in placement.assignment.values())
    pods = show_count(num, "pod") if num == total else f"{num} of {show_count(total, 'pod')}"
    best = "no better placement exists" if placement.is_proved else "a better placement may exist"
    return f"feasible: {pods} within one {show(placement.tier or '?')}; {best}"


def _build_assignment_table(placement: Placement, tree: TopologyTree | None, output: str) -> Table:
    domain_of_node: dict[str | None, str] = {None: PENDING}
    for domain in tree.domains if tree else ():
        domain_of_node |= dict.fromkeys(domain.nodes, domain.name)
    pods = (
        PlacedPod(group, index, domain_of_node.get(node, ""), node or PENDING)
        for group, nodes in placement.assignment.items()
        for index, node in enumerate(nodes)
    )
    rows = list(list_pod_rows(pods, output))
    if tree is not None:
        return Table(("group", "pods", "domain", "nodes"), rows)
    return Table(
        ("group", "pods", "nodes"), [(group, span, nodes) for group, span, _, nodes in rows]
    )


def _render_infeasible(placement: Placement) -> str:
    reason = describe_reason(placement.reason) if placement.reason else "no reason given"
    return f"infeasible: {reason}" + ("" if placement.is_proved else " (the search ended early)")


def _render_alternatives(placement: Placement) -> Iterator[str]:
    for row in placement.alternatives:
        if row.is_feasible:
            word = "" if row.change.startswith("without ") else "with "
            yield f"feasible {word}{show(row.change, 200)}: within one {show(row.tier or '?')}"


class RankedNode(NamedTuple):
    """The node of one rank."""

    rank: int
    node: str


class HostList(NamedTuple):
    """The text of a list, and the nodes whose ranks it cannot keep apart."""

    text: str
    merged: tuple[str, ...] = ()
    """Nodes of which other nodes' ranks lie between the ranks: the list numbers them otherwise."""


def list_ranks(placement: Placement) -> tuple[RankedNode, ...]:
    """Return the node of each rank; omits ranks without a node."""
    nodes = [node for pods in placement.assignment.values() for node in pods]
    return tuple(RankedNode(rank, node) for rank, node in enumerate(nodes) if node is not None)


def render_host_list(placement: Placement, chosen: HostListFormat) -> HostList:
    """Return the nodes of a placement, one entry per line; empty if it is infeasible.

    A node stands where its first rank is. Cost: O(n) in pods.

    Raises:
        ConfigError: the name of a node has a character that separates names in such lists.
    """
    ranks = list_ranks(placement)
    _require_plain([row.node for row in ranks])
    if chosen is HostListFormat.RANKS:
        return HostList("".join(f"{row.rank} {row.node}\n" for row in ranks))
    runs = [node for node, _ in groupby(row.node for row in ranks)]
    slots = Counter(row.node for row in ranks)
    if chosen is HostListFormat.NODELIST:
        return HostList(f"{fold_names(slots)}\n" if slots else "")
    separator = " slots=" if chosen is HostListFormat.HOSTFILE else ":"
    text = "".join(f"{node}{separator}{num}\n" for node, num in slots.items())
    repeated = (node for node, num in Counter(runs).items() if num > 1)
    return HostList(text, tuple(repeated))


def _require_plain(nodes: Sequence[str]) -> None:
    wrong = [f"'{show(node)}'" for node in dict.fromkeys(nodes) if not _NAME.match(node)]
    if wrong:
        shown = list_some(wrong, _MAX_NAMES)
        raise ConfigError(f"a host list cannot hold these names of nodes: {shown}")
