"""Claims: what one source says about one device, and the ids that join claims.

The strong ids are node names, node GUIDs, port GUIDs and usable MACs (a chassis id of subtype mac
is also a MAC). Node GUIDs and port GUIDs are separate name spaces.

A cluster has a hundred thousand claims; with all their ports they would be a gigabyte of objects.
Claims of reports and sweeps therefore build their device on every access: read it once, and drop
it soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, runtime_checkable

from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Severity, show_number
from topology.model.ids import Id, IdKind

Key = tuple[str, str]


class PreviousOwners(Protocol):
    """The owner of each id in the last generation."""

    def get(self, key: Key, /) -> str | None:
        """Return the node that owned an id, or None if no single node owned it."""
        ...


class Origin(IntEnum):
    """The source of a claim. A lower number has more weight."""

    INVENTORY = 0
    """The operator's list of nodes."""
    REPORT = 1
    """A device's report of itself, from its agent or an SNMP walk."""
    CAPTURE = 2
    """A device's description of itself, from a file that a person collected."""
    SWEEP = 3
    """A subnet sweep's description of a device."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One device as one source describes it."""

    device: Device
    origin: Origin

    @property
    def name(self) -> str:
        """The name of the device."""
        return self.device.name

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the device."""
        return self.device.ids


class LazyClaim(Claim):
    """A claim that builds its device on every access; it equals any claim with the same device."""

    __slots__ = ("_name",)

    _name: str

    def __init__(self, origin: Origin, name: str) -> None:
        """Store the origin and the name of the device; a subclass builds the device."""
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "_name", name)

    @property
    def name(self) -> str:
        """The name of the device, without building the device."""
        return self._name

    def __eq__(self, other: object) -> bool:
        """Compare with any claim."""
        if not isinstance(other, Claim):
            return NotImplemented
        return (self.origin, self.device) == (other.origin, other.device)

    def __hash__(self) -> int:
        """Return the hash of a plain claim with the same device."""
        return hash((self.device, self.origin))


class ListedClaim(LazyClaim):
    """One node of the inventory, which lists only its ids."""

    __slots__ = ("_ids",)

    _ids: Sequence[Id]

    def __init__(self, name: str, ids: Sequence[Id]) -> None:
        """Store the name of the node and its ids, sorted."""
        super().__init__(Origin.INVENTORY, name)
        object.__setattr__(self, "_ids", ids)

    @property
    def device(self) -> Device:
        """The node as a host."""
        return Device(DeviceKind.HOST, self._name, self.ids)

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the node, sorted."""
        return tuple(self._ids)


class SweptClaim(LazyClaim):
    """One device of a sweep."""

    __slots__ = ("_devices", "_index")

    _index: int
    _devices: NamedDevices

    def __init__(self, devices: NamedDevices, index: int, name: str) -> None:
        """Keep the sweep's devices and this device's index; the device is built only when read."""
        set_field = object.__setattr__  # without `super`: a fabric has a hundred thousand
        set_field(self, "origin", Origin.SWEEP)
        set_field(self, "_name", name)
        set_field(self, "_devices", devices)
        set_field(self, "_index", index)

    @property
    def device(self) -> Device:
        """The device, built by the sweep on every access."""
        return self._devices[self._index]

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the device, without building the device."""
        return self._devices.ids_at(self._index)


@runtime_checkable
class NamedDevices(Protocol):
    """A sequence of devices that knows their names and ids without building them."""

    def __getitem__(self, index: int, /) -> Device:
        """Return one device, built on every access."""
        ...

    def names(self) -> list[str]:
        """Return the name of each device, in order."""
        ...

    def ids_at(self, index: int, /) -> tuple[Id, ...]:
        """Return the ids of one device."""
        ...


@dataclass(frozen=True, slots=True)
class SweptClaims:
    """All claims of one sweep as one value, so that single claims need not be built."""

    devices: Sequence[Device]

    def __iter__(self) -> Iterator[Claim]:
        """Yield one claim per device."""
        devices = self.devices
        if isinstance(devices, NamedDevices):
            names = enumerate(devices.names())
            return (SweptClaim(devices, index, name) for index, name in names)
        return (Claim(device, Origin.SWEEP) for device in devices)


def expand_claims(claims: Iterable[Claim | SweptClaims]) -> Iterator[Claim]:
    """Yield all claims; a sweep yields one claim per device."""
    for claim in claims:
        yield from claim if isinstance(claim, SweptClaims) else (claim,)


STRONG_KINDS = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.NODE_NAME, IdKind.MAC})
"""The kinds whose ids join devices; of LLDP ids, those of subtype mac do, too."""
_LLDP = frozenset({IdKind.CHASSIS_ID, IdKind.PORT_ID})


def strong_key(identifier: Id) -> Key | None:
    """Return the key by which an id joins devices, or None for a weak id."""
    kind, value, subtype = identifier
    if kind in STRONG_KINDS:
        return (kind, value)
    return (IdKind.MAC, value) if subtype == "mac" and kind in _LLDP else None


def claim_keys(device: Device) -> list[Key]:
    """Return the strong keys of a device, then those of its ports, without repeats."""
    keys: dict[Key, None] = {}
    for identifier in device.ids:
        key = strong_key(identifier)
        if key is not None:
            keys[key] = None
    for port in device.ports:
        for identifier in port.ids:
            if identifier.kind is IdKind.PORT_GUID or identifier.kind is IdKind.MAC:
                keys[(identifier.kind, identifier.value)] = None
            elif identifier.kind is IdKind.NODE_GUID:
                keys[(IdKind.NODE_GUID, identifier.value)] = None
    return list(keys)


def unclear_switch_finding(name: str, num_ids: int) -> Finding:
    """Return the finding about a name under which each of several ids is heard on one port."""
    shown_name = show(name)
    return Finding(
        kind=FindingKind.DUPLICATE_NAME,
        device=shown_name,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{num_ids} chassis ids are heard under the name {shown_name}, each on one port: "
            "either one switch sends another id on each port, or several switches have one name. "
            "They count as several. Walk the switch by SNMP, or give every switch its own name."
        ),
    )


def duplicate_name_finding(name: str, num_devices: int) -> Finding:
    """Return the finding about devices that share a name and have no other id to separate them."""
    shown_name = show(name)
    return Finding(
        kind=FindingKind.DUPLICATE_NAME,
        device=shown_name,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{shown_name} is the name of {show_number(num_devices, 'device')}, so the name alone "
            "does not identify them or match them to a listed node. Give every host its own name, "
            "run the agent there, or list its GUIDs or MACs in the inventory."
        ),
    )
