"""Ports of network cards, from `/sys/class/net`: names, addresses, speed, bond, place on PCI.

`agent.node.interface_kinds` decides which interfaces are ports. Several interfaces of one port are
one port, with the addresses of all. The InfiniBand collector reads InfiniBand interfaces (IPoIB).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent, merge_ports
from agent.node.command import Runner
from agent.node.interface_kinds import (
    InterfaceKind,
    PortKey,
    find_kind,
    find_upper_port,
    list_port_keys,
)
from agent.node.pci import (
    Gpu,
    find_gpus,
    gpu_distance,
    list_network_cards,
    name_functions,
    numa_node,
    pci_address,
)
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings
from topology.model.errors import CollectError
from topology.model.facts import Device, Medium, Port, PortState
from topology.model.ids import Id, IdKind, natural_key, parse_mac
from topology.sources.host.linux_nics import parse_permanent_macs

MAX_PORTS: Final = 512
"""The most ports of a report; more come from patterns that are too wide, not from cables."""

_NO_PORT: Final = "no physical network port"
_CLASS = "class"
_NET = "class/net"
_ARPHRD_ETHER = 1
_UNKNOWN_SPEED = 0xFFFFFFFF  # what old kernels answer instead of -1
_MBPS = 1_000_000


def find_absence(settings: AgentSettings, _runner: Runner) -> SourceAbsent | None:
    """Return why there are no interfaces to read, or None if there are."""
    root = Sysfs(settings.sysfs_root)
    if not root.exists(_CLASS):
        return SourceAbsent(f"no {root.root / _CLASS}: is sysfs mounted?")
    return None if root.exists(_NET) else SourceAbsent(f"no {root.root / _NET}")


def collect(settings: AgentSettings, _runner: Runner) -> CollectedFacts:
    """Return the Ethernet ports of this node, and the interfaces that are not ports.

    Raises:
        CollectError: there is no sysfs, which every Linux has.
        SourceAbsent: sysfs has no network class, such as a capture of a node's HCAs; or it has no
            port, although PCI shows network cards: it is the sysfs of another network namespace.
    """
    root = Sysfs(settings.sysfs_root)
    if not root.exists(_CLASS):
        raise CollectError(f"no {root.root / _CLASS}: is sysfs mounted?")
    if not root.exists(_NET):
        raise SourceAbsent(f"no {root.root / _NET}")
    names = sorted(root.list_names(_NET), key=natural_key)
    port_names = [name for name in names if _is_port(root, name, settings.interfaces)]
    # Physical ports first, so that the limit drops only interfaces that a pattern added.
    port_names.sort(key=lambda name: not root.exists(f"{_NET}/{name}/device"))
    gpus = find_gpus(root)
    bonds = _Bonds(root, Sysfs(settings.proc_root))
    found = _share_rdma([_port(root, name, gpus, bonds) for name in port_names[:MAX_PORTS]])
    port_of = _find_same_ports(root, found)
    ports = _join_interfaces(found, port_of)
    kept = {port.name for port in found}
    # With patterns, the ports may all be virtual, and PCI says nothing about them.
    cards = () if ports or settings.interfaces else list_network_cards(root)
    if cards:
        raise SourceAbsent(_NO_PORT, name_functions("network card", cards))
    note = "" if ports else _NO_PORT
    if len(port_names) > MAX_PORTS:
        num = len(port_names)
        note = f"{num} interfaces, only {MAX_PORTS} kept: narrow the patterns of --interfaces"
    excluded = frozenset(name for name in names if name not in kept)
    return CollectedFacts(
        ids=frozenset(id_ for port in ports for id_ in port.ids if id_.kind is IdKind.MAC),
        ports=ports,
        excluded=excluded,
        repeated_macs=frozenset(_list_repeated_macs(root, excluded)),
        port_of=frozenset((name, port) for name, port in port_of.items() if name != port),
        note=note,
    )


def restore(device: Device) -> CollectedFacts:
    """Return the Ethernet ports and addresses in a report, without the ports' neighbors."""
    ports = (port for port in device.ports if port.medium is Medium.ETHERNET)
    return CollectedFacts(
        ids=frozenset(id_ for id_ in device.ids if id_.kind is IdKind.MAC),
        ports=tuple(port._replace(neighbors=()) for port in ports),
    )


COLLECTOR: Final = Collector(collect, find_absence, restore)


def _is_port(root: Sysfs, name: str, patterns: tuple[str, ...]) -> bool:
    if root.read_int(f"{_NET}/{name}/type") != _ARPHRD_ETHER:
        return False
    kind = find_kind(root, name)
    if kind in {InterfaceKind.VIRTUAL, InterfaceKind.OTHER_BUS}:
        return any(fnmatchcase(name, pattern) for pattern in patterns)
    return kind is InterfaceKind.PORT


def _list_repeated_macs(root: Sysfs, excluded: Iterable[str]) -> Iterator[str]:
    """Yield the addresses of interfaces of BMCs and card processors: other nodes have the same."""
    for name in excluded:
        if find_kind(root, name) is InterfaceKind.OTHER_BUS:
            mac = parse_mac(root.read(f"{_NET}/{name}/address") or "")
            if mac:
                yield mac


def _find_same_ports(root: Sysfs, ports: Sequence[Port]) -> dict[str, str]:
    """Map each interface to the one that represents its port.

    Of a pair this is the upper interface; of equal interfaces, the first with a link.
    """
    order = sorted(ports, key=lambda port: (port.state is not PortState.UP, natural_key(port.name)))
    by_key: dict[PortKey, str] = {}
    port_of = {port.name: port.name for port in ports}
    for port in order:
        keys = tuple(list_port_keys(root, port.name))
        first = next((by_key[key] for key in keys if key in by_key), port.name)
        port_of[port.name] = first
        by_key.update((key, first) for key in keys if key not in by_key)
    for port in ports:
        upper = find_upper_port(root, port.name)
        if upper in port_of:
            port_of[port.name] = port_of[upper]
    return port_of


def _join_interfaces(ports: Sequence[Port], port_of: Mapping[str, str]) -> tuple[Port, ...]:
    """Return each port once, with the ids and the facts of all its interfaces."""
    joined = {port.name: port for port in ports if port_of[port.name] == port.name}
    for other in ports:
        name = port_of[other.name]
        if other.name != name:
            joined[name] = merge_ports(joined[name], other)
    return tuple(joined.values())


class _Bonds:
    """The bond of an interface, and the interface's own address behind the bond's."""

    def __init__(self, root: Sysfs, proc: Sysfs) -> None:
        self._root = root
        self._proc = proc

    def master(self, name: str) -> str | None:
        """Return the bond of an interface, or None without a bond."""
        master = self._root.link_name(f"{_NET}/{name}/master")
        is_bond = master is not None and self._root.exists(f"{_NET}/{master}/bonding")
        return master if is_bond else None

    def mac(self, name: str, master: str | None) -> str | None:
        """Return an interface's own address, because all slaves of a bond show the bond's."""
        permanent = self._root.read(f"{_NET}/{name}/bonding_slave/perm_hwaddr")
        if permanent or not master:
            return parse_mac(permanent or self._root.read(f"{_NET}/{name}/address") or "")
        # Kernels before 3.14 show it only here; the bond's own address would join two ports.
        text = self._proc.read(f"net/bonding/{master}") or ""
        return parse_permanent_macs(text).get(name)


def _port(root: Sysfs, name: str, gpus: tuple[Gpu, ...], bonds: _Bonds) -> Port:
    base = f"{_NET}/{name}"
    state = _state(root, base)
    speed = root.read_int(f"{base}/speed")
    is_known = speed is not None and 0 < speed < _UNKNOWN_SPEED and state is PortState.UP
    rdma_devices = root.list_names(f"{base}/device/infiniband")
    master = bonds.master(name)
    mac = bonds.mac(name, master)
    # The ifindex is left out: it differs after each boot, and no host sends it as its port id.
    ids = (Id(IdKind.IFNAME, name), *([Id(IdKind.MAC, mac)] if mac else []))
    return Port(
        name=name,
        ids=tuple(sorted(ids)),
        medium=Medium.ETHERNET,
        state=state,
        rate_bps=speed * _MBPS if is_known and speed is not None else None,
        bond_master=master,
        rdma_device=rdma_devices[0] if rdma_devices else None,
        pci_address=pci_address(root, f"{base}/device"),
        gpu_distance=gpu_distance(root, f"{base}/device", gpus),
        numa_node=numa_node(root, f"{base}/device"),
    )


def _share_rdma(ports: Sequence[Port]) -> tuple[Port, ...]:
    """Give both ports of a bonded card the RDMA device that only the first port shows.

    `mlx5_bond_0` is below the first function of the card and sends through both.
    """
    shared = {_card(port): port.rdma_device for port in ports if port.rdma_device}
    completed = []
    for port in ports:
        if port.bond_master and not port.rdma_device:
            completed.append(port._replace(rdma_device=shared.get(_card(port))))
        else:
            completed.append(port)
    return tuple(completed)


def _card(port: Port) -> tuple[str | None, str]:
    """Return the bond and the PCI slot of a port, without its function number."""
    return port.bond_master, (port.pci_address or port.name).partition(".")[0]


def _state(root: Sysfs, base: str) -> PortState:
    carrier = root.read_int(f"{base}/carrier")
    if carrier is not None:
        return PortState.UP if carrier else PortState.DOWN
    # No answer means administratively down, or a driver without carrier detection.
    operstate = root.read(f"{base}/operstate")
    if operstate == "up":
        return PortState.UP
    return PortState.UNKNOWN if operstate in (None, "unknown") else PortState.DOWN
