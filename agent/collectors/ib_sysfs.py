"""The node's own HCAs from `/sys/class/infiniband`; their GUIDs identify it on InfiniBand.

This module reads the files and adds each port's place on PCI Express.
`topology.sources.infiniband.sysfs` decodes the files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agent.collectors.probe import Absence, CollectedFacts, Collector, SourceAbsent
from agent.node.command import Runner
from agent.node.pci import Gpu, find_gpus, gpu_distance, numa_node, pci_address
from agent.node.pci_functions import list_unused_hcas, name_functions
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings
from topology.model.errors import CollectError
from topology.model.facts import Device, Medium, Port
from topology.model.ids import IdKind
from topology.sources.infiniband.sysfs import parse_ib_sysfs

_CLASS = "class"
_INFINIBAND = f"{_CLASS}/infiniband"
_DEVICE_FILES: Final = ("node_guid", "sys_image_guid", "device/numa_node")
_PORT_FILES: Final = ("state", "phys_state", "rate", "link_layer", "gids/0")
_OWN_KINDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID})
_NO_DEVICE: Final = "no InfiniBand or RoCE device"
_MAX_DEVICES: Final = 256
_MAX_PORTS: Final = 16
"""The most ports read from one HCA; real HCAs have one or two."""


def find_absence(settings: AgentSettings, _runner: Runner) -> Absence | None:
    """Return why there is no HCA to read, or None if there is one."""
    root = Sysfs(settings.sysfs_root)
    if root.list_names(_INFINIBAND):
        return None
    return Absence(_NO_DEVICE, _name_unused(root))


def collect(settings: AgentSettings, _runner: Runner) -> CollectedFacts:
    """Return the InfiniBand ports of this node, its GUIDs, and the RDMA devices of its NICs.

    Raises:
        SourceAbsent: there is no device, although PCI shows InfiniBand cards.
        CollectError: there is no sysfs, so whether there are devices is unknown.
    """
    root = Sysfs(settings.sysfs_root)
    if not root.exists(_CLASS):
        raise CollectError(f"no {root.root / _CLASS}: is sysfs mounted?")
    files = dict(_read_files(root))
    parsed = parse_ib_sysfs(files, source=_INFINIBAND)
    unused = _name_unused(root)
    if not parsed.devices and unused:
        raise SourceAbsent(_NO_DEVICE, unused)
    if not parsed.devices:
        return CollectedFacts(errors=parsed.errors, note=_NO_DEVICE)
    gpus = find_gpus(root)
    ports = tuple(
        _with_gpu_distance(root, port, gpus) for device in parsed.devices for port in device.ports
    )
    port_guids = (id_ for port in ports for id_ in port.ids if id_.kind is IdKind.PORT_GUID)
    device_ids = (id_ for device in parsed.devices for id_ in device.ids)
    return CollectedFacts(
        ids=frozenset({*device_ids, *port_guids}),
        ports=ports,
        rdma_of_net=frozenset(
            (net, rdma.rdma_device) for net, rdma in parsed.rdma_by_interface.items()
        ),
        errors=parsed.errors,
        note=unused,
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


def _read_files(root: Sysfs) -> Iterator[tuple[str, str]]:
    """Yield (path below the class folder, content) of each file that the parser reads."""
    for name in root.list_names(_INFINIBAND)[:_MAX_DEVICES]:
        base = f"{_INFINIBAND}/{name}"
        paths = list(_DEVICE_FILES)
        for number in root.list_names(f"{base}/ports")[:_MAX_PORTS]:
            paths += [f"ports/{number}/{file}" for file in _PORT_FILES]
        for path in paths:
            text = root.read(f"{base}/{path}")
            if text is not None:
                yield f"{name}/{path}", text
        yield f"{name}/device/net", "\n".join(root.list_names(f"{base}/device/net"))
        if root.exists(f"{base}/device/physfn"):
            yield f"{name}/device/physfn", ""


def _with_gpu_distance(root: Sysfs, port: Port, gpus: tuple[Gpu, ...]) -> Port:
    device = f"{_INFINIBAND}/{port.rdma_device}/device"
    return port._replace(
        pci_address=pci_address(root, device),
        gpu_distance=gpu_distance(root, device, gpus),
        numa_node=numa_node(root, device),
    )
