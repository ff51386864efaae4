"""`toponaut ranks`: compare the ranks of a job with the tree, and print a better order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.host_lists import (
    HostListFormat,
    RankedNode,
    render_host_list,
)
from generator.cli.options import InputOptions, PodOptions
from generator.cli.output import Table, list_nodes, print_document, show_count
from topology.model.errors import ConfigError, list_some, show
from topology.model.ids import IdKind

if TYPE_CHECKING:
    from generator.jobs.rank_order import ParallelSizes, RankAudit, RankedPods
    from generator.jobs.running_jobs import JobPod
    from generator.objects.inventory import Inventory
    from topology.model.tree import TopologyTree

_DLROVER: Final = "dlrover"
"""The format of DLROVER_GROUP_TOPOLOGY. Source: DLRover, topology_rerank.py."""
_MAX_SIZE: Final = 1 << 20
_MAX_SHOWN: Final = 6
_NOTE: Final = (
    "This counts neighbors in a ring over the ranks. Trees and all-to-all have other best orders."
)


@options.command(
    "ranks",
    examples=(
        "toponaut ranks --hosts 'node-[0001-0016]' --reports fabric/reports -o hostfile",
        "toponaut ranks ml/train --kube --tensor 8",
    ),
)
def command(
    *,
    job: str | None = options.argument(required=False),
    sources: InputOptions,
    tree: Path | None = options.TREE,
    pods: PodOptions,
    hosts: str | None = options.option(
        "Nodes in the order of their ranks, instead of a job: `node[1-8],node12`.",
        metavar="NAMES",
    ),
    tensor: int | None = options.number(1, _MAX_SIZE, "Tensor-parallel size."),
    pipeline: int | None = options.number(1, _MAX_SIZE, "Pipeline-parallel size."),
    data: int | None = options.number(
        1, _MAX_SIZE, "Data-parallel size.  [default: what the other sizes leave]"
    ),
    expert: int | None = options.number(1, _MAX_SIZE, "Expert-parallel size."),
    per_pod: int | None = options.number(
        1, 1024, "Processes of each pod or host.  [default: the GPUs of the pod, else 1]"
    ),
    output: str = options.output_of("wide", *(form.value for form in HostListFormat), _DLROVER),
) -> None:
    """Compare the ranks of JOB with the tree: how often its ring leaves a leaf, and a better order.

    JOB and its pods are given as for `toponaut where`. The formats for launchers print the best
    order: hostfile and rankfile for Open MPI, hostfile-mpich for MPICH, slurm-hostfile for
    SLURM_HOSTFILE, dlrover for DLROVER_GROUP_TOPOLOGY.
    """
    from generator.cli.commands.gangs.where import load_job
    from generator.cli.observation import parse_sources, read_observation, read_saved_tree
    from generator.jobs.rank_order import TreePlaces, audit_ranks, list_worlds
    from generator.store.local_files import read_inventory

    if (job is None) == (hosts is None):
        raise click.UsageError("give JOB or --hosts")
    given = parse_sources(sources)
    saved = None if tree is None else read_saved_tree(tree, given)
    pods.refuse_both()
    loaded = None if job is None else load_job(job, pods, given.cluster)
    read = saved or read_observation(given)
    worlds = [_read_hosts(hosts or "")] if loaded is None else [*list_worlds(loaded.job.pods)]
    found = read.observation.tree
    places, audits = TreePlaces(found), []
    for world in worlds:
        num = per_pod or _count_processes(world.pods)
        sizes = _choose_sizes(tensor, pipeline, data, expert, num * len(world.pods))
        audits.append((audit_ranks(places, world, sizes, per_pod=num), num))
    name = "hosts" if loaded is None else loaded.job.name
    if output == _DLROVER:
        inventory = read.inputs.inventory or read_inventory(given.nodes)
        click.echo(_render_dlrover([audit for audit, _ in audits], found, inventory), nl=False)
    elif output in tuple(HostListFormat):
        nodes = [pod.node for audit, num in audits for pod in audit.order for _ in range(num)]
        ranks = list(map(RankedNode._make, enumerate(nodes)))
        click.echo(render_host_list(ranks, HostListFormat(output)).text, nl=False)
    else:
        print_document(
            {"job": name, "worlds": [_render(audit) for audit, _ in audits]},
            output,
            text=lambda: _list_parts(name, [audit for audit, _ in audits], output),
        )
    exit_with_problems((*read.problems, *(loaded.problems if loaded is not None else ())))


def _read_hosts(text: str) -> RankedPods[JobPod]:
    from generator.jobs.rank_order import rank_hosts
    from topology.model.name_ranges import expand_names

    try:
        names = expand_names(text, limit=_MAX_SIZE)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--hosts") from error
    return rank_hosts(names)


def _count_processes(pods: Sequence[JobPod]) -> int:
    """Return the GPUs of each pod; 1 without GPUs.

    Raises:
        ConfigError: the pods have different numbers of GPUs.
    """
    counts = {
        max(
            (
                int(num)
                for name, num in (pod.request_fields.get("request") or {}).items()
                if "gpu" in name and str(num).isdigit()
            ),
            default=1,
        )
        for pod in pods
    }
    if len(counts) > 1:
        raise ConfigError(
            f"the pods have {list_some(map(str, sorted(counts)), _MAX_SHOWN)} GPUs: give the "
            "processes of each pod by --per-pod"
        )
    return max(counts.pop() if counts else 1, 1)


def _choose_sizes(
    tensor: int | None,
    pipeline: int | None,
    data: int | None,
    expert: int | None,
    num_processes: int,
) -> ParallelSizes | None:
    from generator.jobs.rank_order import ParallelSizes

    if tensor is pipeline is data is expert is None:
        return None
    given = (tensor or 1) * (pipeline or 1)
    return ParallelSizes(
        tensor or 1, pipeline or 1, data or max(num_processes // given, 1), expert or 1
    )


def _render(audit: RankAudit[JobPod]) -> dict[str, Any]:
    return {
        "name": audit.world.name,
        "pods": len(audit.world.pods),
        "ranksFrom": audit.world.source or None,
        "nodes": [pod.node for pod in audit.world.pods] if audit.world.source else None,
        "tiers": [tier._asdict() for tier in audit.tiers],
        "groups": [
            {
                "kind": group.kind,
                "groups": group.num_groups,
                "size": group.size,
                "now": group.now,
                "inTreeOrder": group.in_tree_order,
            }
            for group in audit.groups
        ],
        "outside": list(audit.unknown_nodes),
        "order": [{"pod": pod.name, "node": pod.node} for pod in audit.order],
    }


def _list_parts(
    name: str, audits: Sequence[RankAudit[JobPod]], output: str
) -> Iterator[str | Table]:
    for audit in audits:
        world = audit.world
        title = f"{show(name, 300)}, {show(world.name)}: {show_count(len(world.pods), 'pod')}"
        if not world.source:
            yield f"{title}; no label, index or variable says which rank each pod has"
        else:
            yield f"{title}, ranks from {world.source}"
            yield Table(
                ("tier", "leaves a domain", "fewest"),
                [(show(tier.tier), str(tier.now), str(tier.fewest)) for tier in audit.tiers],
            )
        if audit.groups:
            yield Table(
                ("groups", "number", "size", "leave a leaf", "in tree order"),
                [
                    (
                        group.kind,
                        *map(str, (group.num_groups, group.size, group.now)),
                        str(group.in_tree_order),
                    )
                    for group in audit.groups
                ],
            )
        if audit.unknown_nodes:
            yield f"not in the tree: {list_nodes(audit.unknown_nodes, output)}"
        nodes = list(dict.fromkeys(pod.node for pod in audit.order))
        if world.source and audit.is_best:
            yield "No other order crosses fewer domains."
        else:
            yield f"best order: {list_nodes(nodes, output)}"
    yield _NOTE


def _render_dlrover(
    audits: Sequence[RankAudit[JobPod]], tree: TopologyTree, inventory: Inventory | None
) -> str:
    """Return the lowest domain of each address of a pod or node, as JSON.

    Raises:
        ConfigError: a pod has no known address.
    """
    domains = tree.lowest_domains()
    listed = {
        node.name: [identifier.value for identifier in node.ids if identifier.kind is IdKind.IP]
        for node in (inventory.nodes if inventory is not None else ())
    }
    document: dict[str, str] = {}
    lacking: set[str] = set()
    for pod in (pod for audit in audits for pod in audit.order):
        addresses = [*_list_pod_addresses(pod), *listed.get(pod.node, ())]
        document |= dict.fromkeys(addresses, domains.get(pod.node, pod.node))
        if not addresses:
            lacking.add(pod.node)
    if lacking:
        raise ConfigError(
            f"no address is known for {list_some(map(show, sorted(lacking)), _MAX_SHOWN)}: DLRover "
            "finds nodes by address, which --kube, the output of kubectl get pods, or the list of "
            "nodes gives"
        )
    return json.dumps(document, indent=2, ensure_ascii=True) + "\n"


def _list_pod_addresses(pod: JobPod) -> Iterator[str]:
    status = pod.document.get("status")
    if isinstance(status, dict):
        for key in ("podIP", "hostIP"):
            if isinstance(status.get(key), str) and status[key]:
                yield status[key]
