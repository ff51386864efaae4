"""Claims: what one source says about one device, and the ids by which claims are joined.

The strong ids are node names, node GUIDs, port GUIDs and usable MACs (a chassis id of subtype mac
is one); node and port GUIDs are separate name spaces.

Claims come by the hundred thousand, and with all their ports they would be a gigabyte of objects.
So those of reports and sweeps make their device anew for each who asks: ask once, drop it soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby
from typing import Protocol, runtime_checkable

from topology.model.errors import show
from topology.model.facts import Device, Finding, FindingKind, Severity
from topology.model.ids import Id, IdKind

Key = tuple[str, str]


class PreviousOwners(Protocol):
    """Who had which id in the last generation."""

    def get(self, key: Key, /) -> str | None:
        """Return the node that had an id, None where no single one had it."""
        ...


class Origin(IntEnum):
    """Who makes a claim; the lower, the more it weighs."""

    INVENTORY = 0
    """The operator's list of nodes."""
    REPORT = 1
    """A device about itself, by its agent or an SNMP walk."""
    CAPTURE = 2
    """A device about itself, by a file that people collected."""
    SWEEP = 3
    """A subnet sweep about a device."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One device as one source describes it."""

    device: Device
    origin: Origin

    @property
    def name(self) -> str:
        """What the device is called, told without making it."""
        return self.device.name


class LazyClaim(Claim):
    """A claim whose device is made for each who asks; it equals one that has this device."""

    __slots__ = ("_name",)

    _name: str

    def __init__(self, origin: Origin, name: str) -> None:
        """Take note of who claims, and how the device is called; what, a subclass tells."""
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "_name", name)

    @property
    def name(self) -> str:
        """What the device is called."""
        return self._name

    def __eq__(self, other: object) -> bool:
        """Compare with any claim."""
        if not isinstance(other, Claim):
            return NotImplemented
        return (self.origin, self.device) == (other.origin, other.device)

    def __hash__(self) -> int:
        """Return the hash of the claim that has its device."""
        return hash((self.device, self.origin))


class SweptClaim(LazyClaim):
    """One device of a sweep."""

    __slots__ = ("_at", "_devices")

    _at: int
    _devices: Sequence[Device]

    def __init__(self, devices: Sequence[Device], at: int, name: str) -> None:
        """Keep where it is, and what it is called."""
        super().__init__(Origin.SWEEP, name)
        object.__setattr__(self, "_devices", devices)
        object.__setattr__(self, "_at", at)

    @property
    def device(self) -> Device:
        """The device, as the sweep makes it."""
        return self._devices[self._at]


@runtime_checkable
class NamedDevices(Protocol):
    """Devices whose names are told without making them."""

    def names(self) -> list[str]:
        """Return the name of each."""
        ...


@dataclass(frozen=True, slots=True)
class SweptClaims:
    """All claims of one sweep at once, so that they need not be made one by one."""

    devices: Sequence[Device]

    def __iter__(self) -> Iterator[Claim]:
        """Yield each as a claim of its own."""
        devices = self.devices
        if isinstance(devices, NamedDevices):
            names = devices.names()
        else:
            names = [device.name for device in devices]
        return (SweptClaim(self.devices, at, name) for at, name in enumerate(names))


def expand_claims(claims: Iterable[Claim | SweptClaims]) -> Iterator[Claim]:
    """Yield all claims, those of sweeps one by one."""
    for claim in claims:
        yield from claim if isinstance(claim, SweptClaims) else (claim,)


_STRONG = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.NODE_NAME, IdKind.MAC})
_LLDP = frozenset({IdKind.CHASSIS_ID, IdKind.PORT_ID})


def strong_key(found: Id) -> Key | None:
    """Return the key under which an id joins devices, None for weak ids."""
    kind, value, subtype = found
    if kind in _STRONG:
        return (kind, value)
    return (IdKind.MAC, value) if subtype == "mac" and kind in _LLDP else None


def claim_keys(device: Device) -> list[Key]:
    """Return the strong keys of a device and its ports, node GUIDs first, without repeats."""
    keys: dict[Key, None] = {}
    for found in device.ids:
        key = strong_key(found)
        if key is not None:
            keys[key] = None
    for port in device.ports:
        for found in port.ids:
            if found.kind is IdKind.PORT_GUID or found.kind is IdKind.MAC:
                keys[(found.kind, found.value)] = None
            elif found.kind is IdKind.NODE_GUID:
                keys[(IdKind.NODE_GUID, found.value)] = None
    return list(keys)


def _by_name(claim: Claim) -> tuple[Origin, str]:
    return claim.origin, claim.name


def sort_claims(claims: Iterable[Claim]) -> Iterator[Claim]:
    """Yield claims in an order that their content alone decides: by origin, name, and the rest."""
    for _, alike in groupby(sorted(claims, key=_by_name), key=_by_name):
        group = list(alike)  # nearly always one; spelling it out for all would cost seconds
        yield from group if len(group) == 1 else _sort_namesakes(group)


def _sort_namesakes(claims: Iterable[Claim]) -> Iterator[Claim]:
    found = ((claim, claim.device) for claim in claims)
    rows = sorted(
        [(device.ids, len(device.ports), at, claim) for at, (claim, device) in enumerate(found)],
        key=lambda row: row[:2],
    )
    for _, alike in groupby(rows, key=lambda row: row[:2]):
        group = [row[3] for row in alike]
        yield from group if len(group) == 1 else sorted(group, key=lambda one: repr(one.device))


def duplicate_name_finding(name: str, num_devices: int) -> Finding:
    """Return the finding about devices that their name cannot tell apart."""
    kept = show(name)
    return Finding(
        kind=FindingKind.DUPLICATE_NAME,
        device=kept,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{num_devices} device(s) called {kept} cannot be told apart from each other or "
            "from a listed node by name. Give every host its own name, run the agent "
            "there, or list its GUIDs or MACs in the inventory."
        ),
    )
