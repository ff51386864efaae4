"""A fabric without faults: every switch, host and cable of a spec."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from topology.model.errors import ConfigError
from topology.model.facts import Medium, PortName
from topology.synthetic.spec import (
    SPINE_RANK,
    STORAGE_RANK,
    TIER_NAMES,
    FabricKind,
    NamePolicy,
    NetworkShape,
    SyntheticSpec,
    derive_shape,
)

# Locally administered, so they belong to no vendor. GUIDs are 0x10 apart, because simulators derive
# port GUIDs from them.
SWITCH_GUIDS = 0x0200_5C00_0000_0000
HCA_GUIDS = 0x0200_4C00_0000_0000
GUID_STEP = 0x10
SWITCH_MACS = 0x025C_0000_0000
NIC_MACS = 0x024C_0000_0000
NUM_SERIALS = 1 << 28
SCRAMBLE = 0x9E37_79B1
"""Odd, so its multiples modulo a power of two are all different."""
MIN_HOST_DIGITS = 4
UNIT_LETTERS = "gpst"
PLANE_LETTERS = "ab"


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch."""

    name: str
    rank: int
    """1 is a leaf, 0 a storage leaf."""
    path: tuple[int, ...]
    """Indices of the units that contain the switch, outermost first; empty at the top. Switches
    with equal rank and path are one unit: a leaf group, or the spines of a pod."""
    plane: int
    """Index of its plane (a fabric that only hosts connect to the others), from 0."""
    guid: str
    """Canonical node GUID."""
    mac: str
    """Canonical chassis MAC."""
    num_ports: int


@dataclass(frozen=True, slots=True)
class Nic:
    """One HCA or NIC of a host, with one port."""

    device: str
    """`mlx5_3`, or `eth3` on Ethernet."""
    port: str
    """`mlx5_3/1`, or `eth3` on Ethernet."""
    guid: str
    """Canonical node GUID, which is also the port GUID."""
    mac: str
    """Canonical permanent MAC."""
    plane: int
    """Index of its plane, from 0."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host."""

    name: str
    """A valid name of a Kubernetes node."""
    nics: tuple[Nic, ...]
    """Sorted by plane, then by rail; NICs to storage leaves come last."""
    clique: int | None = None
    """Number of its NVLink domain, None without one."""


class Cable(NamedTuple):
    """Two ports; `low` is nearer the hosts, or is the first of two switches of one rank."""

    low: PortName
    high: PortName


@dataclass(frozen=True, slots=True)
class Wiring:
    """A whole fabric."""

    spec: SyntheticSpec
    switches: tuple[Switch, ...]
    """Sorted by rank, then by position; storage leaves come last."""
    hosts: tuple[Host, ...]
    """Sorted by position along the leaves."""
    cables: tuple[Cable, ...]
    """Sorted by rank of the lower end, then by position; host cables come first, and cables to
    storage leaves last."""

    @property
    def num_ranks(self) -> int:
        """Number of ranks of switches, without storage leaves."""
        return max(switch.rank for switch in self.switches)


def build_wiring(spec: SyntheticSpec) -> Wiring:
    """Return the wiring of a spec; equal specs give equal wirings. Cost: O(cables).

    Raises:
        ConfigError: the spec is invalid, or its hosts do not fit.
    """
    shape = derive_shape(spec)
    hosts = tuple(_hosts(spec))
    units = _leaf_groups(spec, shape)
    switches = [leaf for group in units for leaf in group]
    cables = list(_host_cables(spec, hosts, units))
    num_ranks = sum(width > 0 for width in (1, *shape.widths))
    for rank in range(2, num_ranks + 1):
        units, sets = _next_rank(spec, shape, units, rank=rank, start=len(switches))
        switches.extend(switch for unit in units for switch in unit)
        for lower, upper in sets:
            cables.extend(_cables_up(spec, lower, upper))
    cables.extend(_peer_links(spec, switches))
    if num_ranks < shape.num_tiers:
        cables.extend(_global_cables(spec, units))
    if spec.islands:
        cables = _without_bridges(spec, switches, cables)
    storage = _storage_leaves(spec, start=len(switches))
    cables.extend(_storage_cables(spec, hosts, storage))
    return Wiring(spec, (*switches, *storage), hosts, tuple(cables))


def switch_port(medium: Medium, number: int) -> str:
    """Return the name of a switch port, as the tools of its medium print it."""
    return f"swp{number}" if medium is Medium.ETHERNET else str(number)


def port_number(port: str) -> int:
    """Return the number of a switch port, the inverse of `switch_port`."""
    return int(port.removeprefix("swp"))


def _hosts(spec: SyntheticSpec) -> Iterator[Host]:
    digits = max(MIN_HOST_DIGITS, len(str(spec.num_hosts)))
    numbers = list(range(spec.num_hosts))
    if spec.names is NamePolicy.OPAQUE:
        numbers.sort(key=lambda number: _digest(f"host {number}"))
    num_ports = spec.ports_per_host + spec.storage_leaves
    for position, number in enumerate(numbers):
        nics = (_nic(spec, index, position * num_ports + index) for index in range(num_ports))
        clique = (
            _displayed_number(spec, position // spec.nvlink_hosts) if spec.nvlink_hosts else None
        )
        yield Host(f"node-{number + 1:0{digits}}", tuple(nics), clique)


def _nic(spec: SyntheticSpec, index: int, serial: int) -> Nic:
    is_ethernet = spec.medium is Medium.ETHERNET
    device = f"eth{index}" if is_ethernet else f"mlx5_{index}"
    return Nic(
        device=device,
        port=device if is_ethernet else f"{device}/1",
        guid=_guid(HCA_GUIDS, _displayed_number(spec, serial)),
        mac=_mac(NIC_MACS, _displayed_number(spec, serial)),
        plane=index // spec.ports_per_plane if index < spec.ports_per_host else 0,
    )


def _leaf_groups(spec: SyntheticSpec, shape: NetworkShape) -> list[list[Switch]]:
    """Return the leaves of every group, in the order of their hosts' ports."""
    width = spec.ports_per_host
    return [
        [
            _switch(
                spec,
                rank=1,
                path=shape.path(1, group),
                plane=index // spec.ports_per_plane,
                label=_leaf_label(spec, index % spec.ports_per_plane),
                serial=group * width + index,
            )
            for index in range(width)
        ]
        for group in range(shape.num_groups)
    ]


def _leaf_label(spec: SyntheticSpec, index: int) -> str:
    if spec.kind is FabricKind.DUAL_HOMED:
        return "ab"[index]
    return f"r{index + 1}" if spec.ports_per_plane > 1 or spec.kind is FabricKind.RAIL else ""


def _host_cables(
    spec: SyntheticSpec, hosts: tuple[Host, ...], groups: list[list[Switch]]
) -> Iterator[Cable]:
    for position, host in enumerate(hosts):
        group, slot = divmod(position, spec.num_half_ports)
        port = switch_port(spec.medium, slot + 1)
        for nic, leaf in zip(host.nics[: spec.ports_per_host], groups[group], strict=True):
            yield Cable(PortName(host.name, nic.port), PortName(leaf.name, port))


def _storage_leaves(spec: SyntheticSpec, *, start: int) -> list[Switch]:
    """Return the storage leaves, each with a port for every host."""
    leaves = (
        _switch(
            spec, rank=STORAGE_RANK, path=(), plane=0, label=f"{index + 1:02}", serial=start + index
        )
        for index in range(spec.storage_leaves)
    )
    return [replace(leaf, num_ports=spec.num_hosts) for leaf in leaves]


def _storage_cables(
    spec: SyntheticSpec, hosts: tuple[Host, ...], storage: list[Switch]
) -> Iterator[Cable]:
    for position, host in enumerate(hosts):
        port = switch_port(spec.medium, position + 1)
        for nic, leaf in zip(host.nics[spec.ports_per_host :], storage, strict=True):
            yield Cable(PortName(host.name, nic.port), PortName(leaf.name, port))


def _peer_links(spec: SyntheticSpec, switches: list[Switch]) -> Iterator[Cable]:
    """Yield the cables between the two leaves of every pair."""
    leaves = [switch for switch in switches if switch.rank == 1]
    ports = [switch_port(spec.medium, spec.radix + index + 1) for index in range(spec.peer_links)]
    for leaf, paired_leaf in zip(leaves[::2], leaves[1::2], strict=False):
        yield from (
            Cable(PortName(leaf.name, port), PortName(paired_leaf.name, port)) for port in ports
        )


def _without_bridges(
    spec: SyntheticSpec, switches: list[Switch], cables: list[Cable]
) -> list[Cable]:
    """Return the cables without those between an island and another pod or the top.

    Raises:
        ConfigError: the number of islands is not from 1 to one less than the number of pods.
    """
    pods = {switch.name: switch.path[:1] for switch in switches}
    num_pods = len({pod for pod in pods.values() if pod})
    if not 0 < spec.islands < num_pods:
        raise ConfigError(f"expected fewer islands than the {num_pods} pods, got {spec.islands}")
    island_pods = {(number,) for number in range(num_pods - spec.islands, num_pods)}

    def is_bridge(cable: Cable) -> bool:
        low, high = pods.get(cable.low.device), pods[cable.high.device]
        return low is not None and low != high and not island_pods.isdisjoint({low, high})

    return [cable for cable in cables if not is_bridge(cable)]


_SwitchSet = tuple[list[Switch], list[Switch]]


def _next_rank(
    spec: SyntheticSpec, shape: NetworkShape, lower: list[list[Switch]], *, rank: int, start: int
) -> tuple[list[list[Switch]], list[_SwitchSet]]:
    """Return the switches of every unit of a rank, and the lower switches of each parallel set."""
    fan_out, width = shape.fan_outs[rank - 2], shape.widths[rank - 2]
    units: list[list[Switch]] = []
    sets: list[_SwitchSet] = []
    for index in range(-(-len(lower) // fan_out)):
        children = lower[index * fan_out : (index + 1) * fan_out]
        members = _members_of_sets(spec, children, rank)
        per_plane = len(members) * width // spec.num_planes
        unit = []
        for position in range(len(members) * width):
            switch = _switch(
                spec,
                rank=rank,
                path=shape.path(rank, index),
                plane=position // per_plane,
                label=f"{position % per_plane + 1:02}",
                serial=start,
            )
            unit.append(switch)
            start += 1
        units.append(unit)
        sets.extend(
            (lower_switches, unit[position * width : (position + 1) * width])
            for position, lower_switches in enumerate(members)
        )
    return units, sets


def _members_of_sets(
    spec: SyntheticSpec, children: list[list[Switch]], rank: int
) -> list[list[Switch]]:
    """Return the lower switches that each set of parallel switches connects."""
    if rank > SPINE_RANK:
        return [list(lower_switches) for lower_switches in zip(*children, strict=True)]
    return [
        [leaf for group in children for leaf in group if leaf.plane == plane]
        for plane in range(spec.num_planes)
    ]


def _cables_up(spec: SyntheticSpec, lower: list[Switch], upper: list[Switch]) -> Iterator[Cable]:
    """Yield the cables of one set: every lower switch to every upper one, equally many per pair."""
    ups = spec.num_uplinks if lower[0].rank == 1 else spec.num_half_ports
    parallel = ups // len(upper)
    for place, low in enumerate(lower):
        for uplink_index in range(ups):
            low_port = switch_port(spec.medium, spec.num_half_ports + uplink_index + 1)
            number = place * parallel + uplink_index % parallel + 1
            high = PortName(upper[uplink_index // parallel].name, switch_port(spec.medium, number))
            yield Cable(PortName(low.name, low_port), high)


def _global_cables(spec: SyntheticSpec, groups: list[list[Switch]]) -> Iterator[Cable]:
    """Yield the cables between spines: equally many between any two groups, in round-robin order.

    Remaining ports have no cable.
    """
    num_others = len(groups) - 1
    for first, group in enumerate(groups):
        for distance in range(1, len(groups) - first):
            for turn in range(len(group) * spec.num_half_ports // num_others):
                own_port_index = turn * num_others + distance - 1
                other_port_index = turn * num_others + num_others - distance
                yield Cable(
                    _global_port(spec, group, own_port_index),
                    _global_port(spec, groups[first + distance], other_port_index),
                )


def _global_port(spec: SyntheticSpec, group: list[Switch], index: int) -> PortName:
    """Return port `index` of a group to other groups; consecutive ports are on different spines."""
    place, spine = divmod(index, len(group))
    return PortName(group[spine].name, switch_port(spec.medium, spec.num_half_ports + place + 1))


def _switch(
    spec: SyntheticSpec, *, rank: int, path: tuple[int, ...], plane: int, label: str, serial: int
) -> Switch:
    letter = PLANE_LETTERS[plane] if spec.num_planes > 1 and rank != STORAGE_RANK else ""
    unit = unit_name(rank, path) if rank != STORAGE_RANK else "storage"
    name = "-".join(part for part in (unit, letter, label) if part)
    if spec.names is NamePolicy.OPAQUE:
        name = f"sw-{_digest(name)[:12]}"
    displayed_number = _displayed_number(spec, serial)
    return Switch(
        name=name,
        rank=rank,
        path=path,
        plane=plane,
        guid=_guid(SWITCH_GUIDS, displayed_number),
        mac=_mac(SWITCH_MACS, displayed_number),
        num_ports=spec.radix + (spec.peer_links if rank == 1 else 0),
    )


def _displayed_number(spec: SyntheticSpec, serial: int) -> int:
    """Return the number in the GUID and MAC of a serial number; opaque numbers have no order."""
    return serial * SCRAMBLE % NUM_SERIALS if spec.names is NamePolicy.OPAQUE else serial


def unit_name(rank: int, path: tuple[int, ...]) -> str:
    """Return the name of a unit, such as `leaf-p01-g002`, from its path."""
    letters = reversed(UNIT_LETTERS[rank - 1 : rank - 1 + len(path)])
    steps = (f"{letter}{index + 1:02}" for letter, index in zip(letters, path, strict=True))
    return "-".join((TIER_NAMES[rank - 1], *steps))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _guid(base: int, serial: int) -> str:
    return f"{base + serial * GUID_STEP:016x}"


def _mac(base: int, serial: int) -> str:
    digits = f"{base + serial:012x}"
    return ":".join(digits[offset : offset + 2] for offset in range(0, 12, 2))
