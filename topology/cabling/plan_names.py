"""Match the names in a cabling plan to the devices and ports of a fabric.

Devices are matched by the full name, ignoring case. Else they are matched by the short name
(`topology.model.ids.short_name`), if only one device has it, the plan does not use it in several
domains, and the device is not in another domain. Ports are matched by the exact name. Else they are
matched by a looser form of the name, if only one port of the device has it, and the plan does not
name that port otherwise:

| in the plan | matches |
|---|---|
| `Ethernet1/1`, `Eth1/1`, `Et1/1`, `eth 1/1` | each other |
| `HundredGigE1/0/1`, `Hu1/0/1`, `HundredGig 1/0/1` | each other |
| `17`, `P17`, `1/17`, `U1/P17`, `IB1/17` | each other, on InfiniBand ports |
| `mlx5_0` | `mlx5_0/1`, or the interface on top of it, if that RDMA device has one port |
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Final, TypeVar

from topology.model.cabling_plan import PlannedCable
from topology.model.fabric import Fabric, FabricPort
from topology.model.facts import Medium, PortName
from topology.model.ids import IdKind, full_name, may_be_one, short_name
from topology.model.port_names import (
    NameSimilarity,
    SpelledName,
    Words,
    compare_names,
    spell_port_name,
)

_Key = TypeVar("_Key")

_AMBIGUOUS: Final = -1
_NAME_KINDS: Final = (IdKind.NODE_NAME, IdKind.HOSTNAME)
_ETHERNET: Final = re.compile(r"(?:ethernet|eth|et)(?=\d)")
_IB_PORT: Final = re.compile(r"(?:(?:ib|u|slot)?1/)?p?0*(\d{1,4})\Z", re.ASCII)


class UnknownReason(StrEnum):
    """Why a name in a plan does not select a device."""

    UNSEEN = "no report shows a device of this name"
    SILENT = "no report shows its ports"
    SHARED = "several devices have this name"
    DOUBTED = "the device of this name has none of the planned cables, so the name may be wrong"
    TAKEN = "the device of this name has the cables of another one"


class PlanPorts:
    """Numbers the ports of a fabric, and the ports that only a plan names."""

    def __init__(self, fabric: Fabric, cables: Sequence[PlannedCable]) -> None:
        """Index the names of a fabric and the domains of the names in a plan."""
        self.names = [fabric.port_name(port_number) for port_number in range(len(fabric.ports))]
        """By port number: the name in the fabric, else the name in the plan."""
        self.devices = {port_number: port.device for port_number, port in enumerate(fabric.ports)}
        """By port number: the device."""
        self._fabric = fabric
        self._cables = cables
        self._with_ports = {port.device for port in fabric.ports}
        self._device_by_full_name: dict[str, int] = {}
        self._device_by_short_name: dict[str, int] = {}
        self._domains: dict[str, set[str]] = {}
        """By short name: the domains that the plan gives it; most plans give none."""
        self._port_by_name: dict[tuple[int, str], int] = {}
        self._port_by_loose_name: dict[tuple[int, str], int] = {}
        self._plan_only_ports: dict[tuple[int, str], int] = {}
        self._other_names: dict[str, int | UnknownReason] = {}
        self._index_devices()
        self._index_ports()
        for end in (end for cable in cables for end in cable.ends):
            full = full_name(end.device)
            short = short_name(full)
            if full != short:
                self._domains.setdefault(short, set()).add(full.removeprefix(short))

    @cached_property
    def _planned(self) -> set[tuple[str, str]]:
        """The ports in the plan, as the key of the device and the loose form of the name."""
        ends = (end for cable in self._cables for end in cable.ends)
        return {(self.name_key(end.device), _loose_form(end.port)) for end in ends}

    @cached_property
    def _ports_by_number(self) -> dict[tuple[int, str], list[tuple[int, SpelledName]]]:
        """By device and number in their names: Ethernet ports."""
        ports: dict[tuple[int, str], list[tuple[int, SpelledName]]] = defaultdict(list)
        for port_number, port in enumerate(self._fabric.ports):
            spelled = spell_port_name(port.name) if port.medium is Medium.ETHERNET else None
            if spelled is not None:
                ports[port.device, spelled.number].append((port_number, spelled))
        return dict(ports)

    @cached_property
    def _kinds(self) -> dict[int, set[Words]]:
        """By device: the letters in the names of its Ethernet ports."""
        kinds: dict[int, set[Words]] = defaultdict(set)
        for (device, _), found in self._ports_by_number.items():
            kinds[device].update(spelled.words for _, spelled in found)
        return kinds

    def _index_devices(self) -> None:
        for device_number in range(len(self._fabric.devices)):
            names = self._names_of(device_number)
            for name in names:
                _add_unique(self._device_by_full_name, name, device_number)
            for name in {short_name(name) for name in names}:
                _add_unique(self._device_by_short_name, name, device_number)

    def _names_of(self, device_number: int) -> set[str]:
        device = self._fabric.devices[device_number]
        id_names = [found.value for found in device.ids if found.kind in _NAME_KINDS]
        return {full_name(name) for name in (device.name, device.node, *id_names) if name}

    def _index_ports(self) -> None:
        for port_number, port in enumerate(self._fabric.ports):
            _add_unique(self._port_by_name, (port.device, port.name), port_number)
            for form in {_loose_form(port.name, port), _rdma_device(port)} - {""}:
                _add_unique(self._port_by_loose_name, (port.device, form), port_number)

    def name_key(self, name: str) -> str:
        """Return the form of a name that all spellings of one planned device share."""
        short = short_name(name)
        return short if len(self._domains.get(short, ())) < 2 else full_name(name)  # noqa: PLR2004 - one or none

    def use_name(self, name: str, device: int | UnknownReason) -> None:
        """Let a name in the plan mean this device; None: no device, although one has the name."""
        self._other_names[self.name_key(name)] = device

    def find_device(self, name: str) -> int | UnknownReason:
        """Return the number of a device in the fabric, or why there is none."""
        key = self.name_key(name)
        if key in self._other_names:
            return self._other_names[key]
        short = short_name(name)
        device_number = self._device_by_full_name.get(full_name(name), _AMBIGUOUS)
        if device_number == _AMBIGUOUS and len(self._domains.get(short, ())) < 2:  # noqa: PLR2004 - one or none
            match = self._device_by_short_name.get(short)
            if match is None or (match != _AMBIGUOUS and self._is_elsewhere(match, name)):
                return UnknownReason.UNSEEN
            device_number = match
        if device_number == _AMBIGUOUS:
            return UnknownReason.SHARED
        return device_number if device_number in self._with_ports else UnknownReason.SILENT

    def _is_elsewhere(self, device_number: int, name: str) -> bool:
        """Return whether a device has the first label of a name only in another domain."""
        return not any(may_be_one(own, name) for own in self._names_of(device_number))

    def find_seen_port(self, device: int, end: PortName) -> int | None:
        """Return the number of a port of the fabric, None if no single port matches the name.

        Args:
            device: the number of the device in the fabric.
            end: the port, and the device that has it in the plan.
        """
        name = end.port
        loose = [
            self._port_by_loose_name.get((device, form), _AMBIGUOUS) for form in _name_forms(name)
        ]
        candidates = (self._port_by_name.get((device, name), _AMBIGUOUS), *loose)
        known = (port_number for port_number in candidates if port_number != _AMBIGUOUS)
        port_number = next(known, None)
        return self._find_spelled_port(device, end) if port_number is None else port_number

    def _find_spelled_port(self, device: int, end: PortName) -> int | None:
        """Return the only port whose name abbreviates this one, or is abbreviated by it."""
        spelled = spell_port_name(end.port)
        if spelled is None:
            return None
        by_similarity: dict[NameSimilarity, list[int]] = {}
        for port_number, other in self._ports_by_number.get((device, spelled.number), ()):
            by_similarity.setdefault(compare_names(spelled, other), []).append(port_number)
        similarity = max(by_similarity, default=NameSimilarity.NONE)
        if similarity is NameSimilarity.NONE:
            return None
        matches = by_similarity[similarity]
        is_single = len(matches) == 1 and not self._is_planned(end.device, matches[0])
        return matches[0] if is_single else None

    def find_ports_of_same_number(self, port: int) -> list[int]:
        """Return the fabric's ports of the same number: one of them may be this missing port.

        If the plan gives the device both ports, neither port is in place of the other.
        """
        device, end = self.devices[port], self.names[port]
        spelled = spell_port_name(end.port)
        number = spelled.number if spelled else ""
        return [found for found, _ in self._ports_by_number.get((device, number), ())]

    def may_be_renamed(self, seen: int, planned: int, kinds: Mapping[int, set[Words]]) -> bool:
        """Return whether a seen port may be the planned port of its device in another scheme.

        A seen port whose name is a bare number may be any planned port, because its switch does not
        name its ports. Otherwise the letters must be unknown to the other side: the device has no
        seen port with letters like the planned name, and no planned port with letters like the seen
        name. So `etp1` may be `Ethernet0`.

        Args:
            seen: the port that has the cable.
            planned: the port that should have it.
            kinds: the letters in the plan's names of a device's ports, by device.
        """
        device = self.devices[seen]
        if (
            self._fabric.ports[seen].medium is not Medium.ETHERNET
            or device != self.devices[planned]
        ):
            return False
        own, wanted = (spell_port_name(self.names[port].port) for port in (seen, planned))
        if own is None or wanted is None or _is_alike(own.words, kinds[device]):
            return False
        return not own.words or not _is_alike(wanted.words, self._kinds[device])

    def find_kinds(self, ports: Iterable[int]) -> dict[int, set[Words]]:
        """Return the letters in port names, by device."""
        kinds: dict[int, set[Words]] = defaultdict(set)
        for port in ports:
            words_of_device = kinds[self.devices[port]]
            spelled = spell_port_name(self.names[port].port)
            if spelled:
                words_of_device.add(spelled.words)
        return kinds

    def _is_planned(self, device: str, port: int) -> bool:
        """Whether the plan gives this device a port with the name that the fabric gives a port."""
        return (self.name_key(device), _loose_form(self.names[port].port)) in self._planned

    def find_port(self, device: int, end: PortName) -> int:
        """Return the number of a port; a port that is not in the fabric gets a new number."""
        port_number = self.find_seen_port(device, end)
        if port_number is not None:
            return port_number
        key = (device, _loose_form(end.port))
        if key not in self._plan_only_ports:
            self._plan_only_ports[key] = len(self.names)
            self.devices[len(self.names)] = device
            self.names.append(PortName(self._fabric.devices[device].name, end.port))
        return self._plan_only_ports[key]

    def is_seen(self, port: int) -> bool:
        """Whether the fabric has the port."""
        return port < len(self._fabric.ports)


def _is_alike(words: Words, kinds: Collection[Words]) -> bool:
    """Whether the letters of a name equal or abbreviate those of another name."""
    own = SpelledName(words, "")
    return words in kinds or any(compare_names(own, SpelledName(kind, "")) for kind in kinds)


def _add_unique(index: dict[_Key, int], key: _Key, number: int) -> None:
    index[key] = number if index.get(key, number) == number else _AMBIGUOUS


def _name_forms(name: str) -> tuple[str, ...]:
    return name, _loose_form(name), _loose_ib_port(name)


def _rdma_device(port: FabricPort) -> str:
    """Return the RDMA device of a port, which plans often name instead of the port."""
    if port.rdma_device or port.medium is not Medium.INFINIBAND:
        return port.rdma_device or ""
    return port.name.rpartition("/")[0]


def _loose_form(name: str, port: FabricPort | None = None) -> str:
    """Return the form of a name that all spellings of one port share."""
    if port is not None and port.medium is Medium.INFINIBAND:
        return _loose_ib_port(name)
    return _ETHERNET.sub("e", re.sub(r"\s+", "", name.lower()), count=1)


def _loose_ib_port(name: str) -> str:
    """Return the number of an InfiniBand port, in a form that no other port name has."""
    match = _IB_PORT.match(re.sub(r"\s+", "", name.lower()))
    return f"ib {match[1]}" if match else name.lower()
