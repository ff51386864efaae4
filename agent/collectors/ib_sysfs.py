"""The node's own HCAs from `/sys/class/infiniband`; their GUIDs identify it on InfiniBand.

This module reads the files and adds each port's place on PCI Express.
`topology.sources.infiniband.sysfs` decodes the files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import Runner
from agent.node.hcas import INFINIBAND, list_hcas, list_switch_bridges
from agent.node.pci import (
    Gpu,
    find_gpus,
    gpu_distance,
    list_unused_hcas,
    name_functions,
    numa_node,
    pci_address,
)
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings
from topology.model.errors import CollectError, list_some, show
from topology.model.facts import Device, Medium, Port
from topology.model.ids import IdKind, parse_mac
from topology.sources.infiniband.sysfs import RocePort, parse_ib_sysfs

_CLASS = "class"
_NET = f"{_CLASS}/net"
_DEVICE_FILES: Final = ("node_guid", "sys_image_guid")
_PORT_FILES: Final = ("state", "phys_state", "rate", "link_layer", "gids/0", "gid_attrs/ndevs/0")
_OWN_KINDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID})
_NO_DEVICE: Final = "no InfiniBand or RoCE device"
_MAX_SHOWN: Final = 8
_MAX_PORTS: Final = 16
"""The most ports read from one HCA; real HCAs have one or two."""


def find_absence(settings: AgentSettings, _runner: Runner) -> SourceAbsent | None:
    """Return why there is no HCA to read, or None if there is one."""
    root = Sysfs(settings.sysfs_root)
    if root.list_names(INFINIBAND):
        return None
    return SourceAbsent(_NO_DEVICE, _name_unused(root))


def collect(settings: AgentSettings, _runner: Runner) -> CollectedFacts:
    """Return the InfiniBand ports of this node, its GUIDs, and the RDMA devices of its NICs.

    Raises:
        SourceAbsent: there is no device, although PCI shows InfiniBand cards.
        CollectError: there is no sysfs, so whether there are devices is unknown.
    """
    root = Sysfs(settings.sysfs_root)
    if not root.exists(_CLASS):
        raise CollectError(f"no {root.root / _CLASS}: is sysfs mounted?")
    parsed = parse_ib_sysfs(dict(_read_files(root)), source=INFINIBAND)
    unused = _name_unused(root)
    others = "; ".join(filter(None, (_name_bridges(root), _name_clouds(parsed.cloud_devices))))
    if not parsed.devices and unused:
        raise SourceAbsent(_NO_DEVICE, unused)
    if not parsed.devices:
        return CollectedFacts(errors=parsed.errors, note=others or _NO_DEVICE)
    gpus = find_gpus(root)
    ports = tuple(
        _with_gpu_distance(root, port, gpus) for device in parsed.devices for port in device.ports
    )
    port_guids = (id_ for port in ports for id_ in port.ids if id_.kind is IdKind.PORT_GUID)
    device_ids = (id_ for device in parsed.devices for id_ in device.ids)
    rdma_of_net = dict(_pair_interfaces(root, parsed.roce_ports))
    return CollectedFacts(
        ids=frozenset({*device_ids, *port_guids}),
        ports=ports,
        rdma_of_net=frozenset(rdma_of_net.items()),
        hidden_ports=tuple(
            _with_gpu_distance(root, port, gpus)
            for port in _find_hidden(root, parsed.roce_ports, set(rdma_of_net.values()))
        ),
        errors=parsed.errors,
        note="; ".join(filter(None, (unused, others))),
    )


def restore(device: Device) -> CollectedFacts:
    """Return the HCAs in a report."""
    return CollectedFacts(
        ids=frozenset(id_ for id_ in device.ids if id_.kind in _OWN_KINDS),
        ports=tuple(port for port in device.ports if port.medium is Medium.INFINIBAND),
        rdma_of_net=frozenset(
            (port.name, port.rdma_device)
            for port in device.ports
            if port.medium is Medium.ETHERNET and port.rdma_device
        ),
    )


COLLECTOR: Final = Collector(collect, find_absence, restore)


def _name_unused(root: Sysfs) -> str:
    return name_functions("InfiniBand card without an HCA", list_unused_hcas(root))


def _name_bridges(root: Sysfs) -> str:
    bridges = list_switch_bridges(root)
    shown = list_some(map(show, bridges), _MAX_SHOWN)
    return f"no ports, but bridges to the NVSwitches of this board: {shown}" if bridges else ""


def _name_clouds(devices: Sequence[str]) -> str:
    shown = list_some(map(show, devices), _MAX_SHOWN)
    return (
        f"no cable is shown by {shown}, as in a cloud: use the labels of nodes (--node-labels)"
        if devices
        else ""
    )


def _read_files(root: Sysfs) -> Iterator[tuple[str, str]]:
    """Yield (path below the class folder, content) of each file that the parser reads."""
    for name in list_hcas(root):
        base = f"{INFINIBAND}/{name}"
        paths = list(_DEVICE_FILES)
        for number in root.list_names(f"{base}/ports")[:_MAX_PORTS]:
            paths += [f"ports/{number}/{file}" for file in _PORT_FILES]
        for path in paths:
            text = root.read(f"{base}/{path}")
            if text is not None:
                yield f"{name}/{path}", text
        yield f"{name}/device/net", "\n".join(root.list_names(f"{base}/device/net"))


def _pair_interfaces(root: Sysfs, ports: Iterable[RocePort]) -> Iterator[tuple[str, str]]:
    """Yield each interface of this network namespace that has an RDMA device, with the device.

    The interface may belong to another PCI function than the device, as with erdma, whose interface
    is a virtio device. Then the default GID, which is made of the interface's address, names the
    interface. Software devices (rxe, siw) are on no PCI function, and their interfaces stay the
    same ports.
    """
    macs: dict[str, str] | None = None
    for roce in ports:
        device = roce.port.rdma_device or ""
        names = roce.interfaces
        if not names and pci_address(root, f"{INFINIBAND}/{device}/device"):
            macs = _map_addresses(root) if macs is None else macs
            named = {macs[id_.value] for id_ in roce.port.ids if id_.value in macs}
            is_here = roce.gid_interface in macs.values()
            names = tuple(named) or ((roce.gid_interface,) if is_here and not roce.port.ids else ())
        yield from ((name, device) for name in names)


def _map_addresses(root: Sysfs) -> dict[str, str]:
    """Return the interface with each address; of several, the first of those with a device."""
    names = [name for name in root.list_names(_NET) if root.exists(f"{_NET}/{name}/device")]
    macs = ((parse_mac(root.read(f"{_NET}/{name}/address") or ""), name) for name in names)
    return {mac: name for mac, name in reversed(list(macs)) if mac}


def _find_hidden(
    root: Sysfs, ports: Sequence[RocePort], with_interface: Collection[str]
) -> Iterator[Port]:
    """Yield the ports without an interface in this network namespace.

    Several functions of a card may be one port, of which only one has an interface: those of the
    same number below other buses, as with Socket Direct.
    """
    seen = {
        _find_card_port(root, roce) for roce in ports if roce.port.rdma_device in with_interface
    }
    for roce in ports:
        key = _find_card_port(root, roce)
        is_hidden = roce.port.rdma_device not in with_interface and key not in seen
        if is_hidden and key[1]:
            seen.add(key)
            yield roce.port


def _find_card_port(root: Sysfs, roce: RocePort) -> tuple[str, str, str]:
    """Return the card, the number of the function (empty without PCI), and the port."""
    device = f"{INFINIBAND}/{roce.port.rdma_device}/device"
    function = (pci_address(root, device) or "").rpartition(".")[2]
    return roce.image_guid or roce.port.name, function, roce.port.name.rpartition("/")[2]


def _with_gpu_distance(root: Sysfs, port: Port, gpus: tuple[Gpu, ...]) -> Port:
    device = f"{INFINIBAND}/{port.rdma_device}/device"
    return port._replace(
        pci_address=pci_address(root, device),
        gpu_distance=gpu_distance(root, device, gpus),
        numa_node=numa_node(root, device),
    )
