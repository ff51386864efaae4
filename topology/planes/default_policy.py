"""The plane of a host's port that no policy matches: compute, storage or management.

The name of its switch decides first, if it names a plane: `oob-sw1` is not a network for jobs. Then
`compute_choice` decides for each machine type which slots are compute. At last, ports of plain
hosts get the plane of most other ports on their switch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from topology.model.fabric import (
    MEDIUM_CODES,
    STATE_CODES,
    FabricColumns,
    Flags,
    Index,
)
from topology.model.facts import Medium, PortState
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Cables
from topology.planes.compute_choice import SLOWEST_SHARE, ComputeChoice, choose_compute
from topology.planes.machine_types import find_machine_types
from topology.planes.policy import (
    COMPUTE,
    DISTANCE_ORDER,
    MANAGEMENT,
    STORAGE,
    PlaneReason,
    PortPlane,
)
from topology.planes.port_plane_map import PortPlaneMap
from topology.planes.shared_switches import SharedSwitches

MIN_HOSTS: Final = 2
"""Hosts that it takes to change the plane of other hosts' ports."""

_WORDS: Final = (
    (MANAGEMENT, frozenset({"mgmt", "mgt", "management", "oob", "ipmi", "bmc", "ilo", "idrac"})),
    (STORAGE, frozenset({"storage", "stor", "nfs", "lustre", "ceph", "gpfs", "beegfs"})),
)
_WEAK_REASONS: Final = frozenset({PlaneReason.RDMA, PlaneReason.FAST})
"""Reasons that prove little on a host whose ports are all alike."""
_LETTERS = re.compile(r"[a-z]+")
_PLANE_WORD = re.compile("|".join(sorted(word for _, words in _WORDS for word in words)))


class PlaneAssignment(NamedTuple):
    """Ports that get a plane, and the reason."""

    port_plane: PortPlane
    ports: Index


def plane_in_name(name: str) -> str | None:
    """Return the plane that a switch's name contains as a separate word, as in `stor-leaf-3`."""
    folded = name.lower()
    if not _PLANE_WORD.search(folded):
        return None  # nearly always
    words = set(_LETTERS.findall(folded))
    if COMPUTE in words:
        return None
    return next((plane for plane, plane_words in _WORDS if words & plane_words), None)


def assign_by_switch_names(
    columns: FabricColumns, cables: Cables, ports: Index, plane_of_switch: Mapping[int, str]
) -> list[PlaneAssignment]:
    """Return the ports whose switch's name contains a plane.

    A port without a link gets the plane that most linked ports of the same name have. The names
    are ignored if no network would be left for jobs. The word of one host about a switch without a
    plane changes nothing for several others.

    Args:
        columns: the columns of the fabric.
        cables: the cables of the hosts.
        ports: the ports to assign, ascending.
        plane_of_switch: the plane in the names of some switches.
    """
    planes = (*sorted({*plane_of_switch.values()}, reverse=True), None)
    codes = np.full(len(columns.kinds), len(planes) - 1, np.intp)
    codes[[*plane_of_switch]] = [planes.index(plane) for plane in plane_of_switch.values()]
    plane_of_port = np.full(len(columns.media), len(planes), np.intp)
    ends = cables.host_edges.columns
    plane_of_port[ends.a_port] = codes[ends.b]
    found = plane_of_port[ports]
    is_named, is_linked = found < len(planes) - 1, found < len(planes)
    if not is_named.any():
        return []
    owners = columns.port_devices[ports]
    is_other = (found == len(planes) - 1) | (~is_linked & _may_be_linked(columns, ports))
    num_hosts = len(np.unique(owners[is_linked | is_other]))
    num_others = len(np.unique(owners[is_other]))
    if not (num_others >= MIN_HOSTS or (num_others and num_hosts <= MIN_HOSTS)):
        return []
    names, texts = columns.port_names.code(ports)
    votes = np.zeros((len(texts), len(planes)), np.intp)
    np.add.at(votes, (names[is_linked], found[is_linked]), 1)
    winners = np.where(votes.any(axis=1), votes.argmax(axis=1), len(planes) - 1)[names]
    return [
        PlaneAssignment(PortPlane(plane, reason), ports[is_chosen])
        for code, plane in enumerate(planes)
        if plane is not None
        for reason, is_chosen in (
            (PlaneReason.SWITCH_NAME, is_named & (found == code)),
            (PlaneReason.SAME_PORT, ~is_linked & (winners == code)),
        )
    ]


def _may_be_linked(columns: FabricColumns, ports: Index) -> Flags:
    """Return one flag per port: whether jobs could use it if its cable were known."""
    is_infiniband = columns.media[ports] == MEDIUM_CODES[Medium.INFINIBAND]
    is_down = columns.states[ports] == STATE_CODES[PortState.DOWN]
    may_be_linked: Flags = (is_infiniband | (columns.roce_devices[ports] > 0)) & ~is_down
    return may_be_linked


def choose_planes(columns: FabricColumns, cables: Cables, ports: Index) -> list[ComputeChoice]:
    """Return the choice for each machine type that has at least one of these ports.

    Args:
        columns: the columns of the fabric.
        cables: the cables of the hosts.
        ports: the ports to assign, ascending.
    """
    switches = SharedSwitches(columns, cables)
    return [
        choose_compute(machine, switches) for machine in find_machine_types(columns, cables, ports)
    ]


def assign_by_choice(choice: ComputeChoice) -> Iterator[PlaneAssignment]:
    """Yield the ports of a machine type by plane.

    Ports outside the compute network are storage if they are fast or RDMA-capable, and management
    if they are slow.
    """
    machine = choice.machine
    fastest = max(machine.rates.item(column) for column in choice.columns)
    columns_by_plane: dict[PortPlane, list[int]] = {}
    for column, slot in enumerate(machine.slots):
        is_fast = machine.rates.item(column) * SLOWEST_SHARE >= fastest > 0
        if column in choice.met:
            port_plane = PortPlane(COMPUTE, PlaneReason.SAME_SWITCHES)
        elif column in choice.columns:
            port_plane = PortPlane(COMPUTE, _explain_choice(choice))
        elif column in choice.apart:
            port_plane = PortPlane(STORAGE, PlaneReason.OTHER_SWITCHES)
        elif slot.is_rdma or is_fast:
            port_plane = PortPlane(STORAGE, PlaneReason.FARTHER)
        else:
            port_plane = PortPlane(MANAGEMENT, PlaneReason.SLOW)
        columns_by_plane.setdefault(port_plane, []).append(column)
    for port_plane, columns in columns_by_plane.items():
        yield PlaneAssignment(port_plane, machine.numbers[np.isin(machine.columns, columns)])


def _explain_choice(choice: ComputeChoice) -> PlaneReason:
    if choice.chosen.distance in DISTANCE_ORDER[:-1]:
        return PlaneReason.NEAREST
    return PlaneReason.RDMA if choice.chosen.is_rdma else PlaneReason.FAST


def assign_by_switch_use(cables: Cables, port_planes: PortPlaneMap) -> list[PlaneAssignment]:
    """Return ports of plain hosts that get the plane of most other ports on their switch.

    A plain host is a host whose ports are all alike, such as a storage server; its ports are
    compared only with each other, so all of them would be compute. Each host has one vote about a
    switch and a plane, and one host alone decides nothing.

    Args:
        cables: the cables of the hosts.
        port_planes: the planes that the hosts alone suggest, by port.
    """
    planes = sorted(port_planes.planes() - {COMPUTE})
    if not planes:
        return []
    kinds = port_planes.kinds
    plane_of_kind = np.array([[COMPUTE, *planes].index(kind.plane) for kind in kinds], np.intp)
    is_weak_kind = np.array([kind.reason in _WEAK_REASONS for kind in kinds], np.bool_)
    ends = cables.host_edges.columns
    codes = port_planes.codes[ends.a_port]
    rows = np.flatnonzero(codes >= 0)
    hosts, switches, codes = ends.a[rows], ends.b[rows], codes[rows]
    plane_codes = plane_of_kind[codes]
    ballots = count_pairs(switches * (len(planes) + 1) + plane_codes, hosts)
    votes = np.zeros((int(switches.max(initial=0)) + 1, len(planes) + 1), np.intp)
    np.add.at(votes, np.divmod(ballots.left, len(planes) + 1), 1)
    most = votes.argmax(axis=1)
    num_most = votes.max(axis=1, initial=0)
    is_foreign = (most > 0) & (2 * num_most > votes.sum(axis=1)) & (num_most >= MIN_HOSTS)
    is_plain = np.ones(int(hosts.max(initial=0)) + 1, np.bool_)
    is_plain[hosts[plane_codes > 0]] = False
    is_moved = is_foreign[switches] & is_plain[hosts] & is_weak_kind[codes]
    return [
        PlaneAssignment(
            PortPlane(plane, PlaneReason.NEIGHBORS),
            ends.a_port[rows[is_moved & (most[switches] == code)]],
        )
        for code, plane in enumerate(planes, 1)
    ]
