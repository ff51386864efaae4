"""What is missing or close in the choice of the networks: `plane-unknown` and `plane-doubtful`.

A network without a known cable is not replaced by another one, so a person must learn what is
missing. A close choice names both candidates, and the rules that settle it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from topology.model.errors import list_some, show
from topology.model.fabric import Fabric, FabricPort, Index
from topology.model.facts import Finding, FindingKind, Impact, Medium, PortName, PortState, Severity
from topology.model.ids import natural_key
from topology.planes.compute_choice import ComputeChoice, describe_slots, rank_distance
from topology.planes.plane import Plane
from topology.planes.plane_split import PlaneSplit
from topology.planes.policy import COMPUTE, STORAGE

_MAX_SHOWN: Final = 8
_MAX_EVIDENCE: Final = 64
_SWEEP_ADVICE: Final = "give the output of ibnetdiscover, or let an agent sweep (docs/sweeps.md)"


def find_plane_problems(split: PlaneSplit, plane: Plane) -> Iterator[Finding]:
    """Yield what is missing or close in the choice of a network's ports.

    Args:
        split: all networks.
        plane: the network that the tree describes.
    """
    nodes = split.fabric.columns.nodes
    is_node = np.array([node is not None for node in nodes], np.bool_)
    ports = plane.ports.numbers
    ports = ports[is_node[split.fabric.columns.port_devices[ports]]]
    if len(ports) and not is_node[plane.host_edges.columns.a].any():
        yield _build_unknown(split, plane, ports)
    else:
        yield from _find_unswept(split.fabric, plane, ports)
        yield from _find_hidden(split, plane)
    if plane.name == COMPUTE:
        yield from (
            _build_doubt(split, choice)
            for choice in split.choices
            if choice.doubt and list_nodes_with(split.fabric, choice.machine.numbers)
        )


def _build_unknown(split: PlaneSplit, plane: Plane, ports: Index) -> Finding:
    """Return the finding about a network of which no cable is known."""
    fabric, rows = split.fabric, split.fabric.ports.at(ports.tolist())
    message = (
        f"No cable of the {plane.name} network is known, so no node is placed. Its ports, on "
        f"{count_nodes(list_nodes_with(fabric, ports))}: {_show_names(row.name for row in rows)}. "
        f"{' '.join(_explain_silence(rows))} {_advise(split, plane)}"
    )
    return Finding(
        kind=FindingKind.PLANE_UNKNOWN,
        device=plane.name,
        port=None,
        severity=Severity.ERROR,
        message=message.strip(),
        ports=_list_ends(fabric, ports),
    )


def _explain_silence(rows: Sequence[FabricPort]) -> Iterator[str]:
    """Yield what is missing for ports of each medium, and how to get it."""
    if all(row.state is PortState.DOWN for row in rows):
        yield "All of them are down: check the cables and the transceivers."
        return
    infiniband = [row for row in rows if row.medium is Medium.INFINIBAND]
    if infiniband:
        subnets = sorted({row.subnet for row in infiniband if row.subnet})
        of_subnets = f" of subnet {', '.join(map(show, subnets))}" if subnets else ""
        yield f"No sweep{of_subnets} counts: {_SWEEP_ADVICE}."
    if len(infiniband) < len(rows):
        yield (
            "No LLDP neighbor is known on the Ethernet ports: turn on LLDP on their switches, and "
            "turn off the LLDP agent of the cards' firmware."
        )


def _advise(split: PlaneSplit, plane: Plane) -> str:
    """Return the advice for a plane whose cables stay unknown, or that is chosen wrongly."""
    fabric = split.fabric
    if not len(fabric.columns.links.a):
        return (
            "No cable of any host is known. A cloud that shows none gives its topology as labels "
            "of nodes: use --node-labels."
        )
    if plane.name != COMPUTE or not split.choices:
        return ""
    is_fast = split.port_planes.is_in(STORAGE)
    linked = split.cables.host_edges.columns.a_port
    fast = np.unique(linked[is_fast[linked]])
    if not len(fast):
        return ""
    names = {row.name for row in fabric.ports.at(fast.tolist())}
    return f"If jobs use other ports, name them in a file for --planes: {render_rules(names)}"


def _find_unswept(fabric: Fabric, plane: Plane, ports: Index) -> Iterator[Finding]:
    """Yield a finding for each InfiniBand subnet of which no cable is known."""
    linked = set(plane.host_edges.columns.a_port.tolist())
    ports_by_subnet: dict[str, list[int]] = defaultdict(list)
    for number, row in zip(ports.tolist(), fabric.ports.at(ports.tolist()), strict=True):
        if row.subnet and row.state is not PortState.DOWN:
            ports_by_subnet[row.subnet].append(number)
    for subnet, numbers in sorted(ports_by_subnet.items()):
        if linked.isdisjoint(numbers):
            own = np.array(numbers, np.intp)
            nodes = list_nodes_with(fabric, own)
            message = (
                f"No sweep of subnet {show(subnet)} counts, so the cables of "
                f"{count_nodes(nodes)} in it are unknown: {_SWEEP_ADVICE}."
            )
            yield _build_warning(plane, message, nodes, _list_ends(fabric, own))


def _find_hidden(split: PlaneSplit, plane: Plane) -> Iterator[Finding]:
    """Yield a finding for nodes that report no compute port, unlike machines of their type."""
    columns = split.fabric.columns
    has_port = np.zeros(len(columns.names), np.bool_)
    has_port[columns.port_devices[plane.ports.numbers]] = True
    for choice in split.choices if plane.name == COMPUTE else ():
        machine = choice.machine
        hosts = np.unique(columns.port_devices[machine.numbers])
        hidden = [host for host in hosts[~has_port[hosts]].tolist() if columns.nodes[host]]
        if not hidden or len(hidden) == len(hosts):
            continue
        names = (machine.slots[column].name for column in choice.columns)
        nodes = [columns.names[host] for host in hidden]
        message = (
            f"{count_nodes(nodes)} without a port of the "
            f"{COMPUTE} network, which other machines of this type have: {_show_names(names)}. "
            "A pod may own the interfaces, or the cards are lost. These nodes are not placed."
        )
        ends = tuple(PortName(node, "") for node in nodes[:_MAX_EVIDENCE])
        yield _build_warning(plane, message, nodes, ends)


def _build_warning(
    plane: Plane, message: str, nodes: Sequence[str], ports: tuple[PortName, ...]
) -> Finding:
    return Finding(
        kind=FindingKind.PLANE_UNKNOWN,
        device=plane.name,
        port=None,
        severity=Severity.WARNING,
        message=message,
        ports=ports,
        impact=Impact(places=tuple(nodes)),
    )


def _build_doubt(split: PlaneSplit, choice: ComputeChoice) -> Finding:
    """Return the finding about a close choice, with the rules for either candidate."""
    fabric, machine = split.fabric, choice.machine
    rival = frozenset(choice.rival.columns if choice.rival else ())
    chosen = choice.columns - rival
    others = {
        other_choice.machine.slots[column].name
        for other_choice in split.choices
        if other_choice is not choice
        for column in other_choice.columns
    }.difference(slot.name for slot in machine.slots)
    settled, other = (
        render_rules({machine.slots[column].name for column in columns} | others)
        for columns in (chosen, rival)
    )
    is_sure = choice.chosen.medium is Medium.INFINIBAND and choice.has_link
    if choice.rival:
        is_sure &= choice.rival.medium is not Medium.INFINIBAND
        is_sure |= rank_distance(choice.chosen) < rank_distance(choice.rival)
    nodes = count_nodes(list_nodes_with(fabric, machine.numbers))
    message = (
        f"The compute network of {nodes} is a close choice: "
        f"{describe_slots(machine, chosen)}, not {describe_slots(machine, rival)}, because "
        f"{choice.doubt}. Give a file with --planes that settles it: {settled} or, if jobs use the "
        f"others, {other}"
    )
    own = machine.numbers[np.isin(machine.columns, [*chosen, *rival])]
    return Finding(
        kind=FindingKind.PLANE_DOUBTFUL,
        device=COMPUTE,
        port=None,
        severity=Severity.INFO if is_sure else Severity.WARNING,
        message=message,
        ports=_list_ends(fabric, own),
    )


def render_rules(names: Iterable[str]) -> str:
    """Return a planes file that makes ports of these names the compute network, in one line."""
    ports = ", ".join(f'"{show(name)}"' for name in sorted(names, key=natural_key))
    return f"{{planes: [{{name: {COMPUTE}, any: [{{ports: [{ports}]}}]}}]}}"


def list_nodes_with(fabric: Fabric, ports: Index) -> list[str]:
    """Return the nodes that have at least one of these ports."""
    columns = fabric.columns
    hosts = np.unique(columns.port_devices[ports]).tolist()
    return [node for node in map(columns.nodes.__getitem__, hosts) if node]


def count_nodes(nodes: Sequence[str]) -> str:
    """Return a text with the number of the nodes, and the names of the first ones."""
    noun = "node" if len(nodes) == 1 else "nodes"
    shown = list_some((show(node) for node in sorted(nodes, key=natural_key)), _MAX_SHOWN)
    return f"{len(nodes)} {noun} ({shown})"


def _show_names(names: Iterable[str]) -> str:
    return list_some(map(show, sorted({*names}, key=natural_key)), _MAX_SHOWN)


def _list_ends(fabric: Fabric, ports: Index) -> tuple[PortName, ...]:
    return tuple(fabric.port_name(port) for port in ports[:_MAX_EVIDENCE].tolist())
