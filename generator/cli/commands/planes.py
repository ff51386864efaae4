"""`toponaut planes`: which networks there are, which ports are in which, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import click

from generator.cli.observation import check_plane, exit_with_problems, exit_without_data
from generator.cli.output import output_option, print_document, shorten_names, render_table
from generator.cli.source_options import source_options, parse_sources
from generator.ingest.sources import NO_SOURCE_MESSAGE, read_inputs
from topology.join.fabric_join import build_fabric
from topology.model.fabric import Fabric
from topology.model.ids import natural_key
from topology.planes.plane import Plane, PlaneSplit, split_planes
from topology.planes.policy import PortPlane, PlaneReason

_HEADER: Final = ("PLANE", "WHY", "HOSTS", "PORTS", "LINKED", "LEAVES", "NAMES")
_MAX_NAMES_SHOWN: Final = 4


class _PlaneRow(NamedTuple):
    """One plane, and its ports in the order of the fabric."""

    plane: Plane
    shares: tuple[tuple[int, PortPlane], ...]
    switch_port_of: dict[int, tuple[int, int]]
    """By linked port the switch and its port."""


@click.command(name="planes")
@source_options
@output_option
@click.pass_context
def command(ctx: click.Context, /, output: str, **options: Any) -> None:  # noqa: ANN401 - click's
    """Print which networks there are, and which ports of hosts are in which.

    Compute is what the tree is made of, unless tree --plane asks for another. Where ports are in
    the wrong network, a file of policies says better: --planes FILE.
    """
    sources = parse_sources(options)
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE_MESSAGE)
    if sources.hypernodes:
        raise click.UsageError("--hypernodes holds no ports; name another source")
    inputs = read_inputs(sources)
    if not inputs.claims:
        exit_without_data(inputs.problems)
    fabric = build_fabric(inputs.all_claims)
    split = split_planes(fabric, inputs.planes.policies)
    check_plane(inputs.planes.plane_name, split.names)
    rows = [_build_row(split, name) for name in split.names if sources.plane in {None, name}]
    document = [_render(fabric, row) for row in rows]
    print_document(document, output, text=lambda: _render_text(fabric, rows))
    exit_with_problems(ctx, inputs.problems)


def _build_row(split: PlaneSplit, name: str) -> _PlaneRow:
    plane = split.plane(name)
    return _PlaneRow(
        plane=plane,
        shares=tuple((at, split.port_planes[at]) for at in sorted(plane.ports)),
        switch_port_of={edge.a_port: (edge.b, edge.b_port) for edge in plane.host_edges},
    )


def _render(fabric: Fabric, row: _PlaneRow) -> dict[str, Any]:
    """Return a plane as the object that `-o json` prints."""
    return {
        "name": row.plane.name,
        "switches": sorted(fabric.devices[at].name for at in row.plane.switches),
        "ports": [_render_port(fabric, row, at, share) for at, share in row.shares],
    }


def _render_port(fabric: Fabric, row: _PlaneRow, at: int, share: PortPlane) -> dict[str, Any]:
    own, far = fabric.port_name(at), row.switch_port_of.get(at)
    peer = fabric.port_name(far[1]) if far else None
    return {
        "device": own.device,
        "port": own.port,
        "to": {"device": peer.device, "port": peer.port} if peer else None,
        "why": share.reason.value,
    }


def _render_text(fabric: Fabric, rows: list[_PlaneRow]) -> str:
    cells = [line for row in rows for line in _render_lines(fabric, row)]
    return render_table(_HEADER, cells) if cells else "no port of a host is known"


def _render_lines(fabric: Fabric, row: _PlaneRow) -> Iterator[tuple[str, ...]]:
    """Yield a line per reason that puts ports into the plane."""
    by_why: dict[PlaneReason, list[int]] = defaultdict(list)
    for at, share in row.shares:
        by_why[share.reason].append(at)
    for why, ports in sorted(by_why.items()):
        hosts = {fabric.ports[at].device for at in ports}
        switches = {row.switch_port_of[at][0] for at in ports if at in row.switch_port_of}
        linked = sum(at in row.switch_port_of for at in ports)
        names = sorted({fabric.ports[at].name for at in ports}, key=natural_key)
        counts = (len(hosts), len(ports), linked, len(switches))
        yield (row.plane.name, why.value, *map(str, counts), shorten_names(names, _MAX_NAMES_SHOWN))
