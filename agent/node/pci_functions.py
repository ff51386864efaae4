"""What the PCI bus shows that a collector should find: GPUs, network cards and HCAs.

sysfs lists PCI functions in every network namespace and without any driver, so they are evidence
where a tool, a driver or a mount is missing. Functions count that the host itself uses: no virtual
functions, and none that a virtual machine or a program in user space has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agent.node.pci import PCI_DEVICES
from agent.node.sysfs import Sysfs
from topology.model.errors import list_some

_NVIDIA: Final = "0x10de"
# The first digits of a class: display (any), Ethernet and InfiniBand controllers.
_DISPLAY: Final = "0x03"
_ETHERNET: Final = "0x0200"
_INFINIBAND: Final = "0x0207"
# Drivers that give a function to a virtual machine or to a program in user space. All variants of
# VFIO have its name in theirs, such as mlx5_vfio_pci and nvgrace-gpu-vfio-pci.
_PASSED_ON: Final = frozenset({"pci-stub", "pciback", "uio_pci_generic", "igb_uio"})
_MAX_SHOWN: Final = 3


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

    The card's driver alone makes none. mlx5_ib is a module of its own, which was not loaded for
    cards without Ethernet if the initramfs had the card's driver.

    Source: linux-rdma/rdma-core pull request 818.
    """
    return tuple(
        address
        for address in _list_functions(root, _INFINIBAND)
        if not root.list_names(f"{PCI_DEVICES}/{address}/infiniband")
    )


def name_functions(what: str, addresses: Sequence[str]) -> str:
    """Return that this node has these functions; empty without any.

    Args:
        what: they are, in the singular.
        addresses: of the functions.
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
