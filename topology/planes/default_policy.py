"""The plane of a host's port that no policy matches: compute, storage or management.

The name of its switch decides first, if it names a plane: `oob-sw1` is not a network for jobs. Then
the ports of each host are compared with each other.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from topology.model.fabric import Fabric, FabricPort, columns_of
from topology.model.fabric_columns import (
    MEDIUM_CODES,
    STATE_CODES,
    UNKNOWN_RATE,
    FabricColumns,
    Index,
    Rates,
)
from topology.model.facts import Medium, PortState
from topology.planes.cables import Cables, Edge, ports_of_hosts
from topology.planes.policy import (
    COMPUTE,
    DISTANCE_ORDER,
    MANAGEMENT,
    STORAGE,
    PlaneReason,
    PortPlane,
)
from topology.planes.port_planes import PortPlanes

SLOWEST_SHARE: Final = 4
"""A compute port has at least a quarter of the fastest rate on its node."""

MIN_HOSTS: Final = 2
"""Hosts that it takes to change the plane of other hosts' ports."""

_WORDS: Final = (
    (MANAGEMENT, frozenset({"mgmt", "mgt", "management", "oob", "ipmi", "bmc", "ilo", "idrac"})),
    (STORAGE, frozenset({"storage", "stor", "nfs", "lustre", "ceph", "gpfs", "beegfs"})),
)
Ports = Mapping[int, FabricPort]
"""Ports of one host, by port number."""

WEAK_REASONS: Final = frozenset({PlaneReason.RDMA, PlaneReason.FAST})
"""Reasons that prove little on a host whose ports are all alike."""
_LETTERS = re.compile(r"[a-z]+")
_PLANE_WORD = re.compile("|".join(sorted(word for _, words in _WORDS for word in words)))


def plane_in_name(name: str) -> str | None:
    """Return the plane that a switch's name contains as a separate word, as in `stor-leaf-3`."""
    folded = name.lower()
    if not _PLANE_WORD.search(folded):
        return None  # nearly always
    words = set(_LETTERS.findall(folded))
    if COMPUTE in words:
        return None
    return next((plane for plane, plane_words in _WORDS if words & plane_words), None)


def has_plane_names(
    plane_by_port: Mapping[int, str | None], host_by_port: Mapping[int, int]
) -> bool:
    """Return whether switch names are evidence for planes.

    If every name contains a plane, no network would be left for jobs, so the names are ignored. The
    word of one host about a switch without a plane changes nothing for several others.

    Args:
        plane_by_port: the plane in the switch's name, for each port with a link to a switch.
        host_by_port: the host of each of these ports.
    """
    if not any(plane_by_port.values()):
        return False
    others = {host_by_port[port] for port, plane in plane_by_port.items() if plane is None}
    num_hosts = len({host_by_port[port] for port in plane_by_port})
    return len(others) >= MIN_HOSTS or (bool(others) and num_hosts <= MIN_HOSTS)


def assign_by_switch_names(
    hosts: Iterable[Ports], plane_by_port: Mapping[int, str | None]
) -> dict[int, PortPlane]:
    """Return the plane of each port whose switch's name contains one.

    A port without a link gets the plane that most linked ports of the same name have.

    Args:
        hosts: the ports of each host.
        plane_by_port: the plane in the switch's name, for each port with a link to a switch.
    """
    assigned = {
        number: PortPlane(plane, PlaneReason.SWITCH_NAME)
        for number, plane in plane_by_port.items()
        if plane
    }
    votes_by_port_name: dict[str, Counter[str | None]] = defaultdict(Counter)
    unlinked: dict[int, str] = {}
    for number, port in (item for ports in hosts for item in ports.items()):
        if number in plane_by_port:
            votes_by_port_name[port.name][plane_by_port[number]] += 1
        else:
            unlinked[number] = port.name
    for number, name in unlinked.items():
        votes = votes_by_port_name.get(name)
        winner = max(votes, key=lambda plane: (votes[plane], plane or "")) if votes else None
        if winner:
            assigned[number] = PortPlane(winner, PlaneReason.SAME_PORT)
    return assigned


def assign_hosts(
    fabric: Fabric, cables: Cables, ports: Index, linked: Index
) -> Iterator[tuple[PortPlane, Index]]:
    """Yield planes with their ports; each port is compared with the other ports of its host.

    Hosts that have only InfiniBand ports without a known GPU distance are assigned all at once;
    other hosts by `assign_host`. Cost: O(ports), 20 ns each for the former, 10 µs each for others.

    Args:
        fabric: all ports.
        cables: the rates of ports.
        ports: the ports to assign, ascending.
        linked: ports with a link to a switch.
    """
    columns = columns_of(fabric)
    is_other = (columns.media != MEDIUM_CODES[Medium.INFINIBAND]) | columns.has_gpu_distance
    owners = columns.port_devices[ports]
    has_other = np.zeros(len(columns.kinds), np.bool_)
    has_other[owners[is_other[ports]]] = True
    yield from _assign_uniform_hosts(columns, cables.rates, ports[~has_other[owners]], linked)
    ports_by_plane: dict[PortPlane, list[int]] = defaultdict(list)
    linked_ports = set(linked.tolist()) if has_other.any() else set[int]()
    for host_ports in ports_of_hosts(fabric, cables, ports[has_other[owners]]).values():
        for number, port_plane in assign_host(host_ports, linked_ports):
            ports_by_plane[port_plane].append(number)
    for port_plane, numbers in ports_by_plane.items():
        yield port_plane, np.array(numbers, np.intp)


def _assign_uniform_hosts(
    columns: FabricColumns, rates: Rates, ports: Index, linked: Index
) -> Iterator[tuple[PortPlane, Index]]:
    """Yield the result of `assign_host` for hosts that have only InfiniBand ports."""
    owners, port_rates = columns.port_devices[ports], rates[ports]
    is_linked = np.zeros(len(rates), np.bool_)
    is_linked[linked] = True
    fastest = np.full(len(columns.kinds), UNKNOWN_RATE)
    cabled = is_linked[ports]
    np.maximum.at(fastest, owners[cabled], np.maximum(port_rates[cabled], 0))
    is_down = columns.states[ports] == STATE_CODES[PortState.DOWN]
    is_unknown = is_down | (port_rates == UNKNOWN_RATE)
    is_fast = is_unknown | (port_rates * SLOWEST_SHARE >= fastest[owners])
    has_link = fastest[owners] != UNKNOWN_RATE
    yield PortPlane(STORAGE, PlaneReason.FARTHER), ports[~is_fast]
    yield PortPlane(COMPUTE, PlaneReason.FAST), ports[is_fast & ~has_link]
    yield PortPlane(COMPUTE, PlaneReason.RDMA), ports[is_fast & has_link]


def assign_host(ports: Ports, linked: Collection[int]) -> Iterator[tuple[int, PortPlane]]:
    """Yield the plane of each of a host's ports.

    Compute ports are chosen in three steps:

    1. The ports nearest to a GPU, if the report shows a port on a GPU's PCIe switch or NUMA node;
       else all ports.
    2. Of these, the InfiniBand and RDMA-capable ports of the medium with the highest total rate, if
       any of them has a link.
    3. Of these, the ports with at least a quarter of the fastest rate, and ports of unknown rate.

    Of the other ports, fast and RDMA-capable ports are storage, and slow ports are management.
    """
    chosen, reason = _compute_ports(ports, linked)
    fastest = max((ports[number].rate_bps or 0 for number in chosen), default=0)
    for number, port in ports.items():
        if number in chosen:
            yield number, PortPlane(COMPUTE, reason)
        elif _is_rdma(port) or (port.rate_bps or 0) * SLOWEST_SHARE >= fastest > 0:
            yield number, PortPlane(STORAGE, PlaneReason.FARTHER)
        else:
            yield number, PortPlane(MANAGEMENT, PlaneReason.SLOW)


def assign_by_switch_use(edges: Sequence[Edge], port_planes: PortPlanes) -> dict[int, PortPlane]:
    """Return ports of plain hosts that get the plane of most other ports on their switch.

    A plain host is a host whose ports are all alike, such as a storage server; compared only with
    each other, all of its ports are compute. Each host has one vote about a switch and a plane,
    and one host alone decides nothing.

    Args:
        edges: links from hosts to switches.
        port_planes: the planes that the hosts alone suggest, by port.
    """
    if port_planes.planes() <= {COMPUTE}:
        return {}
    planes_of_host: dict[int, set[str]] = defaultdict(set)
    voters: dict[int, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for edge in edges:
        port_plane = port_planes.get(edge.a_port)
        if port_plane:
            planes_of_host[edge.a].add(port_plane.plane)
            voters[edge.b][port_plane.plane].add(edge.a)
    votes = {
        switch: Counter({plane: len(hosts) for plane, hosts in by_plane.items()})
        for switch, by_plane in voters.items()
    }
    plane_of_switch = {
        switch: plane
        for switch, count in votes.items()
        for plane, most in count.most_common(1)
        if plane != COMPUTE and 2 * most > count.total() and most >= MIN_HOSTS
    }
    return {
        edge.a_port: PortPlane(plane_of_switch[edge.b], PlaneReason.NEIGHBORS)
        for edge in edges
        if edge.b in plane_of_switch and planes_of_host[edge.a] == {COMPUTE}
        if edge.a_port in port_planes and port_planes[edge.a_port].reason in WEAK_REASONS
    }


def _compute_ports(ports: Ports, linked: Collection[int]) -> tuple[set[int], PlaneReason]:
    numbers = list(ports)
    distances = {port.gpu_distance for port in ports.values()}
    nearest = next((distance for distance in DISTANCE_ORDER[:-1] if distance in distances), None)
    reason = PlaneReason.FAST
    if nearest is not None:
        numbers = [number for number in numbers if ports[number].gpu_distance is nearest]
        reason = PlaneReason.NEAREST
    capable = _of_one_medium(ports, [number for number in numbers if _is_rdma(ports[number])])
    if any(number in linked for number in capable):
        numbers, reason = capable, (PlaneReason.RDMA if nearest is None else reason)
    fastest = max(
        (ports[number].rate_bps or 0 for number in numbers if number in linked), default=0
    )
    return {number for number in numbers if _is_fast(ports[number], fastest)}, reason


def _is_fast(port: FabricPort, fastest: int) -> bool:
    # Some drivers report the slowest rate for a port without a link.
    is_unknown = port.state is PortState.DOWN or port.rate_bps is None
    return is_unknown or (port.rate_bps or 0) * SLOWEST_SHARE >= fastest


def _of_one_medium(ports: Ports, numbers: list[int]) -> list[int]:
    """Return the ports of the medium with the highest total rate; others are other networks."""
    by_medium: dict[Medium, list[int]] = defaultdict(list)
    for number in numbers:
        by_medium[ports[number].medium].append(number)
    if len(by_medium) < 2:  # noqa: PLR2004 - one medium needs no choice
        return numbers

    def weight(medium: Medium) -> tuple[int, int, bool]:
        rates = [ports[number].rate_bps for number in by_medium[medium]]
        count, fastest = len(rates), max((rate or 0 for rate in rates), default=0)
        # A port without a link has no rate; it counts with the fastest rate of its medium.
        return count * fastest, count, medium is Medium.INFINIBAND

    return by_medium[max(by_medium, key=weight)]


def _is_rdma(port: FabricPort) -> bool:
    return port.medium is Medium.INFINIBAND or port.rdma_device is not None
