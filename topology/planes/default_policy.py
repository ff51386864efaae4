"""Which network a host's port belongs to where no policy tells: compute, storage, management.

Names of switches come first, where they tell: `oob-sw1` is no network for jobs. Then the ports of
each host are judged among themselves.
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
    MANAGEMENT,
    DISTANCE_ORDER,
    STORAGE,
    PortPlane,
    PlaneReason,
)
from topology.planes.port_planes import PortPlanes

SLOWEST_SHARE: Final = 4
"""A compute port has at least a quarter of the fastest rate on its node."""

_WORDS: Final = (
    (MANAGEMENT, frozenset({"mgmt", "mgt", "management", "oob", "ipmi", "bmc", "ilo", "idrac"})),
    (STORAGE, frozenset({"storage", "stor", "nfs", "lustre", "ceph", "gpfs", "beegfs"})),
)
Ports = Mapping[int, FabricPort]
"""Ports by number."""

WEAK_REASONS: Final = frozenset({PlaneReason.RDMA, PlaneReason.FAST})
"""Reasons that tell little on a host whose ports are all alike."""
_LETTERS = re.compile(r"[a-z]+")
_PLANE_WORD = re.compile("|".join(sorted(word for _, words in _WORDS for word in words)))


def plane_in_name(name: str) -> str | None:
    """Return the plane that a switch's name tells by a word of its own, such as `stor-leaf-3`."""
    folded = name.lower()
    if not _PLANE_WORD.search(folded):
        return None  # nearly always
    words = set(_LETTERS.findall(folded))
    if COMPUTE in words:
        return None
    return next((plane for plane, known in _WORDS if words & known), None)


def has_plane_names(named: Mapping[int, str | None]) -> bool:
    """Return whether the names of switches tell planes.

    Where all of them tell one, nobody would have a network for jobs: then they tell nothing.

    Args:
        named: per port with a link to a switch the plane in the switch's name.
    """
    return any(named.values()) and not all(named.values())


def assign_by_switch_names(
    hosts: Iterable[Ports], named: Mapping[int, str | None]
) -> dict[int, PortPlane]:
    """Return the ports whose switch's name tells a plane, and dark ports that are like them.

    Args:
        hosts: the ports of each host.
        named: per port with a link to a switch the plane in the switch's name.
    """
    told = {at: PortPlane(plane, PlaneReason.SWITCH_NAME) for at, plane in named.items() if plane}
    fellows: dict[str, Counter[str | None]] = defaultdict(Counter)
    unlinked: dict[int, str] = {}
    for at, port in (item for ports in hosts for item in ports.items()):
        if at in named:
            fellows[port.name][named[at]] += 1
        else:
            unlinked[at] = port.name
    for at, name in unlinked.items():
        votes = fellows.get(name)
        plane = max(votes, key=lambda one: (votes[one], one or "")) if votes else None
        if plane:
            told[at] = PortPlane(plane, PlaneReason.SAME_PORT)
    return told


def assign_hosts(
    fabric: Fabric, cables: Cables, places: Index, linked: Index
) -> Iterator[tuple[PortPlane, Index]]:
    """Yield planes and ports that are in them, each judged among those of its host.

    Hosts whose ports are all InfiniBand, near to no GPU that anybody tells of, are judged all at
    once; others by `assign_host`. Cost: O(ports), 20 ns each of those, 10 µs each of others.

    Args:
        fabric: all ports.
        cables: what tells their rates.
        places: the ports to be judged, ascending.
        linked: ports with a link to a switch.
    """
    columns = columns_of(fabric)
    is_other = (columns.media != MEDIUM_CODES[Medium.INFINIBAND]) | columns.has_gpu_distance
    owners = columns.port_devices[places]
    has_other = np.zeros(len(columns.kinds), np.bool_)
    has_other[owners[is_other[places]]] = True
    yield from _assign_uniform_hosts(columns, cables.rates, places[~has_other[owners]], linked)
    found: dict[PortPlane, list[int]] = defaultdict(list)
    among = set(linked.tolist()) if has_other.any() else set[int]()
    for ports in ports_of_hosts(fabric, cables, places[has_other[owners]]).values():
        for at, share in assign_host(ports, among):
            found[share].append(at)
    yield from ((share, np.array(ports, np.intp)) for share, ports in found.items())


def _assign_uniform_hosts(
    columns: FabricColumns, rates: Rates, places: Index, linked: Index
) -> Iterator[tuple[PortPlane, Index]]:
    """Yield what `assign_host` says of hosts that have InfiniBand ports and no others."""
    owners, own = columns.port_devices[places], rates[places]
    is_linked = np.zeros(len(rates), np.bool_)
    is_linked[linked] = True
    fastest = np.full(len(columns.kinds), UNKNOWN_RATE)
    cabled = is_linked[places]
    np.maximum.at(fastest, owners[cabled], np.maximum(own[cabled], 0))
    is_dark = (columns.states[places] == STATE_CODES[PortState.DOWN]) | (own == UNKNOWN_RATE)
    is_fast = is_dark | (own * SLOWEST_SHARE >= fastest[owners])
    has_link = fastest[owners] != UNKNOWN_RATE
    yield PortPlane(STORAGE, PlaneReason.FARTHER), places[~is_fast]
    yield PortPlane(COMPUTE, PlaneReason.FAST), places[is_fast & ~has_link]
    yield PortPlane(COMPUTE, PlaneReason.RDMA), places[is_fast & has_link]


def assign_host(ports: Ports, linked: Collection[int]) -> Iterator[tuple[int, PortPlane]]:
    """Yield the plane of each of a host's ports.

    The ports nearest to a GPU, where its report tells; of these (of all, where it does not) the
    InfiniBand and RDMA-capable ones of the medium that carries most, at or above a quarter of the
    fastest rate; where neither rate nor RDMA tells ports apart, all of them are compute. Of the
    others the fast ones are storage, the slow ones management.
    """
    chosen, why = _compute_ports(ports, linked)
    fastest = max((ports[at].rate_bps or 0 for at in chosen), default=0)
    for at, port in ports.items():
        if at in chosen:
            yield at, PortPlane(COMPUTE, why)
        elif _is_rdma(port) or (port.rate_bps or 0) * SLOWEST_SHARE >= fastest > 0:
            yield at, PortPlane(STORAGE, PlaneReason.FARTHER)
        else:
            yield at, PortPlane(MANAGEMENT, PlaneReason.SLOW)


def assign_by_switch_use(edges: Sequence[Edge], shares: PortPlanes) -> dict[int, PortPlane]:
    """Return the ports of plain hosts that are for what most others on their switch are for.

    A plain host is one whose ports are all alike, as a storage server's are: by itself each of
    its ports is compute.

    Args:
        edges: of hosts to switches.
        shares: by port, as the hosts alone tell.
    """
    if shares.planes() <= {COMPUTE}:
        return {}
    told: dict[int, set[str]] = defaultdict(set)
    votes: dict[int, Counter[str]] = defaultdict(Counter)
    for edge in edges:
        share = shares.get(edge.a_port)
        if share:
            told[edge.a].add(share.plane)
            votes[edge.b][share.plane] += 1
    purpose = {
        switch: plane
        for switch, count in votes.items()
        for plane, most in count.most_common(1)
        if plane != COMPUTE and 2 * most > count.total()
    }
    return {
        edge.a_port: PortPlane(purpose[edge.b], PlaneReason.NEIGHBORS)
        for edge in edges
        if edge.b in purpose and told[edge.a] == {COMPUTE}
        if edge.a_port in shares and shares[edge.a_port].reason in WEAK_REASONS
    }


def _compute_ports(ports: Ports, linked: Collection[int]) -> tuple[set[int], PlaneReason]:
    numbers = list(ports)
    near = {port.gpu_distance for port in ports.values()}
    nearest = next((distance for distance in DISTANCE_ORDER[:-1] if distance in near), None)
    why = PlaneReason.FAST
    if nearest is not None:
        numbers = [at for at in numbers if ports[at].gpu_distance is nearest]
        why = PlaneReason.NEAREST
    capable = _of_one_medium(ports, [at for at in numbers if _is_rdma(ports[at])])
    if any(at in linked for at in capable):
        numbers, why = capable, (PlaneReason.RDMA if nearest is None else why)
    fastest = max((ports[at].rate_bps or 0 for at in numbers if at in linked), default=0)
    return {at for at in numbers if _is_fast(ports[at], fastest)}, why


def _is_fast(port: FabricPort, fastest: int) -> bool:
    # Some drivers tell the slowest rate of a port without a link.
    is_unknown = port.state is PortState.DOWN or port.rate_bps is None
    return is_unknown or (port.rate_bps or 0) * SLOWEST_SHARE >= fastest


def _of_one_medium(ports: Ports, numbers: list[int]) -> list[int]:
    """Return the ports of the medium that carries most; another is another network."""
    by_medium: dict[Medium, list[int]] = defaultdict(list)
    for at in numbers:
        by_medium[ports[at].medium].append(at)
    if len(by_medium) < 2:  # noqa: PLR2004 - one medium needs no choice
        return numbers

    def weight(medium: Medium) -> tuple[int, int, bool]:
        rates = [ports[at].rate_bps for at in by_medium[medium]]
        count, fastest = len(rates), max((rate or 0 for rate in rates), default=0)
        # A port without a link tells no rate, and is meant to carry what its fellows do.
        return count * fastest, count, medium is Medium.INFINIBAND

    return by_medium[max(by_medium, key=weight)]


def _is_rdma(port: FabricPort) -> bool:
    return port.medium is Medium.INFINIBAND or port.rdma_device is not None
