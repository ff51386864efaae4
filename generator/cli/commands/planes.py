"""`toponaut planes`: which networks there are, which ports are in which, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import click

from generator.cli.observation import check_plane, finish, refuse_nothing
from generator.cli.output import output_option, print_document, shorten, table
from generator.cli.source_options import input_options, sources_of
from generator.ingest.sources import NO_SOURCE, read_inputs
from topology.join.fabric_join import build_fabric
from topology.model.fabric import Fabric
from topology.model.ids import natural_key
from topology.planes.plane import Plane, Split, split_planes
from topology.planes.policy import Share, Why

_HEADER: Final = ("PLANE", "WHY", "HOSTS", "PORTS", "LINKED", "LEAVES", "NAMES")
_NUM_NAMES: Final = 4


class _Row(NamedTuple):
    """One plane, and its ports in the order of the fabric."""

    plane: Plane
    shares: tuple[tuple[int, Share], ...]
    to: dict[int, tuple[int, int]]
    """By linked port the switch and its port."""


@click.command(name="planes")
@input_options
@output_option
@click.pass_context
def command(ctx: click.Context, /, output: str, **options: Any) -> None:  # noqa: ANN401 - click's
    """Print which networks there are, and which ports of hosts are in which.

    Compute is what the tree is made of, unless tree --plane asks for another. Where ports are in
    the wrong network, a file of policies says better: --planes FILE.
    """
    sources = sources_of(options)
    if sources.is_empty:
        raise click.UsageError(NO_SOURCE)
    if sources.hypernodes:
        raise click.UsageError("--hypernodes holds no ports; name another source")
    inputs = read_inputs(sources)
    if not inputs.claims:
        refuse_nothing(inputs.problems)
    fabric = build_fabric(inputs.all_claims)
    split = split_planes(fabric, inputs.planes.policies)
    check_plane(inputs.planes.name, split.names)
    rows = [_row(split, name) for name in split.names if sources.plane in {None, name}]
    document = [_render(fabric, row) for row in rows]
    print_document(document, output, text=lambda: _text(fabric, rows))
    finish(ctx, inputs.problems)


def _row(split: Split, name: str) -> _Row:
    plane = split.plane(name)
    return _Row(
        plane=plane,
        shares=tuple((at, split.shares[at]) for at in sorted(plane.ports)),
        to={edge.a_port: (edge.b, edge.b_port) for edge in plane.host_edges},
    )


def _render(fabric: Fabric, row: _Row) -> dict[str, Any]:
    """Return a plane as the object that `-o json` prints."""
    return {
        "name": row.plane.name,
        "switches": sorted(fabric.devices[at].name for at in row.plane.switches),
        "ports": [_render_port(fabric, row, at, share) for at, share in row.shares],
    }


def _render_port(fabric: Fabric, row: _Row, at: int, share: Share) -> dict[str, Any]:
    own, far = fabric.port_name(at), row.to.get(at)
    peer = fabric.port_name(far[1]) if far else None
    return {
        "device": own.device,
        "port": own.port,
        "to": {"device": peer.device, "port": peer.port} if peer else None,
        "why": share.why.value,
    }


def _text(fabric: Fabric, rows: list[_Row]) -> str:
    cells = [line for row in rows for line in _lines(fabric, row)]
    return table(_HEADER, cells) if cells else "no port of a host is known"


def _lines(fabric: Fabric, row: _Row) -> Iterator[tuple[str, ...]]:
    """Yield a line per reason that puts ports into the plane."""
    by_why: dict[Why, list[int]] = defaultdict(list)
    for at, share in row.shares:
        by_why[share.why].append(at)
    for why, ports in sorted(by_why.items()):
        hosts = {fabric.ports[at].device for at in ports}
        switches = {row.to[at][0] for at in ports if at in row.to}
        linked = sum(at in row.to for at in ports)
        names = sorted({fabric.ports[at].name for at in ports}, key=natural_key)
        counts = (len(hosts), len(ports), linked, len(switches))
        yield (row.plane.name, why.value, *map(str, counts), shorten(names, _NUM_NAMES))
