"""Wirings that `SyntheticSpec` cannot describe: uneven pods, hosts with few rails, meshes.

Each shape is made for a number of HCAs, which it has approximately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from topology.model.facts import PortName
from topology.synthetic import (
    Cable,
    FabricKind,
    Host,
    Nic,
    Switch,
    SyntheticSpec,
    Wiring,
    build_wiring,
)

MANY_HCAS = 4096
"""From this number on, switches have 64 ports, and meshes more members."""


class Shape(NamedTuple):
    """A shape of a network."""

    build: Callable[[int], Wiring]
    """Returns the wiring for a number of HCAs."""
    is_uniform: bool = True
    """Whether all hosts have the same ports, so that they can exchange places."""


def _rails(num_hcas: int, rails: int) -> Wiring:
    radix = 64 if num_hcas >= MANY_HCAS else 16
    num_hosts = num_hcas // rails
    return build_wiring(SyntheticSpec(FabricKind.RAIL, num_hosts, rails=rails, radix=radix))


def _uneven_pods(num_hcas: int) -> Wiring:
    """Return rails in which pod k has a part of 1 / (1 + k modulo 4) of the leaf groups."""
    whole = _rails(2 * num_hcas, 4)
    groups = sorted({switch.path for switch in whole.switches if switch.rank == 1})
    kept = {group for group in groups if _is_kept(group, groups)}
    switches = {switch.name for switch in whole.switches if switch.rank > 1 or switch.path in kept}
    leaves = {switch.name for switch in whole.switches if switch.path in kept}
    hosts = {cable.low.device for cable in whole.cables if cable.high.device in leaves}
    return _keep(whole, hosts | switches)


def _is_kept(group: tuple[int, ...], groups: Sequence[tuple[int, ...]]) -> bool:
    """Return whether a leaf group is among the first of its pod."""
    pod = [other for other in groups if other[:1] == group[:1]]
    return pod.index(group) < max(1, len(pod) // (1 + group[0] % 4))


def _keep(whole: Wiring, names: set[str]) -> Wiring:
    return replace(
        whole,
        hosts=tuple(host for host in whole.hosts if host.name in names),
        switches=tuple(switch for switch in whole.switches if switch.name in names),
        cables=tuple(
            cable for cable in whole.cables if {cable.low.device, cable.high.device} <= names
        ),
    )


def _few_rails(num_hcas: int) -> Wiring:
    """Return eight rails of which a third of the hosts use all, a third four and a third two."""
    whole = _rails(num_hcas, 8)
    hosts = []
    for index, host in enumerate(whole.hosts):
        num = (8, 2, 4)[index % 3]
        first = index // 3 * num % 8
        hosts.append(replace(host, nics=host.nics[first : first + num]))
    return _keep_nics(whole, hosts)


def _keep_nics(whole: Wiring, hosts: Sequence[Host]) -> Wiring:
    """Return a fabric with other NICs of the same hosts, without the cables of absent NICs."""
    ports = {PortName(host.name, nic.port) for host in hosts for nic in host.nics}
    names = {host.name for host in hosts}
    cables = (
        cable for cable in whole.cables if cable.low.device not in names or cable.low in ports
    )
    return replace(whole, hosts=tuple(hosts), cables=tuple(cables))


def _single_homed(num_hcas: int) -> Wiring:
    """Return four rails of which every other host uses the first two, or the last two."""
    whole = _rails(num_hcas, 4)
    hosts = [
        replace(host, nics=host.nics[index % 4 - 1 :][:2]) if index % 2 else host
        for index, host in enumerate(whole.hosts)
    ]
    return _keep_nics(whole, hosts)


def _uneven_uplinks(num_hcas: int) -> Wiring:
    """Return rails whose leaves have no cable to a quarter of the spines, each to another one."""
    whole = _rails(num_hcas, 4)
    leaves = [switch.name for switch in whole.switches if switch.rank == 1]
    uplinks = {
        name: [cable for cable in whole.cables if cable.low.device == name] for name in leaves
    }
    dropped = {
        cables[(index + step) % len(cables)]
        for index, cables in enumerate(uplinks.values())
        for step in range(len(cables) // 4)
    }
    return replace(whole, cables=tuple(cable for cable in whole.cables if cable not in dropped))


def _stars(paths: Iterable[tuple[int, ...]], hosts_each: int) -> Wiring:
    """Return switches without cables between them, with some hosts each."""
    switches, hosts, cables = [], [], []
    for number, path in enumerate(paths):
        guid = f"{0x0200_5C00_0000_0000 + 16 * number:016x}"
        switch = Switch(f"switch-{number:04}", 1, path, 0, guid, f"02:5c:{number:08x}", 254)
        switches.append(switch)
        for index in range(hosts_each):
            host_number = number * hosts_each + index
            nic_guid = f"{0x0200_4C00_0000_0000 + 16 * host_number:016x}"
            host = Host(
                f"node-{host_number:06}",
                (Nic("mlx5_0", "mlx5_0/1", nic_guid, f"02:4c:{host_number:08x}", 0),),
            )
            hosts.append(host)
            ends = PortName(host.name, "mlx5_0/1"), PortName(switch.name, str(index + 1))
            cables.append(Cable(*ends))
    spec = SyntheticSpec(FabricKind.FAT_TREE, len(hosts))
    return Wiring(spec, tuple(switches), tuple(hosts), tuple(cables))


def _connect(stars: Wiring, pairs: Iterable[tuple[int, int]]) -> Wiring:
    """Return the switches with a cable between the two of each pair, given by index."""
    used = Counter(cable.high.device for cable in stars.cables)
    cables = []
    for pair in pairs:
        names = [stars.switches[index].name for index in pair]
        used.update(names)
        first, second = (PortName(name, str(used[name])) for name in names)
        cables.append(Cable(first, second))
    return replace(stars, cables=(*stars.cables, *cables))


def _leaf_meshes(num_hcas: int) -> Wiring:
    """Return islands of eight leaves that are all cabled to each other, without spines."""
    size, hosts_each = 8, 16
    num = max(1, num_hcas // (size * hosts_each)) * size
    stars = _stars([divmod(index, size) for index in range(num)], hosts_each)
    meshes = (
        (start + first, start + second)
        for start in range(0, num, size)
        for first, second in combinations(range(size), 2)
    )
    return _connect(stars, meshes)


def _router_groups(num_hcas: int) -> Wiring:
    """Return a dragonfly: groups of routers in a full mesh, with a cable between any two groups."""
    size, hosts_each = (16, 16) if num_hcas >= MANY_HCAS else (4, 8)
    num_groups = max(2, num_hcas // (size * hosts_each))
    stars = _stars([divmod(index, size) for index in range(num_groups * size)], hosts_each)
    local = [
        (group * size + first, group * size + second)
        for group in range(num_groups)
        for first, second in combinations(range(size), 2)
    ]
    far = [
        (group * size + (other - 1) % size, other * size + group % size)
        for group, other in combinations(range(num_groups), 2)
    ]
    return _connect(stars, [*local, *far])


SHAPES = {
    "uneven pods": Shape(_uneven_pods),
    "few rails": Shape(_few_rails, is_uniform=False),
    "hosts with half of the rails": Shape(_single_homed, is_uniform=False),
    "uneven up-links": Shape(_uneven_uplinks),
    "one switch": Shape(lambda num_hcas: _stars([()], min(num_hcas, 254))),
    "single switches": Shape(
        lambda num_hcas: _stars([(index,) for index in range(max(2, num_hcas // 32))], 32)
    ),
    "leaf meshes": Shape(_leaf_meshes),
    "router groups": Shape(_router_groups),
}
