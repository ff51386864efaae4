"""The rows of packed reports, straight from the texts in which ports of one shape differ.

What the rows of a shape have in common is taken once from the shape. The texts are hashed column by
column, and the rows of all claims are put in order at the end, as arrays. No device is built.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import add
from typing import Final, NamedTuple, TypeAlias

from topology.identity.claim_facts import MAX_STORED_IDS, ClaimFacts, read_facts
from topology.identity.disputed_ids import neighbor_keys
from topology.identity.heard_descriptions import Description, HeardDescriptions, describe
from topology.join.claim_rows import PortRowBuilder, ShapeRows
from topology.join.port_numbers import port_keys
from topology.model.bounded_cache import BoundedCache
from topology.model.claims import Key, claim_keys, strong_key
from topology.model.facts import Device, DeviceKind, Medium, Neighbor
from topology.model.ids import Id, IdKind, parse_node_name
from topology.reports.packed_claims import PackedClaim
from topology.reports.packed_devices import ShapedDevice, unpack_shaped
from topology.reports.port_shapes import (
    MAX_SHARED_TEXT,
    DeviceShape,
    PortShape,
    index_of,
    pick_text,
)

_MAX_SHAPES: Final = 1024
"""A report with further or longer shapes is read as a device, which costs a factor."""
_MAX_DESCRIBED: Final = 1 << 16
_MAX_ORDER_BYTES: Final = 4 << 20
_NAME_BYTES: Final = 96
"""Of a name in an order, besides its characters."""
_MARK: Final = re.compile(r"\0(\d+)\0(.*)", re.DOTALL)
_Columns: TypeAlias = Sequence[Sequence[str]]
"""By text of a shape: its values at some ports."""
_Order: TypeAlias = tuple[Sequence[int], "array[int]"]
"""Of ports: the rank of each in the order of `sort_ports`, and the numbers of their names."""


class ShapedFacts(NamedTuple):
    """What the join reads of one claim."""

    facts: ClaimFacts
    heard_keys: list[int]
    """Hashes of the keys that the claim mentions as neighbors."""


class _KeyColumns:
    """Keys whose texts are those of a shape: each is one column of hashes."""

    def __init__(self, *keys: Iterable[Key]) -> None:
        """Take lists of keys of a marked port; keys that are in several are hashed once."""
        rows = [[(str(kind), text) for kind, text in every] for every in keys]
        distinct = list(dict.fromkeys(chain.from_iterable(rows)))
        self._columns = [(kind, _MARK.fullmatch(text), text) for kind, text in distinct]
        self._places = [[distinct.index(key) for key in every] for every in rows]

    def hash(self, columns: _Columns, num_rows: int) -> list[list[Sequence[int]]]:
        """Return a column of hashes for each key of each list."""
        last: dict[tuple[str, str], tuple[Sequence[str], list[int]]] = {}
        hashes: list[Sequence[int]] = []
        for kind, found, text in self._columns:
            if found is None:
                hashes.append([hash((kind, text))] * num_rows)
                continue
            place, suffix = found.groups()
            values, known = columns[int(place)], last.get((kind, suffix))
            if known is None or known[0] != values:  # a port often has one name twice
                known = last[kind, suffix] = values, _hash_column(kind, values, suffix)
            hashes.append(known[1])
        return [[hashes[place] for place in places] for places in self._places]


def _hash_column(kind: str, values: Iterable[str], suffix: str) -> list[int]:
    if suffix:
        values = map(add, values, repeat(suffix))
    return list(map(hash, zip(repeat(kind), values)))


class _HeadPlaces:
    """Where the texts of devices of one shape have what the join reads of them."""

    def __init__(self, shape: DeviceShape) -> None:
        """Find the places in the marked device of the shape."""
        marked = shape.device
        self.name = index_of(marked.name)
        self.facts = read_facts(marked)
        self.is_identified = any(map(strong_key, marked.ids))
        few_ids = marked.ids if len(marked.ids) <= MAX_STORED_IDS else ()
        self._few_ids = [(one, index_of(one.value)) for one in few_ids]
        self.node_names = [one for one in marked.ids if one.kind is IdKind.NODE_NAME]
        self._images = _find_kind(marked, IdKind.SYSTEM_IMAGE_GUID)
        keys = [key for one in marked.ids if (key := strong_key(one))]
        self._kinds = [str(kind) for kind, _ in keys]
        self._key_places = [int(found[1]) for _, text in keys if (found := _MARK.fullmatch(text))]
        self.is_usual = len(self._key_places) == len(keys)
        """Whether no id is empty."""

    def hash_keys(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the hashes of the strong keys."""
        return tuple(
            map(hash, zip(self._kinds, map(texts.__getitem__, self._key_places), strict=True))
        )

    def ids(self, texts: Sequence[str]) -> tuple[Id, ...]:
        """Return the ids if they are few."""
        rows = self._few_ids
        return tuple([one._replace(value=pick_text(texts, place)) for one, place in rows])

    def images(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Return the hashes of the system image GUIDs."""
        return tuple([hash(pick_text(texts, place)) for place in self._images])


def _find_kind(marked: Device, kind: IdKind) -> list[int | None]:
    return [index_of(one.value) for one in marked.ids if one.kind is kind]


class _ShapeColumns:
    """The rows of all ports of one shape."""

    def __init__(self, shape: PortShape, rows: PortRowBuilder) -> None:
        """Take what they have in common from the marked port of the shape."""
        port = shape.port
        self.name = index_of(port.name)
        self.rdma = index_of(port.rdma_device)
        self.is_ethernet = port.medium is Medium.ETHERNET
        near: Neighbor | None = next(iter(port.neighbors), None)
        claimed = claim_keys(Device(DeviceKind.HOST, "", (), (port,)))
        far = port_keys(near.port_ids, near.port_name) if near else ()
        strong = [key for key in map(strong_key, near.device_ids) if key] if near else []
        mentioned = neighbor_keys(near) if near else ()
        own = port_keys(port.ids, port.name)
        self.keys = _KeyColumns(own, far, strong[:1], mentioned, claimed)
        self.near = near
        self.near_places = self._find_near(near)
        self.rows: ShapeRows = rows.add_shape(port)
        self.described: dict[tuple[str, ...], Description] = {}
        self.heard_by_switches: set[tuple[str, ...]] = set()

    @staticmethod
    def _find_near(near: Neighbor | None) -> list[int]:
        """Return the places of the name and ids of the device that is heard."""
        texts = (near.device_name, *(one.value for one in near.device_ids)) if near else ()
        return [place for text in texts if (place := index_of(text)) is not None]

    def describe(self, texts: tuple[str, ...]) -> Description:
        """Return what the entry of a port says about its device.

        Args:
            texts: those at `near_places`.
        """
        known = self.described.get(texts)
        if known is None and self.near is not None:
            left = iter(texts)
            name = next(left) if self.near.device_name else ""
            ids = [
                one._replace(value=next(left) if one.value else "") for one in self.near.device_ids
            ]
            known = describe(self.near._replace(device_ids=tuple(ids), device_name=name))
            if len(self.described) >= _MAX_DESCRIBED:
                self.described.clear()
            self.described[texts] = known
        assert known is not None  # noqa: S101 - only shapes with a neighbor are described
        return known


@dataclass(slots=True)
class ShapedClaims:
    """Reads packed claims by the shapes of their devices and ports."""

    rows: PortRowBuilder
    heard: HeardDescriptions
    _heads: dict[str, _HeadPlaces] = field(default_factory=dict)
    _ports: dict[str, _ShapeColumns] = field(default_factory=dict)
    _orders: BoundedCache[tuple[str, ...], _Order | None] = field(init=False)
    """By names of the ports; None if two have one."""

    def __post_init__(self) -> None:
        """Start without orders."""
        self._orders = BoundedCache(self._sort, weigh=_weigh_names, max_bytes=_MAX_ORDER_BYTES)

    def read(self, claim: PackedClaim, number: int) -> ShapedFacts | None:
        """Add the rows of a claim; None if its device must be read. Cost: 1 µs a port."""
        shaped = unpack_shaped(claim.packed)
        head, ports = self._find_head(shaped.head), self._find_ports(shaped)
        if head is None or ports is None or not _has_node(shaped, head, claim.node):
            return None
        names = [shaped.texts_at(index, port.name) for index, port in enumerate(ports)]
        order = self._orders[tuple(shaped.in_order(names))]
        if order is None:
            return None
        shapes = [ports[index].rows.number for index in shaped.order]
        self.rows.add_ports(number, shapes, *order)
        texts, node = shaped.head_texts, claim.node
        name, kind = pick_text(texts, head.name), head.facts.kind
        self.heard.add_speaker(name, kind, node, is_identified=head.is_identified)
        mentioned: set[int] = set()
        claimed: list[list[Sequence[int]]] = []
        for port, columns, num_ports in zip(
            ports, shaped.columns, shaped.port_counts(), strict=True
        ):
            claimed.append(self._add_ports(port, columns, num_ports, mentioned))
            if port.near is not None:
                self._add_heard(port, columns, node)
        keys = chain.from_iterable(_arrange_keys(shaped, claimed))
        facts = _read_facts(shaped, (head, ports), node, keys)
        return ShapedFacts(facts, list(mentioned))

    def _add_ports(
        self, port: _ShapeColumns, columns: _Columns, num_ports: int, mentioned: set[int]
    ) -> list[Sequence[int]]:
        """Add ports of one shape; return the columns of those keys that are the device's, too."""
        rows = port.rows
        own, far, first, heard, claimed = port.keys.hash(columns, num_ports)
        for column, hashes in zip(rows.keys, own, strict=True):
            column.extend(hashes)
        for column, hashes in zip(rows.far_keys, far, strict=True):
            column.extend(hashes)
        rows.first_keys.extend(chain.from_iterable(first))
        mentioned.update(*heard)
        if port.rdma is not None:
            rows.rdma.extend(map(self.rows.table.intern, columns[port.rdma]))
        return claimed

    def _add_heard(self, port: _ShapeColumns, columns: _Columns, node: str | None) -> None:
        """Add the devices that ports of one shape hear."""
        places = port.near_places
        texts: Iterable[tuple[str, ...]] = (
            dict.fromkeys(zip(*(columns[place] for place in places), strict=True))
            if places
            else ((),)
        )
        if node is None:
            known = port.heard_by_switches
            texts = [one for one in texts if one not in known]
            if len(known) >= _MAX_DESCRIBED:
                known.clear()
            known.update(texts)
        for one in texts:
            self.heard.add_heard(port.describe(one), node)

    def _find_head(self, shape: DeviceShape) -> _HeadPlaces | None:
        known = self._heads.get(shape.text)
        is_short = len(shape.text) <= MAX_SHARED_TEXT
        if known is None and is_short and len(self._heads) < _MAX_SHAPES:
            known = self._heads[shape.text] = _HeadPlaces(shape)
        return known

    def _find_ports(self, shaped: ShapedDevice) -> list[_ShapeColumns] | None:
        """Return the columns of each shape; None if the rows do not follow from the shapes."""
        found = []
        for shape in shaped.shapes:
            known = self._ports.get(shape.text)
            if known is None:
                is_long = len(shape.text) > MAX_SHARED_TEXT or len(shape.port.neighbors) > 1
                if is_long or len(self._ports) >= _MAX_SHAPES:
                    return None
                known = self._ports[shape.text] = _ShapeColumns(shape, self.rows)
            found.append(known)
        return found

    def _sort(self, names: tuple[str, ...]) -> _Order | None:
        if len(set(names)) < len(names):
            return None
        ranks = array("i", [0]) * len(names)
        ordered = sorted(range(len(names)), key=lambda port: (len(names[port]), names[port]))
        for rank, port in enumerate(ordered):
            ranks[port] = rank
        return ranks, array("i", map(self.rows.table.number_name, names))


def _weigh_names(names: tuple[str, ...], _: object) -> int:
    return sum(len(name) + _NAME_BYTES for name in names)


def _read_facts(
    shaped: ShapedDevice,
    places: tuple[_HeadPlaces, Sequence[_ShapeColumns]],
    node: str | None,
    port_hashes: Iterable[int],
) -> ClaimFacts:
    """Return what identity needs of a device, given the hashes of the keys of its ports."""
    head, ports = places
    texts = shaped.head_texts
    own_keys = head.hash_keys(texts)
    return head.facts._replace(
        name=pick_text(texts, head.name),
        node_name=node,
        node=None if node is None else parse_node_name(node),
        keys=tuple(dict.fromkeys(chain(own_keys, port_hashes))),
        name_keys=() if node is None else (hash((IdKind.NODE_NAME, node)),),
        id_keys=own_keys,
        label=_label(shaped, ports),
        ids=head.ids(texts),
        images=head.images(texts),
        shows_ethernet=not ports or any(port.is_ethernet for port in ports),
    )


def _has_node(shaped: ShapedDevice, head: _HeadPlaces, node: str | None) -> bool:
    """Return whether no id is empty, and the only node name of a device is that of its claim."""
    if not head.is_usual:
        return False
    if node is None or len(head.node_names) != 1:
        return node is None and not head.node_names
    (claimed,) = head.node_names
    return not claimed.subtype and pick_text(shaped.head_texts, index_of(claimed.value)) == node


def _arrange_keys(
    shaped: ShapedDevice, claimed: Sequence[Sequence[Sequence[int]]]
) -> list[tuple[int, ...]]:
    """Return the hashes of the strong keys of each port, in the order of the ports.

    Args:
        shaped: the device.
        claimed: by shape: the columns of its keys.
    """
    if not any(claimed):
        return []
    return shaped.in_order(
        [zip(*columns, strict=True) if columns else repeat(()) for columns in claimed]
    )


def _label(shaped: ShapedDevice, ports: Sequence[_ShapeColumns]) -> str | None:
    """Return the RDMA device of the first port, or its name."""
    if not shaped.order:
        return None
    index = shaped.order[0]
    texts = [column[0] for column in shaped.columns[index]]
    return pick_text(texts, ports[index].rdma) or pick_text(texts, ports[index].name)
