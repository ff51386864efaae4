"""Which devices and ports of a fabric the names in a cabling plan mean.

Devices: the whole name, letter case aside; else its short form (`topology.model.ids.short_name`), where
one device alone has it and the plan does not use it for names of several domains. Ports: the name
as it is; else, where one port of the device alone fits, a looser form of it:

| in the plan | fits |
|---|---|
| `Ethernet1/1`, `Eth1/1`, `Et1/1`, `eth 1/1` | each other |
| `17`, `P17`, `1/17`, `U1/P17`, `IB1/17` | each other, on InfiniBand ports |
| `mlx5_0` | `mlx5_0/1`, or the interface on top of it, if that RDMA device has one port |
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum
from typing import Final, TypeVar

from topology.model.cabling_plan import PlannedCable
from topology.model.fabric import Fabric, FabricPort
from topology.model.facts import Medium, PortName
from topology.model.ids import IdKind, short_name

_Key = TypeVar("_Key")

_AMBIGUOUS: Final = -1
_NAME_KINDS: Final = (IdKind.NODE_NAME, IdKind.HOSTNAME)
_ETHERNET: Final = re.compile(r"(?:ethernet|eth|et)(?=\d)")
_IB_PORT: Final = re.compile(r"(?:(?:ib|u|slot)?1/)?p?0*(\d{1,4})\Z", re.ASCII)


class UnknownReason(StrEnum):
    """Why a name in a plan stands for no device."""

    UNSEEN = "nobody sees a device of this name"
    SILENT = "nobody reports about it"
    SHARED = "several devices go by this name"


class PlanPorts:
    """Numbers the ports of a fabric and those that only a plan knows."""

    def __init__(self, fabric: Fabric, cables: Iterable[PlannedCable]) -> None:
        """Index the names of a fabric, and how a plan spells its own."""
        self.names = [fabric.port_name(at) for at in range(len(fabric.ports))]
        """Of every port: as the fabric shows it, else as the plan spells it."""
        self.devices = {at: port.device for at, port in enumerate(fabric.ports)}
        """Of every port."""
        self._fabric = fabric
        self._with_ports = {port.device for port in fabric.ports}
        self._device_by_full_name: dict[str, int] = {}
        self._device_by_short_name: dict[str, int] = {}
        self._domains: dict[str, set[str]] = defaultdict(set)
        self._port_by_name: dict[tuple[int, str], int] = {}
        self._port_by_loose_name: dict[tuple[int, str], int] = {}
        self._plan_only_ports: dict[tuple[int, str], int] = {}
        self._index_devices()
        self._index_ports()
        for end in (end for cable in cables for end in cable.ends):
            whole = _normalize_name(end.device)
            domain = whole.removeprefix(short_name(whole))
            self._domains[short_name(whole)] |= {domain} if domain else set()

    def _index_devices(self) -> None:
        for at, device in enumerate(self._fabric.devices):
            listed = [found.value for found in device.ids if found.kind in _NAME_KINDS]
            names = {_normalize_name(name) for name in (device.name, device.node, *listed) if name}
            for name in names:
                _add_unique(self._device_by_full_name, name, at)
            for name in {short_name(name) for name in names}:
                _add_unique(self._device_by_short_name, name, at)

    def _index_ports(self) -> None:
        for at, port in enumerate(self._fabric.ports):
            _add_unique(self._port_by_name, (port.device, port.name), at)
            for form in {_loose_form(port.name, port), _rdma_device(port)} - {""}:
                _add_unique(self._port_by_loose_name, (port.device, form), at)

    def find_device(self, name: str) -> int | UnknownReason:
        """Return the number of a device in the fabric, or why there is none."""
        short = short_name(name)
        at = self._device_by_full_name.get(_normalize_name(name), _AMBIGUOUS)
        if at == _AMBIGUOUS and len(self._domains[short]) < 2:  # noqa: PLR2004 - one, or none
            found = self._device_by_short_name.get(short)
            if found is None:
                return UnknownReason.UNSEEN
            at = found
        if at == _AMBIGUOUS:
            return UnknownReason.SHARED
        return at if at in self._with_ports else UnknownReason.SILENT

    def find_port(self, device: int, name: str) -> int:
        """Return the number of a port; one that nobody sees gets a new one."""
        loose = [
            self._port_by_loose_name.get((device, form), _AMBIGUOUS) for form in _name_forms(name)
        ]
        found = (self._port_by_name.get((device, name), _AMBIGUOUS), *loose)
        at = next((at for at in found if at != _AMBIGUOUS), None)
        if at is not None:
            return at
        key = (device, _loose_form(name))
        if key not in self._plan_only_ports:
            self._plan_only_ports[key] = len(self.names)
            self.devices[len(self.names)] = device
            self.names.append(PortName(self._fabric.devices[device].name, name))
        return self._plan_only_ports[key]

    def is_seen(self, port: int) -> bool:
        """Whether the fabric has the port."""
        return port < len(self._fabric.ports)


def _add_unique(index: dict[_Key, int], key: _Key, at: int) -> None:
    index[key] = at if index.get(key, at) == at else _AMBIGUOUS


def _normalize_name(name: str) -> str:
    return name.strip().rstrip(".").lower()


def _name_forms(name: str) -> tuple[str, ...]:
    return name, _loose_form(name), _loose_ib_port(name)


def _rdma_device(port: FabricPort) -> str:
    """Return the RDMA device of a port, which people often write in place of it."""
    if port.rdma_device or port.medium is not Medium.INFINIBAND:
        return port.rdma_device or ""
    return port.name.rpartition("/")[0]


def _loose_form(name: str, port: FabricPort | None = None) -> str:
    """Return a name in the form in which spellings of one port are equal."""
    if port is not None and port.medium is Medium.INFINIBAND:
        return _loose_ib_port(name)
    return _ETHERNET.sub("e", re.sub(r"\s+", "", name.lower()), count=1)


def _loose_ib_port(name: str) -> str:
    """Return an InfiniBand port's number; numbers of other ports never are in this form."""
    found = _IB_PORT.match(re.sub(r"\s+", "", name.lower()))
    return f"ib {found[1]}" if found else name.lower()
