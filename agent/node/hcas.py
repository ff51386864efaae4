"""The RDMA devices of this node that have a port with a cable, and the files that sweeps open.

Leaves out virtual and scalable functions, management devices (`smi*`), and the bridges to the
NVSwitches of the node's own board. These bridges look like any HCA with a link; their ports lead to
switches without a cable. Only the vital product data (VPD) shows them, which only root may read.

Source: the Fabric Manager User Guide for HGX B200 and B300, as quoted in findLpfDevices of
siderolabs/extensions (nvidia-fabricmanager): a function of a ConnectX-7 on the baseboard has
`SMDL=SW_MNG` in its VPD.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from agent.node.interface_kinds import MELLANOX
from agent.node.sysfs import Sysfs

INFINIBAND: Final = "class/infiniband"
UMAD_FOLDER: Final = Path("/dev/infiniband")
_UMADS: Final = "umad[0-9]*"
_MAX_DEVICES: Final = 256
_SWITCH_MANAGEMENT: Final = "SMDL=SW_MNG"
_SCALABLE: Final = ".sf."
_MANAGEMENT_DEVICE: Final = "smi"


def list_hcas(root: Sysfs) -> tuple[str, ...]:
    """Return the names of the RDMA devices whose ports may have a cable, sorted."""
    return tuple(
        name
        for name in root.list_names(INFINIBAND)[:_MAX_DEVICES]
        if not name.startswith(_MANAGEMENT_DEVICE)
        and not _is_function(root, f"{INFINIBAND}/{name}/device")
        and not leads_to_nvswitches(root, name)
    )


def _is_function(root: Sysfs, device: str) -> bool:
    """Return whether a device is a virtual function, or a scalable one such as `mlx5_core.sf.4`.

    A driver may place the RDMA device of a whole card on the auxiliary bus, too.
    """
    path = root.resolve_link(device)
    is_scalable = path is not None and _SCALABLE in path.name
    return is_scalable or root.exists(f"{device}/physfn")


def list_switch_bridges(root: Sysfs) -> tuple[str, ...]:
    """Return the names of the RDMA devices that lead to the NVSwitches of this node, sorted."""
    names = root.list_names(INFINIBAND)[:_MAX_DEVICES]
    return tuple(name for name in names if leads_to_nvswitches(root, name))


def leads_to_nvswitches(root: Sysfs, name: str) -> bool:
    """Return whether an RDMA device is a bridge to the NVSwitches; False if the VPD is unknown."""
    device = f"{INFINIBAND}/{name}/device"
    inode = root.find_inode(f"{device}/vpd")
    if inode is None or root.read(f"{device}/vendor") != MELLANOX:
        return False
    return _has_switch_management(root.root, f"{device}/vpd", inode)


@lru_cache(maxsize=_MAX_DEVICES)
def _has_switch_management(root: Path, path: str, _inode: int) -> bool:
    """Read a VPD once while its driver stays bound: each read asks the card word by word."""
    return _SWITCH_MANAGEMENT in (Sysfs(root).read(path) or "")


def find_umads(folder: Path = UMAD_FOLDER) -> Mapping[str, bool]:
    """Return the device files for management datagrams, and whether this user may use each.

    A sweep needs one of them: it opens the file of its HCA's port.

    Source: Documentation/infiniband/user_mad.rst of Linux.
    """
    try:
        files = sorted(folder.glob(_UMADS))
    except OSError:
        return {}
    return {str(file): os.access(file, os.R_OK | os.W_OK) for file in files}
