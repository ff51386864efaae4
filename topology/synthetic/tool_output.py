"""What tools print on the devices of a fabric, the /sys files of hosts, and the list of nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from topology.model.facts import Medium, PortName
from topology.model.ids import IdKind
from topology.sources.infiniband.link_rates import RATES_BPS
from topology.synthetic.claims import TTL_S, host_ids
from topology.synthetic.device_views import DeviceViews, hca_description, subnet_of
from topology.synthetic.faults import DamagedFabric
from topology.synthetic.wiring import GUID_STEP, Host, Nic, Switch

HOST_SYSTEM = "Ubuntu 22.04.5 LTS Linux 5.15.0-122-generic #132-Ubuntu SMP x86_64"
SWITCH_SYSTEM = "Cumulus Linux version 5.9.1 running on Mellanox switch"
AGE = "12 days, 03:04:05"


def render_lldpcli(damaged: DamagedFabric) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of the neighbors and the chassis of each device, one file at a time.

    Names are `<device>.neighbors.json0` and `<device>.chassis.json0`. A silent host has no files,
    but it appears in the files of its neighbors. An InfiniBand fabric can be printed in this format
    too, with its own port names. Source: `lldpcli -f json0` of lldpd 1.0.16; a Linux host sends the
    MAC of a port as its id, a switch sends the name of the port.
    """
    views = DeviceViews(damaged)
    for host in damaged.wiring.hosts:
        if host.name not in damaged.silent:
            yield from _files(views, host.name, [nic.port for nic in host.nics])
    for name, switch in views.switches.items():
        yield from _files(views, name, views.ports_of(switch))


def _files(views: DeviceViews, device: str, ports: Sequence[str]) -> Iterator[tuple[str, str]]:
    interfaces: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    for port in ports:
        far_port = views.far_end(device, port)
        if far_port:
            remote = numbers.setdefault(far_port.device, len(numbers) + 1)
            interfaces.append(_interface(views, port, far_port, remote))
    yield (
        f"{device}.neighbors.json0",
        _print({"lldp": [{"interface": interfaces} if interfaces else {}]}),
    )
    chassis = {"local-chassis": [{"chassis": [_chassis(views, device)]}]}
    yield f"{device}.chassis.json0", _print(chassis)


def _interface(views: DeviceViews, port: str, far_port: PortName, remote: int) -> dict[str, Any]:
    return {
        "name": port,
        "via": "LLDP",
        "rid": str(remote),
        "age": AGE,
        "chassis": [_chassis(views, far_port.device)],
        "port": [_port(views, far_port)],
    }


def _chassis(views: DeviceViews, device: str) -> dict[str, Any]:
    is_switch = device in views.switches
    return {
        "id": [{"type": "mac", "value": views.chassis_mac(device)}],
        "name": [{"value": device}],
        "descr": [{"value": SWITCH_SYSTEM if is_switch else HOST_SYSTEM}],
        "capability": [
            {"type": "Bridge", "enabled": is_switch},
            {"type": "Router", "enabled": is_switch},
            {"type": "Wlan", "enabled": False},
            {"type": "Station", "enabled": not is_switch},
        ],
    }


def _port(views: DeviceViews, port: PortName) -> dict[str, Any]:
    nic = views.nics.get(port)
    port_id = {"type": "mac", "value": nic.mac} if nic else {"type": "ifname", "value": port.port}
    return {"id": [port_id], "descr": [{"value": port.port}], "ttl": [{"value": str(TTL_S)}]}


def _print(document: dict[str, Any]) -> str:
    """Return JSON as tools print it. The json module indents five times slower, in Python."""
    return msgspec.json.format(json.dumps(document), indent=2) + "\n"


_SYSTEM: Final = ".1.3.6.1.2.1.1"
_IF_ENTRY: Final = ".1.3.6.1.2.1.2.2.1"
_IFX_ENTRY: Final = ".1.3.6.1.2.1.31.1.1.1"
_LLDP: Final = ".1.0.8802.1.1.2.1"
_SYSTEM_TEXT: Final = "Cumulus Linux version 5.9.1 running on Mellanox switch"
_ETHERNET_TYPE: Final = 6
_UP, _DOWN = 1, 2
_CHASSIS_MAC, _PORT_MAC, _PORT_IFNAME = 4, 3, 5
_BRIDGE_AND_ROUTER, _STATION = "28 00", "01 00"
_MBPS: Final = 1_000_000


def render_snmpwalks(damaged: DamagedFabric) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of the walk of each switch, `<switch>.snmpwalk.txt`.

    It holds the columns that identify the switch, its interfaces and its LLDP neighbors, with the
    same ids that `render_lldpcli` prints for the same frames. Source: RFC 2863 and IEEE 802.1AB
    11.5, in the format of `snmpbulkwalk -On` of net-snmp 5.9.
    """
    views = DeviceViews(damaged)
    for name, switch in views.switches.items():
        yield f"{name}.snmpwalk.txt", "\n".join(_rows(views, switch)) + "\n"


def _rows(views: DeviceViews, switch: Switch) -> Iterator[str]:
    yield _text(f"{_SYSTEM}.1.0", _SYSTEM_TEXT)
    yield _text(f"{_SYSTEM}.5.0", switch.name)
    ports = list(enumerate(views.ports_of(switch), 1))
    mbps = views.rate_bps // _MBPS
    for index, port in ports:
        state = _UP if views.far_end(switch.name, port) else _DOWN
        yield _text(f"{_IF_ENTRY}.2.{index}", port)
        yield _number(f"{_IF_ENTRY}.3.{index}", _ETHERNET_TYPE)
        yield _number(f"{_IF_ENTRY}.8.{index}", state)
        yield _text(f"{_IFX_ENTRY}.1.{index}", port)
        yield f"{_IFX_ENTRY}.15.{index} = Gauge32: {mbps if state == _UP else 0}"
    yield _number(f"{_LLDP}.3.1.0", _CHASSIS_MAC)
    yield _mac(f"{_LLDP}.3.2.0", switch.mac)
    yield _text(f"{_LLDP}.3.3.0", switch.name)
    for index, port in ports:
        yield _number(f"{_LLDP}.3.7.1.2.{index}", _PORT_IFNAME)
        yield _text(f"{_LLDP}.3.7.1.3.{index}", port)
        yield _text(f"{_LLDP}.3.7.1.4.{index}", port)
    for index, port in ports:
        far_port = views.far_end(switch.name, port)
        if far_port:
            yield from _neighbor_rows(views, far_port, f"0.{index}.1")


def _neighbor_rows(views: DeviceViews, far_port: PortName, index: str) -> Iterator[str]:
    table = f"{_LLDP}.4.1.1"
    nic = views.nics.get(far_port)
    yield _number(f"{table}.4.{index}", _CHASSIS_MAC)
    yield _mac(f"{table}.5.{index}", views.chassis_mac(far_port.device))
    yield _number(f"{table}.6.{index}", _PORT_MAC if nic else _PORT_IFNAME)
    port_id = f"{table}.7.{index}"
    yield _mac(port_id, nic.mac) if nic else _text(port_id, far_port.port)
    yield _text(f"{table}.8.{index}", far_port.port)
    yield _text(f"{table}.9.{index}", far_port.device)
    yield f"{table}.12.{index} = Hex-STRING: {_STATION if nic else _BRIDGE_AND_ROUTER} "


def _text(oid: str, text: str) -> str:
    return f'{oid} = STRING: "{text}"'


def _number(oid: str, number: int) -> str:
    return f"{oid} = INTEGER: {number}"


def _mac(oid: str, mac: str) -> str:
    return f"{oid} = Hex-STRING: {mac.upper().replace(':', ' ')} "


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
