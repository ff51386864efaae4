"""What the PCI bus shows: GPUs, network cards and HCAs, and how far a port is from the nearest GPU.

sysfs lists PCI functions in every network namespace and without any driver, so they are evidence
of what a collector should find. A device's path names every bridge above it,
`pci0000:00/0000:00:01.0/0000:01:00.0/…`. A root port has one link, so two devices below one root
port are behind one switch (or are one card).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from agent.node.sysfs import Sysfs
from topology.model.errors import list_some
from topology.model.facts import GpuDistance

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
PCI_DEVICES: Final = "bus/pci/devices"
# The first digits of classes: processing accelerators, such as AMD's Instinct MI300, Gaudi and
# Ascend; 3D controllers; other displays, such as Intel's Max and AMD's MI200; and VGA.
_ACCELERATOR, _CONTROLLER_3D, _OTHER_DISPLAY, _VGA = "0x12", "0x0302", "0x0380", "0x0300"
_HEX = re.compile(r"0x[0-9a-f]{1,16}\Z")
_RESOURCE_WORDS: Final = 3
"""The words of a line of `resource`: start, end and flags."""
_MIN_MEMORY_BYTES: Final = 256 << 20
"""The smallest window to its memory that a GPU has; the displays of BMCs have 128 MiB at most."""
_NVIDIA: Final = "0x10de"
# The first digits of a class: display (any), Ethernet and InfiniBand controllers.
_DISPLAY: Final = "0x03"
_ETHERNET: Final = "0x0200"
_INFINIBAND: Final = "0x0207"
# Drivers that give a function to a virtual machine or to a program in user space. All variants of
# VFIO have its name in theirs, such as mlx5_vfio_pci and nvgrace-gpu-vfio-pci.
_PASSED_ON: Final = frozenset({"pci-stub", "pciback", "uio_pci_generic", "igb_uio"})
_MAX_SHOWN: Final = 3


class Gpu(NamedTuple):
    """One GPU, or another accelerator, of this node."""

    path: tuple[str, ...]
    """PCI addresses from the root port down to the GPU itself."""
    numa_node: int | None


def find_gpus(root: Sysfs) -> tuple[Gpu, ...]:
    """Return the accelerators of this node, of any vendor, in the order of their addresses."""
    bases = (f"{PCI_DEVICES}/{address}" for address in root.list_names(PCI_DEVICES))
    return tuple(
        Gpu(_path(root, base), numa_node(root, base))
        for base in bases
        if _is_accelerator(root, base)
    )


def _is_accelerator(root: Sysfs, base: str) -> bool:
    """Return whether a PCI function computes, and is not the display of a BMC, a CPU or a VM.

    Source: the PCI Code and ID Assignment Specification, base classes 03h and 12h.
    """
    pci_class = root.read(f"{base}/class") or ""
    if pci_class.startswith((_ACCELERATOR, _CONTROLLER_3D)):
        return True
    if pci_class.startswith(_OTHER_DISPLAY):
        return not _has_screen(root, base)
    is_console = root.read(f"{base}/boot_vga") == "1"
    return pci_class.startswith(_VGA) and not is_console and _has_memory(root, base)


def _has_screen(root: Sysfs, base: str) -> bool:
    """Return whether a display has a connector, such as `card0/card0-DP-1` or `card0-Virtual-1`."""
    return any(
        name.startswith(f"{card}-")
        for card in root.list_names(f"{base}/drm")
        for name in root.list_names(f"{base}/drm/{card}")
    )


def _has_memory(root: Sysfs, base: str) -> bool:
    """Return whether a function has a window of the size that GPUs have; True if unknown."""
    windows = [
        int(row[1], 16) - int(row[0], 16) + 1
        for row in map(str.split, (root.read(f"{base}/resource") or "").splitlines())
        if len(row) == _RESOURCE_WORDS and all(map(_HEX.match, row)) and int(row[1], 16)
    ]
    return not windows or max(windows) >= _MIN_MEMORY_BYTES


def pci_address(root: Sysfs, device: str) -> str | None:
    """Return the PCI address of a device, or None if it is not on a PCI bus.

    A virtio device is a child of its PCI device, so the last address of the path counts.

    Args:
        root: the sysfs tree.
        device: the `device` link of an interface or HCA.
    """
    path = _path(root, device)
    return path[-1] if path else None


def gpu_distance(root: Sysfs, device: str, gpus: tuple[Gpu, ...]) -> GpuDistance | None:
    """Return how far a device is from the nearest GPU; None without GPUs or without PCI."""
    path = _path(root, device)
    if not path or not gpus:
        return None
    if any(gpu.path[:1] == path[:1] for gpu in gpus if len(gpu.path) > 1):
        return GpuDistance.SWITCH
    own = numa_node(root, device)
    if own is not None and any(gpu.numa_node == own for gpu in gpus):
        return GpuDistance.NUMA
    return GpuDistance.OTHER


def numa_node(root: Sysfs, device: str) -> int | None:
    """Return the NUMA node of a device; None if the machine has only one or does not report it.

    A virtio device has no NUMA node, and firmware may report that of a bridge only (-1 below it),
    so the nearest device above that has one counts.
    """
    target = root.resolve_link(device)
    if target is None:
        return None
    for place in (target, *target.parents):
        node = root.read_int(f"{place}/numa_node")
        if node is not None and node >= 0:
            return node
    return None


def _path(root: Sysfs, device: str) -> tuple[str, ...]:
    target = root.resolve_link(device)
    parts = target.parts if target is not None else ()
    return tuple(part for part in parts if _ADDRESS.match(part))


def list_nvidia_gpus(root: Sysfs) -> tuple[str, ...]:
    """Return the addresses of NVIDIA's GPUs, but not of the card with the machine's own screen."""
    return tuple(
        address
        for address in _list_functions(root, _DISPLAY)
        if root.read(f"{PCI_DEVICES}/{address}/vendor") == _NVIDIA
        and root.read(f"{PCI_DEVICES}/{address}/boot_vga") != "1"
    )


def list_network_cards(root: Sysfs) -> tuple[str, ...]:
    """Return the addresses of the Ethernet controllers."""
    return _list_functions(root, _ETHERNET)


def list_driven_cards(root: Sysfs) -> tuple[str, ...]:
    """Return the addresses of the Ethernet controllers that have a driver of the host."""
    cards = list_network_cards(root)
    return tuple(address for address in cards if root.link_name(f"{PCI_DEVICES}/{address}/driver"))


def list_unused_hcas(root: Sysfs) -> tuple[str, ...]:
    """Return the addresses of the InfiniBand controllers of which no driver made an HCA.

    The card's driver alone makes no HCA: the module mlx5_ib does. That module was not loaded for
    cards without Ethernet, if the initramfs had the card's driver.

    Source: linux-rdma/rdma-core pull request 818.
    """
    return tuple(
        address
        for address in _list_functions(root, _INFINIBAND)
        if not root.list_names(f"{PCI_DEVICES}/{address}/infiniband")
    )


def name_functions(what: str, addresses: Sequence[str]) -> str:
    """Return a sentence that names the functions of this node; empty without functions.

    Args:
        what: a noun in the singular for the functions.
        addresses: the PCI addresses of the functions.
    """
    if not addresses:
        return ""
    plural = "s" if len(addresses) > 1 else ""
    return f"this node has {len(addresses)} {what}{plural}: {list_some(addresses, _MAX_SHOWN)}"


def _list_functions(root: Sysfs, pci_class: str) -> tuple[str, ...]:
    return tuple(
        address
        for address in root.list_names(PCI_DEVICES)
        if (root.read(f"{PCI_DEVICES}/{address}/class") or "").startswith(pci_class)
        and not root.exists(f"{PCI_DEVICES}/{address}/physfn")
        and not _is_passed_on(root.link_name(f"{PCI_DEVICES}/{address}/driver") or "")
    )


def _is_passed_on(driver: str) -> bool:
    return driver in _PASSED_ON or "vfio" in driver
