"""`toponaut planes`: list the networks, the host ports in each, and the reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from generator.cli import options
from generator.cli.exit_codes import exit_with_problems
from generator.cli.options import InputOptions
from generator.cli.output import Table, open_progress, print_document, shorten_names
from topology.model.errors import list_some, show
from topology.model.ids import natural_key
from topology.planes.policy import COMPUTE, PlaneReason, PortPlane

if TYPE_CHECKING:
    from topology.model.fabric import Fabric
    from topology.planes.compute_choice import ComputeChoice
    from topology.planes.machine_types import MachineType
    from topology.planes.plane import Plane
    from topology.planes.plane_split import PlaneSplit

_HEADER: Final = ("plane", "reason", "hosts", "ports", "linked", "leaves", "names")
_MAX_NAMES_SHOWN: Final = 4


@options.command(
    "planes",
    examples=(
        "toponaut planes --reports fabric/reports",
        "toponaut planes --reports fabric/reports --plane compute -o json",
    ),
)
def command(
    *,
    sources: InputOptions,
    explain: bool = options.option(
        "Show for each machine type why its compute ports were chosen, and the next candidate."
    ),
    output: str = options.OUTPUT,
) -> None:
    """Print the networks, the host ports in each, and why they are there.

    The tree describes the compute network, unless you choose another with --plane. If ports are
    in the wrong network, write rules to a file and pass it with --planes. --explain shows what
    was compared.
    """
    from generator.cli.observation import check_plane, parse_sources, read_claims
    from topology.join.fabric_join import build_fabric
    from topology.planes.plane_split import split_planes

    given = parse_sources(sources)
    inputs = read_claims(given, lacking="ports")
    with open_progress("joining the reports"):
        fabric = build_fabric(inputs.all_claims)
        split = split_planes(fabric, inputs.planes.policies)
    check_plane(inputs.planes.plane_name, split.names)
    rows = [_build_row(split, name) for name in split.names if given.plane in {None, name}]
    choices = [_render_choice(fabric, choice) for choice in split.choices] if explain else []
    document = [_render(fabric, row) for row in rows]
    for row in document:
        if explain and row["name"] == COMPUTE:
            row["choices"] = choices
    print_document(
        document, output, text=lambda: _list_parts(fabric, rows, choices, has_choices=explain)
    )
    exit_with_problems(inputs.problems)


class _PlaneRow(NamedTuple):
    """One plane, and its host ports in the order of the fabric."""

    plane: Plane
    shares: tuple[tuple[int, PortPlane], ...]
    """(port, its plane and the reason) per host port."""
    switch_port_of: dict[int, tuple[int, int]]
    """(switch, switch port) by linked host port; all are indexes of the fabric."""


def _build_row(split: PlaneSplit, name: str) -> _PlaneRow:
    plane = split.plane(name)
    return _PlaneRow(
        plane=plane,
        shares=tuple((port, split.port_planes[port]) for port in sorted(plane.ports)),
        switch_port_of={edge.a_port: (edge.b, edge.b_port) for edge in plane.host_edges},
    )


def _render(fabric: Fabric, row: _PlaneRow) -> dict[str, Any]:
    """Return a plane as JSON."""
    return {
        "name": row.plane.name,
        "switches": sorted(fabric.devices[switch].name for switch in row.plane.switches),
        "ports": [_render_port(fabric, row, port, share) for port, share in row.shares],
    }


def _render_port(fabric: Fabric, row: _PlaneRow, port: int, share: PortPlane) -> dict[str, Any]:
    name, switch_port = fabric.port_name(port), row.switch_port_of.get(port)
    peer = fabric.port_name(switch_port[1]) if switch_port else None
    return {
        "device": name.device,
        "port": name.port,
        "to": {"device": peer.device, "port": peer.port} if peer else None,
        "why": share.reason.value,
    }


def _render_choice(fabric: Fabric, choice: ComputeChoice) -> dict[str, Any]:
    """Return as JSON why the compute ports of a machine type were chosen."""
    machine = choice.machine
    rival = sorted(choice.rival.columns) if choice.rival else []
    hosts = dict.fromkeys(fabric.ports[port].device for port in machine.numbers.tolist())
    return {
        "hosts": [fabric.devices[host].name for host in hosts],
        "chosen": _render_slots(fabric, machine, sorted(choice.columns)),
        "next": _render_slots(fabric, machine, rival) if rival else None,
        "because": choice.reason,
        "close": choice.doubt,
    }


def _render_slots(fabric: Fabric, machine: MachineType, columns: list[int]) -> dict[str, Any]:
    import numpy as np

    from topology.planes.compute_choice import describe_slots
    from topology.planes.machine_types import NO_SWITCH

    switches = machine.switches[:, columns]
    linked = switches[switches != NO_SWITCH]
    names = {fabric.devices[switch].name for switch in np.unique(linked).tolist()}
    return {
        "ports": [machine.slots[column].name for column in columns],
        "description": describe_slots(machine, columns),
        "cables": len(linked),
        "switches": sorted(names, key=natural_key),
    }


def _list_parts(
    fabric: Fabric, rows: list[_PlaneRow], choices: list[dict[str, Any]], *, has_choices: bool
) -> Iterator[str | Table]:
    cells = [line for row in rows for line in _render_lines(fabric, row)]
    yield Table(_HEADER, cells, empty="no host ports found")
    for choice in choices:
        yield from _explain_choice(choice)
    if has_choices and not choices:
        yield "\nrules of --planes assign the compute network"


def _explain_choice(choice: dict[str, Any]) -> Iterator[str]:
    """Yield the lines about one machine type."""
    yield ""
    hosts = list_some(map(show, choice["hosts"]), _MAX_NAMES_SHOWN)
    yield f"{len(choice['hosts'])} hosts of one machine type: {hosts}"
    for label in ("chosen", "next"):
        slots = choice[label]
        if slots:
            switches = list_some(map(show, slots["switches"]), _MAX_NAMES_SHOWN)
            to = f"{slots['cables']} cables, to {switches}" if slots["cables"] else "no known cable"
            yield f"  {label}: {slots['description']}: {to}"
    if choice["because"]:
        yield f"  the chosen ports go first because {choice['because']}"
    if choice["close"]:
        yield f"  the choice is close, because {choice['close']}"


def _render_lines(fabric: Fabric, row: _PlaneRow) -> Iterator[tuple[str, ...]]:
    """Yield the cells of one line per reason why ports are in the plane."""
    ports_by_reason: dict[PlaneReason, list[int]] = defaultdict(list)
    for port, share in row.shares:
        ports_by_reason[share.reason].append(port)
    for reason, ports in sorted(ports_by_reason.items()):
        hosts = {fabric.ports[port].device for port in ports}
        linked = [port for port in ports if port in row.switch_port_of]
        switches = {row.switch_port_of[port][0] for port in linked}
        names = sorted({fabric.ports[port].name for port in ports}, key=natural_key)
        counts = map(str, (len(hosts), len(ports), len(linked), len(switches)))
        yield row.plane.name, reason.value, *counts, shorten_names(names, _MAX_NAMES_SHOWN)
