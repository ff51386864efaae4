"""Which network interfaces are the end of a cable, and which of them show one port twice.

The evidence is where an interface sits in the tree of devices, not its name. An interface that no
rule excludes is a port.

| evidence in sysfs | kind |
|---|---|
| no `device` link: veth, bridge, bond, VLAN, docker0, dummy, the TAP of rshim | VIRTUAL |
| `device/physfn` | FUNCTION: a virtual function |
| `phys_port_name` such as `pf0vf3`, `c1pf0sf88`, `pf0hpf` | FUNCTION: its far end in the card |
| its device is on the auxiliary bus, such as `mlx5_core.sf.4` | FUNCTION: a scalable function |
| a USB bus in its path, such as the network card that a BMC shows its host | OTHER_BUS |
| the PCI function above it is a bridge, DMA engine or bus: NTB, rshim, Thunderbolt | OTHER_BUS |
| the driver above it is that of the FIFO in a BlueField | OTHER_BUS |
| `phy80211`, or DEVTYPE `wlan`, `wwan`, `bluetooth`, `gadget` in `uevent` | OTHER_BUS |

Sources, all in Linux: Documentation/ABI/testing/sysfs-class-net (phys_port_id, phys_switch_id,
phys_port_name); Documentation/networking/devlink/mlx5 and
Documentation/networking/device_drivers/ethernet/mellanox/mlx5/switchdev.rst (representors, scalable
functions); drivers/platform/mellanox/mlxbf-tmfifo.c (a virtio interface below ACPI's MLNXBF01);
drivers/net/hyperv/netvsc_drv.c and net/core/failover.c (the virtual function below its master);
mlx5e_devlink_port_register in drivers/net/ethernet/mellanox/mlx5/core/en/devlink.c (functions of
one system image GUID are one card, whose ports `phys_port_name` numbers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, TypeAlias

from agent.node.pci import PCI_DEVICES, pci_address
from agent.node.sysfs import Sysfs
from topology.model.ids import parse_guid

_NET: Final = "class/net"
MELLANOX: Final = "0x15b3"
_NO_CARDS: Final = ("0x06", "0x08", "0x0c")
"""Classes of bridges, system peripherals and controllers of serial buses. Others may be cards: the
ports of a Gaudi are those of a processing accelerator (class 12)."""
_REPRESENTOR: Final = re.compile(r"(c\d+)?pf\d+")
_USB: Final = re.compile(r"usb\d+\Z")
# The auxiliary bus names a device by its module, its own name and a number.
_AUXILIARY: Final = re.compile(r"[a-z]\w*\.[a-z]\w*\.\d+\Z")
_FIFO: Final = re.compile(r"tmfifo|rshim|MLNXBF01\b")
_RADIO: Final = re.compile(r"^DEVTYPE=(wlan|wwan|bluetooth|gadget)$", re.MULTILINE)

PortKey: TypeAlias = tuple[str, ...]
"""What interfaces of one physical port have in common."""


class InterfaceKind(Enum):
    """Whether an interface is the end of a cable."""

    PORT = auto()
    VIRTUAL = auto()
    """The interface has no device."""
    OTHER_BUS = auto()
    """The interface leads to a BMC, to the processor of a card, to another host, or to a radio."""
    FUNCTION = auto()
    """The interface is a part of a port that has an interface of its own."""


def find_kind(root: Sysfs, name: str) -> InterfaceKind:
    """Return the kind of an Ethernet interface."""
    base = f"{_NET}/{name}"
    if not root.exists(f"{base}/device"):
        return InterfaceKind.VIRTUAL
    if _is_function(root, f"{base}/device"):
        return InterfaceKind.FUNCTION
    if _REPRESENTOR.match(root.read(f"{base}/phys_port_name") or ""):
        return InterfaceKind.FUNCTION
    return InterfaceKind.OTHER_BUS if _is_on_other_bus(root, base) else InterfaceKind.PORT


def _is_function(root: Sysfs, device: str) -> bool:
    """Return whether the device of an interface is a virtual or scalable function."""
    if root.exists(f"{device}/physfn") or root.link_name(f"{device}/subsystem") == "auxiliary":
        return True
    path = root.resolve_link(device)
    return path is not None and _AUXILIARY.match(path.name) is not None


def list_port_keys(root: Sysfs, name: str) -> Iterator[PortKey]:
    """Yield the keys that all interfaces of one port share; nothing if they are unknown."""
    base = f"{_NET}/{name}"
    port_id, label, switch = (
        root.read(f"{base}/{file}") or ""
        for file in ("phys_port_id", "phys_port_name", "phys_switch_id")
    )
    if port_id.strip("0"):
        yield "port", port_id
    if label and switch.strip("0"):
        yield "switch", switch, label
    if not label or root.read(f"{base}/device/vendor") != MELLANOX:
        return
    for rdma in root.list_names(f"{base}/device/infiniband"):
        image = parse_guid(root.read(f"{base}/device/infiniband/{rdma}/sys_image_guid") or "")
        if image:
            yield "image", image, label


def find_upper_port(root: Sysfs, name: str) -> str | None:
    """Return the upper interface of a pair if this interface is its fast path; None otherwise.

    The upper interface is a netvsc or virtio interface, and the fast path is a virtual function
    with the same address. A bond, a team and a bridge are no such pair: they have no device.
    """
    master = root.link_name(f"{_NET}/{name}/master")
    return master if master and root.exists(f"{_NET}/{master}/device") else None


def _is_on_other_bus(root: Sysfs, base: str) -> bool:
    path = root.resolve_link(f"{base}/device")
    parts = path.parts if path is not None else ()
    if any(_USB.match(part) for part in parts):
        return True
    address = pci_address(root, f"{base}/device")
    pci_class = root.read(f"{PCI_DEVICES}/{address}/class") if address else None
    if pci_class and pci_class.startswith(_NO_CARDS):
        return True
    driver = root.link_name(f"{base}/device/../driver") or ""
    if _FIFO.search(driver) or any(_FIFO.match(part) for part in parts):
        return True
    return root.exists(f"{base}/phy80211") or bool(_RADIO.search(root.read(f"{base}/uevent") or ""))
