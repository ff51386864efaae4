"""What `lldpcli -f json0` prints on every device of a damaged fabric, byte for byte plausible.

Any fabric has cables, so an InfiniBand one can be shown this way too, under its own port names.
Source: lldpd 1.0.16; a Linux host sends a port's MAC as its id, a switch the port's name.
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
    """Yield (file name, text) of what each device hears and of what it is, one file at a time.

    Names are `<device>.neighbors.json0` and `<device>.chassis.json0`. Nobody collected a silent
    host's, yet its neighbors hear it.
    """
    sight = DeviceViews(damaged)
    for host in damaged.wiring.hosts:
        if host.name not in damaged.silent:
            yield from _files(sight, host.name, [nic.port for nic in host.nics])
    for name, switch in sight.switches.items():
        yield from _files(sight, name, sight.ports_of(switch))


def _files(sight: DeviceViews, device: str, ports: Sequence[str]) -> Iterator[tuple[str, str]]:
    heard: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    for port in ports:
        far = sight.far_end(device, port)
        if far:
            remote = numbers.setdefault(far.device, len(numbers) + 1)
            heard.append(_interface(sight, port, far, remote))
    yield f"{device}.neighbors.json0", _print({"lldp": [{"interface": heard} if heard else {}]})
    chassis = {"local-chassis": [{"chassis": [_chassis(sight, device)]}]}
    yield f"{device}.chassis.json0", _print(chassis)


def _interface(sight: DeviceViews, port: str, far: PortName, remote: int) -> dict[str, Any]:
    return {
        "name": port,
        "via": "LLDP",
        "rid": str(remote),
        "age": AGE,
        "chassis": [_chassis(sight, far.device)],
        "port": [_port(sight, far)],
    }


def _chassis(sight: DeviceViews, device: str) -> dict[str, Any]:
    is_switch = device in sight.switches
    return {
        "id": [{"type": "mac", "value": sight.chassis_mac(device)}],
        "name": [{"value": device}],
        "descr": [{"value": SWITCH_SYSTEM if is_switch else HOST_SYSTEM}],
        "capability": [
            {"type": "Bridge", "enabled": is_switch},
            {"type": "Router", "enabled": is_switch},
            {"type": "Wlan", "enabled": False},
            {"type": "Station", "enabled": not is_switch},
        ],
    }


def _port(sight: DeviceViews, port: PortName) -> dict[str, Any]:
    nic = sight.nics.get(port)
    own = {"type": "mac", "value": nic.mac} if nic else {"type": "ifname", "value": port.port}
    return {"id": [own], "descr": [{"value": port.port}], "ttl": [{"value": str(TTL_S)}]}


def _print(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"
