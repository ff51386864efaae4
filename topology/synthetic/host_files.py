"""The /sys files of a host of a damaged fabric, and the inventory of cluster nodes."""

from __future__ import annotations

from typing import Any, Final

from topology.model.facts import Medium
from topology.model.ids import IdKind
from topology.sources.infiniband.node_names import RATES_BPS
from topology.synthetic.claims import host_ids
from topology.synthetic.device_views import hca_description, subnet_of
from topology.synthetic.faults import DamagedFabric
from topology.synthetic.wiring import GUID_STEP, Host, Nic

SLOTS = 8
NUM_LIDS = 0xBFFF
_INVENTORY_KINDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.MAC})
_TOKENS: Final = {rate: token for token, rate in reversed(RATES_BPS.items())}


def sysfs_files(damaged: DamagedFabric, host: str) -> dict[str, str]:
    """Return the files of a host by path below the root of sysfs. Cost: O(cables).

    Raises:
        KeyError: there is no such host.
    """
    host_by_name = {item.name: item for item in damaged.wiring.hosts}
    linked = {cable.low.port for cable in damaged.cables if cable.low.device == host}
    files: dict[str, str] = {}
    for nic in host_by_name[host].nics:
        is_up = nic.port in linked
        if damaged.wiring.spec.medium is Medium.ETHERNET:
            files.update(_net_files(damaged, nic, is_up=is_up))
        else:
            files.update(_infiniband_files(damaged, host_by_name[host], nic, is_up=is_up))
    return {path: f"{text}\n" for path, text in files.items()}


def render_inventory(damaged: DamagedFabric) -> dict[str, Any]:
    """Return the inventory: all hosts, including silent ones, with the ids of their ports."""
    medium = damaged.wiring.spec.medium
    return {
        "nodes": [
            {
                "name": host.name,
                "ids": [
                    {"type": identifier.kind.value, "value": identifier.value}
                    for identifier in host_ids(host, medium)
                    if identifier.kind in _INVENTORY_KINDS
                ],
                "capacity": {"slots": SLOTS},
            }
            for host in damaged.wiring.hosts
        ]
    }


def _infiniband_files(
    damaged: DamagedFabric, host: Host, nic: Nic, *, is_up: bool
) -> dict[str, str]:
    guid = _colons(nic.guid)
    # The subnet manager assigns LIDs; a LID does not identify a port.
    lid = int(nic.guid, 16) // GUID_STEP % NUM_LIDS + 1
    files = {
        "node_guid": guid,
        "sys_image_guid": guid,
        "node_desc": hca_description(host, nic),
        "node_type": "1: CA",
        "ports/1/state": "4: ACTIVE" if is_up else "1: DOWN",
        "ports/1/phys_state": "5: LinkUp" if is_up else "2: Polling",
        "ports/1/rate": _rate(damaged.wiring.spec.rate_bps if is_up else RATES_BPS["1xSDR"]),
        "ports/1/link_layer": "InfiniBand",
        "ports/1/lid": f"{lid:#x}" if is_up else "0x0",
        "ports/1/sm_lid": "0x1" if is_up else "0x0",
        "ports/1/gids/0": f"{_colons(subnet_of(nic.plane))}:{guid}",
    }
    return {f"class/infiniband/{nic.device}/{name}": text for name, text in files.items()}


def _net_files(damaged: DamagedFabric, nic: Nic, *, is_up: bool) -> dict[str, str]:
    files = {
        "address": nic.mac,
        "addr_assign_type": "0",
        "operstate": "up" if is_up else "down",
        "carrier": "1" if is_up else "0",
        "speed": str(damaged.wiring.spec.rate_bps // 10**6 if is_up else -1),
        "type": "1",
        "device/uevent": "DRIVER=mlx5_core",
    }
    return {f"class/net/{nic.device}/{name}": text for name, text in files.items()}


def _colons(guid: str) -> str:
    return ":".join(guid[offset : offset + 4] for offset in range(0, 16, 4))


def _rate(rate_bps: int) -> str:
    """Return a rate in the format of sysfs, such as `400 Gb/sec (4X NDR)`."""
    width, speed = _TOKENS[rate_bps].split("x")
    return f"{rate_bps / 10**9:g} Gb/sec ({width}X {speed})"
