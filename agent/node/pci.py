"""Where a port sits on PCI Express, and how far from the nearest GPU: read from sysfs paths.

A device's path names every bridge above it, `pci0000:00/0000:00:01.0/0000:01:00.0/…`. A root
port has one link, so two devices below one root port are behind one switch (or are one card).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agent.node.sysfs import Sysfs
from topology.model.facts import GpuDistance

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_DEVICES = "bus/pci/devices"
_NVIDIA, _AMD = "0x10de", "0x1002"
_VENDORS: Final = frozenset({_NVIDIA, _AMD})
# Classes of displays (0x03) and of processing accelerators (0x12), which AMD's Instinct has.
_CLASSES: Final = ("0x03", "0x12")


class Gpu(NamedTuple):
    """One GPU of this node."""

    path: tuple[str, ...]
    """PCI addresses from the root port down to the GPU itself."""
    numa_node: int | None


def find_gpus(root: Sysfs) -> tuple[Gpu, ...]:
    """Return the GPUs of this node, in the order of their addresses."""
    gpus = []
    for address in root.list_names(_DEVICES):
        base = f"{_DEVICES}/{address}"
        is_gpu = (root.read(f"{base}/class") or "").startswith(_CLASSES)
        if is_gpu and root.read(f"{base}/vendor") in _VENDORS:
            gpus.append(Gpu(_path(root, base), numa_node(root, base)))
    return tuple(gpus)


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
    """Return the NUMA node of a device; None if the machine has only one or does not report it."""
    node = root.read_int(f"{device}/numa_node")
    return node if node is not None and node >= 0 else None  # -1: the machine has only one


def _path(root: Sysfs, device: str) -> tuple[str, ...]:
    target = root.resolve_link(device)
    parts = target.parts if target is not None else ()
    return tuple(part for part in parts if _ADDRESS.match(part))
