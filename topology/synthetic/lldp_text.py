"""The output of `lldpcli -f json0` on every device of a damaged fabric, in the format of lldpd.

An InfiniBand fabric can be printed in this format too, with its own port names. Source: lldpd
1.0.16; a Linux host sends the MAC of a port as its id, a switch sends the name of the port.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from topology.model.facts import PortName
from topology.synthetic.claims import TTL_S
from topology.synthetic.device_views import DeviceViews
from topology.synthetic.faults import DamagedFabric

HOST_SYSTEM = "Ubuntu 22.04.5 LTS Linux 5.15.0-122-generic #132-Ubuntu SMP x86_64"
SWITCH_SYSTEM = "Cumulus Linux version 5.9.1 running on Mellanox switch"
AGE = "12 days, 03:04:05"


def render_lldpcli(damaged: DamagedFabric) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of the neighbors and the chassis of each device, one file at a time.

    Names are `<device>.neighbors.json0` and `<device>.chassis.json0`. A silent host has no files,
    but it appears in the files of its neighbors.
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
    return json.dumps(document, indent=2) + "\n"
