"""`toponaut capacity`: what is free in each domain, and how many gangs of a size fit."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import InputOptions
from generator.cli.output import CSV, Table, print_document, show_count
from topology.model.errors import list_some, show

_MAX_SIZE = 1 << 30
_CSV_HEADER: Final = ("tier", "domain", "nodes", "free", "free nodes", "gangs")


@options.command(
    "capacity",
    examples=(
        "toponaut capacity --reports fabric/reports --nodes fabric/nodes.yaml",
        "toponaut capacity --kube --tier leaf --slots 64",
    ),
)
def command(
    *,
    sources: InputOptions,
    tree: Path | None = options.TREE,
    running: Path | None = options.RUNNING,
    tier: str | None = options.option("Only domains of this tier.", metavar="TIER"),
    slots: int | None = options.number(
        1,
        _MAX_SIZE,
        "Size of a gang, in GPUs or slots; a gang above a node takes whole nodes.  "
        "[default: a whole node]",
    ),
    output: str = options.output_of(CSV),
) -> None:
    """Print what is free in each domain, and how many gangs of a size fit there.

    The domains of a tier stand in the order of what is free, most first. Free capacity comes from
    --nodes, or with --kube from the cluster: the capacity that its pods leave free. Otherwise each
    node of the tree has one slot.
    """
    from generator.cli.cluster_input import (
        build_free_snapshot,
        note_missing_capacity,
        read_cluster_input,
    )
    from generator.cli.observation import parse_sources
    from generator.jobs.free_by_domain import choose_resource, measure_domains

    cluster = read_cluster_input(parse_sources(sources), tree)
    tiers = cluster.tree.tiers
    if tier is not None and tier not in tiers:
        names = list_some(map(show, tiers), len(tiers))
        raise click.BadParameter(f"expected one of {names}", param_hint="--tier")
    snapshot = build_free_snapshot(cluster, running)
    resource = choose_resource(snapshot)
    size = slots or resource.per_node or 1
    rows = sorted(
        (row for row in measure_domains(snapshot, resource, size) if tier in {None, row.tier}),
        key=lambda row: (tiers.index(row.tier), -row.free),
    )
    document = {
        "resource": resource.name,
        "perNode": resource.per_node,
        "gang": size,
        "domains": [
            {
                "tier": row.tier,
                "name": row.domain,
                "nodes": row.num_nodes,
                "free": row.free,
                "freeNodes": row.free_nodes,
                "gangs": row.num_places,
            }
            for row in rows
        ],
    }
    unit = "GPUs" if resource.name.endswith("/gpu") else show(resource.name)
    cells = [(show(row.tier), show(row.domain), *map(str, row[2:])) for row in rows]
    print_document(
        document,
        output,
        text=lambda: Table(
            ("tier", "domain", "nodes", f"free {unit}", "free nodes", f"gangs of {size}"),
            cells,
            total=f"{show_count(len(rows), 'domain')}; free counts {show(resource.name)}",
            empty="no domains",
        ),
        table=lambda: Table(_CSV_HEADER, cells),
    )
    note_missing_capacity(cluster)
    exit_with_problems(cluster.problems)
