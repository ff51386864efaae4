"""The output of `snmpbulkwalk -On` on every switch of a damaged fabric.

Holds the columns that identify the switch, its interfaces and its LLDP neighbors, with the same ids
that `lldp_text` prints for the same frames. Source: RFC 2863 and IEEE 802.1AB 11.5, in the format
of net-snmp 5.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topology.model.facts import PortName
from topology.synthetic.device_views import DeviceViews
from topology.synthetic.faults import DamagedFabric
from topology.synthetic.wiring import Switch

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
    """Yield (file name, text) of the walk of each switch, `<switch>.snmpwalk.txt`."""
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
