"""The facts of all claims that identity needs, read once from each claim.

A claim builds its device on every access, so each device is read once and only numbers and short
texts stay. Code that decides about a contested id reads the few claims that mention it again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topology.model.claims import STRONG_KINDS, Claim, Key, claim_keys, strong_key
from topology.model.facts import Device, DeviceKind, Medium
from topology.model.ids import Id, IdKind, parse_node_name

MAX_STORED_IDS: Final = 6
"""Ids stored per device: a switch has two or three, a host with eight HCAs has thirty-four."""


_GUIDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID})
_LLDP_IDS: Final = frozenset({IdKind.CHASSIS_ID, IdKind.PORT_ID})
_SPREAD: Final = 0x1E3779B97F4A7C15
"""Spreads small numbers over 64 bits."""


class ClaimFacts(NamedTuple):
    """What identity needs of one claim; ids as hashes of their keys."""

    kind: DeviceKind
    name: str
    node_name: str | None
    """The first node name among the ids, as claimed."""
    node: str | None
    """The first usable node name."""
    keys: tuple[int, ...]
    """Hashes of the strong keys, in the order of `claim_keys`."""
    name_keys: tuple[int, ...]
    """The keys of node names."""
    id_keys: tuple[int, ...]
    """The keys of the device's own ids, without the ids of its ports."""
    label: str | None
    """The RDMA device of the first port, or the port's name; None without ports."""
    ids: tuple[Id, ...]
    """The ids of the device; empty if there are more than MAX_STORED_IDS."""
    num_ids: int
    images: tuple[int, ...] = ()
    """Hashes of the system image GUIDs."""
    has_guid: bool = True
    """Whether the device's own ids contain a node GUID or a port GUID."""
    has_chassis_id: bool = False
    shows_ethernet: bool = False
    """Whether a report with these ports would show Ethernet cables; see `shows_ethernet`."""

    @property
    def has_label(self) -> bool:
        """Whether the description of an HCA has an RDMA name; otherwise ports are named by GUID."""
        return self.label is not None and "/" not in self.label

    @property
    def has_hardware_id(self) -> bool:
        """Whether the device has a strong id other than a node name."""
        return len(self.id_keys) > len(self.name_keys)


def read_facts(device: Device) -> ClaimFacts:
    """Return the facts of a claim's device. Cost: O(ids)."""
    kinds = {found[0] for found in device.ids}
    id_keys: list[Key]
    if _LLDP_IDS.isdisjoint(kinds):
        id_keys = [(found[0], found[1]) for found in device.ids if found[0] in STRONG_KINDS]
    else:
        id_keys = [key for found in device.ids if (key := strong_key(found)) is not None]
    id_hashes = tuple(map(hash, id_keys))
    keys = map(hash, claim_keys(device)) if device.ports else dict.fromkeys(id_hashes)
    names = _values(device, IdKind.NODE_NAME) if IdKind.NODE_NAME in kinds else []
    has_image = IdKind.SYSTEM_IMAGE_GUID in kinds
    images = _values(device, IdKind.SYSTEM_IMAGE_GUID) if has_image else []
    first_port = device.ports[0] if device.ports else None
    return ClaimFacts(
        kind=device.kind,
        name=device.name,
        node_name=next(iter(names), None),
        keys=tuple(keys),
        name_keys=tuple(hash((IdKind.NODE_NAME, name)) for name in names),
        id_keys=id_hashes,
        label=None if first_port is None else first_port.rdma_device or first_port.name,
        ids=device.ids if len(device.ids) <= MAX_STORED_IDS else (),
        num_ids=len(device.ids),
        images=tuple(map(hash, images)),
        has_guid=not _GUIDS.isdisjoint(kinds),
        has_chassis_id=IdKind.CHASSIS_ID in kinds,
        shows_ethernet=shows_ethernet(device),
        node=next(filter(None, map(parse_node_name, names)), None),
    )


def _values(device: Device, kind: IdKind) -> list[str]:
    return [found.value for found in device.ids if found.kind is kind]


def shows_ethernet(device: Device) -> bool:
    """Return whether a report about the device would show its Ethernet cables.

    A report that lists ports and none of Ethernet does not show the cables of its NICs.
    """
    return not device.ports or any(port.medium is Medium.ETHERNET for port in device.ports)


def node_of(device: Device) -> str | None:
    """Return the first node name among the ids of a device."""
    names = (found.value for found in device.ids if found.kind is IdKind.NODE_NAME)
    return next(names, None)


NO_SPEAKER: Final = -1


class HashRows(NamedTuple):
    """Ids as the hashes of their keys, each with the number of the speaker that mentions it."""

    hashes: NDArray[np.int64]
    speakers: NDArray[np.signedinteger[Any]]

    def codes(self) -> NDArray[np.int64]:
        """Return one number for each row, made of the hash and the speaker."""
        mixed: NDArray[np.int64] = self.hashes ^ (self.speakers.astype(np.int64) * _SPREAD)
        return mixed

    def where(self, chosen: NDArray[Any]) -> HashRows:
        """Return the chosen rows."""
        return HashRows(self.hashes[chosen], self.speakers[chosen])

    def of(self, speakers: NDArray[np.int64]) -> HashRows:
        """Return the rows with renumbered speakers, without the rows of NO_SPEAKER."""
        rows = HashRows(self.hashes, speakers[self.speakers])
        return rows.where(rows.speakers != NO_SPEAKER)

    def are_among(self, hashes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return one flag per row: whether its id is one of these; faster than `np.isin`."""
        if not len(hashes):
            return np.zeros(len(self.hashes), np.bool_)
        ordered = np.sort(hashes)
        places = np.minimum(np.searchsorted(ordered, self.hashes), len(ordered) - 1)
        found: NDArray[np.bool_] = ordered[places] == self.hashes
        return found

    def with_rows(self, other: HashRows) -> HashRows:
        """Return the rows of both."""
        if not len(other.hashes):
            return self
        return HashRows(*map(np.concatenate, zip(self, other, strict=True)))

    def find_repeated(self) -> NDArray[np.int64]:
        """Return the ids that two or more speakers mention."""
        order = np.argsort(self.hashes)
        hashes, speakers = self.hashes[order], self.speakers[order]
        # Among the rows of an id with two speakers, two neighboring rows have different ones.
        is_shared = (hashes[1:] == hashes[:-1]) & (speakers[1:] != speakers[:-1])
        repeated: NDArray[np.int64] = hashes[1:][is_shared]
        return repeated

    def find_common(self, other: HashRows) -> NDArray[np.int64]:
        """Return the ids that one speaker mentions in both."""
        coded = self._replace(hashes=self.codes())
        common: NDArray[np.int64] = self.hashes[coded.are_among(other.codes())]
        return common


@dataclass(slots=True)
class ClaimTable:
    """All claims of a fabric sorted by origin, name, ids and other content, with their facts."""

    claims: list[Claim] = field(default_factory=list)
    facts: list[ClaimFacts] = field(default_factory=list)
    """One entry per claim."""
    heard: array[int] = field(default_factory=lambda: array("q"))
    """Hashes of the keys that claims of other origins than sweeps mention as neighbors."""
    heard_by: array[int] = field(default_factory=lambda: array("i"))
    """The claim of each entry, in the order of `heard`."""

    def __len__(self) -> int:
        """Return the number of claims."""
        return len(self.claims)

    def column(self, hashes: Callable[[ClaimFacts], Sequence[int]]) -> HashRows:
        """Return one kind of hashes of all claims, a row per claim and hash, in claim order."""
        rows = list(map(hashes, self.facts))
        sizes = np.fromiter(map(len, rows), np.intp, len(rows))
        flat = np.fromiter(chain.from_iterable(rows), np.int64, int(sizes.sum()))
        return HashRows(flat, np.repeat(np.arange(len(rows)), sizes))

    def origins(self) -> NDArray[np.uint8]:
        """Return the origin of each claim."""
        return np.array([claim.origin for claim in self.claims], np.uint8)

    def add_heard(self, number: int, hashes: Sequence[int]) -> None:
        """Add the hashes of the keys that a claim mentions as neighbors."""
        self.heard.extend(hashes)
        self.heard_by.extend([number] * len(hashes))

    def forget_heard(self, numbers: Collection[int]) -> None:
        """Remove the hashes of the keys that claims mention as neighbors."""
        heard, heard_by = np.array(self.heard, np.int64), np.array(self.heard_by, np.int32)
        is_kept = ~np.isin(heard_by, list(numbers))
        self.heard = array("q", heard[is_kept].tobytes())
        self.heard_by = array("i", heard_by[is_kept].tobytes())

    def heard_rows(self) -> HashRows:
        """Return the keys that claims mention as neighbors."""
        return HashRows(np.array(self.heard, np.int64), np.array(self.heard_by, np.int64))

    def find_mentions(self, hashes: Collection[int]) -> Sequence[int]:
        """Return the claims that have or mention one of the keys, ascending."""
        wanted = frozenset(hashes)
        found = {
            number for number, facts in enumerate(self.facts) if not wanted.isdisjoint(facts.keys)
        }
        heard: NDArray[np.int64] = np.frombuffer(self.heard, np.int64)
        wanted_column = np.fromiter(wanted, np.int64, len(wanted))
        is_wanted = np.isin(heard, wanted_column)
        found.update(np.frombuffer(self.heard_by, np.int32)[is_wanted].tolist())
        return sorted(found)
