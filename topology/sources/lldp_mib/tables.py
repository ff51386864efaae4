"""The MIB columns that describe a switch and its neighbors, and the rows of neighbors in them.

Three tables have neighbors: lldpRemTable, its successor lldpV2RemTable and Cisco's CDP cache. This
module turns each into `RemoteRow`s; `ids` decodes their ids. A value may be anything: if it does
not have the type of its column, it counts as absent.

Source: IEEE 802.1AB 11.5 (LLDP-MIB), IEEE 802.1AB-2009 (LLDP-V2-MIB), CISCO-CDP-MIB, RFC 2863,
RFC 4188 (BRIDGE-MIB), and walks of a hundred devices for the shapes of indices in practice.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

Oid = tuple[int, ...]
Value = bytes | int
WalkRow = tuple[Oid, Value]

MAX_SUBID: Final = 0xFFFFFFFF
MAX_ADDRESSES: Final = 32  # of one neighbor; a report holds 64 ids

SYSTEM: Final[Oid] = (1, 3, 6, 1, 2, 1, 1)
IF_ENTRY: Final[Oid] = (1, 3, 6, 1, 2, 1, 2, 2, 1)
IFX_ENTRY: Final[Oid] = (1, 3, 6, 1, 2, 1, 31, 1, 1, 1)
BRIDGE_PORT_IF_INDEX: Final[Oid] = (1, 3, 6, 1, 2, 1, 17, 1, 4, 1, 2)
LLDP: Final[Oid] = (1, 0, 8802, 1, 1, 2, 1)
LLDP_V2: Final[Oid] = (1, 3, 111, 2, 802, 1, 1, 13, 1)
CDP_CACHE: Final[Oid] = (1, 3, 6, 1, 4, 1, 9, 9, 23, 1, 2, 1, 1)

SYS_DESCR: Final = (*SYSTEM, 1)
SYS_UP_TIME: Final = (*SYSTEM, 3)
SYS_NAME: Final = (*SYSTEM, 5)
IF_DESCR: Final = (*IF_ENTRY, 2)
IF_TYPE: Final = (*IF_ENTRY, 3)
IF_PHYS_ADDRESS: Final = (*IF_ENTRY, 6)
IF_OPER_STATUS: Final = (*IF_ENTRY, 8)
IF_NAME: Final = (*IFX_ENTRY, 1)
IF_HIGH_SPEED: Final = (*IFX_ENTRY, 15)
IF_ALIAS: Final = (*IFX_ENTRY, 18)
REMOTE_STATS: Final = tuple((*LLDP, 2, at) for at in range(1, 6))
"""The time of the last change of any neighbor (0: never), then the numbers of neighbors that were
inserted, deleted, dropped and aged out."""


class ColumnSpan(NamedTuple):
    """Columns to walk in one pass: a subtree, or consecutive columns."""

    first: Oid
    last: Oid
    """The last column, included; has the length of `first`."""
    is_any_column: bool = False
    """Whether any one column with rows is enough, because the values are in the index."""
    num_rows: int | None = None
    """The maximum number of rows, None if unknown."""

    def contains(self, oid: Oid) -> bool:
        """Return whether an OID is in one of the columns."""
        return self.first <= oid[: len(self.first)] <= self.last


def _column_span(column: Oid) -> ColumnSpan:
    return ColumnSpan(column, column)


BRIDGE_SPAN: Final = _column_span(BRIDGE_PORT_IF_INDEX)
"""The column to walk if neighbors are on local ports that are in no port table."""
SYSTEM_SPAN: Final = ColumnSpan(SYS_DESCR, SYS_NAME, num_rows=5)
STATS_SPAN: Final = ColumnSpan(REMOTE_STATS[0], REMOTE_STATS[-1], num_rows=5)
BASE_SPANS: Final[tuple[ColumnSpan, ...]] = (
    ColumnSpan(IF_DESCR, IF_TYPE),
    *map(_column_span, (IF_PHYS_ADDRESS, IF_OPER_STATUS, IF_NAME, IF_HIGH_SPEED, IF_ALIAS)),
    ColumnSpan((*LLDP, 3, 1), (*LLDP, 3, 8)),
    ColumnSpan((*LLDP, 4, 1, 1, 4), (*LLDP, 4, 1, 1, 9)),
    _column_span((*LLDP, 4, 1, 1, 12)),
    ColumnSpan((*LLDP, 4, 2, 1, 3), (*LLDP, 4, 2, 1, 5), is_any_column=True),
    ColumnSpan((*CDP_CACHE, 3), (*CDP_CACHE, 7)),
)
"""Columns to walk on every switch, in addition to the system."""
V2_SPANS: Final[tuple[ColumnSpan, ...]] = (
    ColumnSpan((*LLDP_V2, 3, 1), (*LLDP_V2, 3, 8)),
    ColumnSpan((*LLDP_V2, 4, 1, 1, 5), (*LLDP_V2, 4, 1, 1, 10)),
    _column_span((*LLDP_V2, 4, 1, 1, 13)),
    ColumnSpan((*LLDP_V2, 4, 2, 1, 3), (*LLDP_V2, 4, 2, 1, 5), is_any_column=True),
)
"""Columns to walk if lldpRemTable is empty."""


class _SystemColumn(IntEnum):
    """Columns of the local system, below the base of LLDP-MIB or LLDP-V2-MIB."""

    CHASSIS_SUBTYPE = 1
    CHASSIS = 2
    NAME = 3


_LOCAL_PORT: Final = (3, 7, 1)
_LOCAL_ADDRESS: Final = (3, 8, 1)
_REMOTE: Final = (4, 1, 1)
_REMOTE_ADDRESS: Final = (4, 2, 1)
_V1_FIRST: Final = 4  # lldpRemChassisIdSubtype; the others follow in order
_V2_FIRST: Final = 5
_NUM_REMOTE: Final = 6  # chassis subtype and id, port subtype and id, description, name
_CAPABILITIES: Final = 8  # lldpRemSysCapEnabled, counted from the first of these columns
_CDP_TYPE, _CDP_ADDRESS, _CDP_DEVICE, _CDP_PORT = 3, 4, 6, 7
_CDP_IP: Final = 1
_CDP_INDEX: Final = 2  # ifIndex.deviceIndex
_LOCAL: Final = 7  # subtype of a locally assigned id, for both chassis and port
_IFNAME: Final = 5  # as a port id
_ADDRESS_BYTES: Final = {1: 4, 2: 16}


def _columns() -> frozenset[Oid]:
    columns = {SYS_DESCR, SYS_NAME, IF_DESCR, IF_TYPE, IF_PHYS_ADDRESS, IF_OPER_STATUS}
    columns |= {IF_NAME, IF_HIGH_SPEED, IF_ALIAS, BRIDGE_PORT_IF_INDEX}
    for base, first in ((LLDP, _V1_FIRST), (LLDP_V2, _V2_FIRST)):
        columns |= {(*base, 3, system_column) for system_column in _SystemColumn}
        columns |= {(*base, *_LOCAL_PORT, column) for column in (2, 3, 4)}
        columns |= {
            (*base, *_REMOTE, first + column_number)
            for column_number in (*range(_NUM_REMOTE), _CAPABILITIES)
        }
        columns |= {(*base, *_LOCAL_ADDRESS, column) for column in (3, 4, 5)}
        columns |= {(*base, *_REMOTE_ADDRESS, column) for column in (3, 4, 5)}
    columns |= {
        (*CDP_CACHE, column_number)
        for column_number in (_CDP_TYPE, _CDP_ADDRESS, _CDP_DEVICE, _CDP_PORT)
    }
    return frozenset(columns)


_COLUMNS: Final = _columns()
_LENGTHS: Final = tuple(sorted({len(column) for column in _COLUMNS}))


class RawId(NamedTuple):
    """A chassis or port id, as in a table."""

    subtype: int = 0
    raw: bytes = b""


class LocalPort(NamedTuple):
    """A row of lldpLocPortTable."""

    number: int
    """lldpLocPortNum, or the ifIndex in lldpV2LocPortTable."""
    sent: RawId
    descr: bytes


class RemoteRow(NamedTuple):
    """One neighbor, as in a table."""

    number: int
    """Number of the local port: lldpLocPortNum, or ifIndex if `is_ifindex`."""
    is_ifindex: bool
    chassis: RawId
    port: RawId
    descr: bytes
    name: bytes
    addresses: tuple[str, ...] = ()
    capabilities: bytes = b""
    """BITS: the first bit is the highest of the first octet."""
    is_cdp: bool = False


@dataclass(slots=True)
class WalkColumns:
    """The known columns of one walk: cells by index."""

    columns: dict[Oid, dict[Oid, Value]] = field(default_factory=dict)

    def indices(self, *columns: Oid) -> list[Oid]:
        """Return the indices in any of the columns, sorted."""
        return sorted({index for column in columns for index in self.columns.get(column, ())})

    def raw(self, column: Oid, index: Oid) -> bytes:
        """Return the octets of a cell; empty if it is absent or a number."""
        value = self.columns.get(column, {}).get(index)
        return value if isinstance(value, bytes) else b""

    def number(self, column: Oid, index: Oid) -> int:
        """Return the number of a cell; 0 if it is absent or not an unsigned 32-bit number."""
        value = self.columns.get(column, {}).get(index)
        return value if isinstance(value, int) and 0 <= value <= MAX_SUBID else 0


def collect_columns(rows: Iterable[WalkRow]) -> WalkColumns:
    """Return the known columns; the last value of a repeated cell counts. O(rows)."""
    walk = WalkColumns()
    for oid, value in rows:
        for length in _LENGTHS:
            column, index = oid[:length], oid[length:]
            if column in _COLUMNS and all(0 <= part <= MAX_SUBID for part in index):
                walk.columns.setdefault(column, {})[index] = value
                break
    return walk


def local_chassis(walk: WalkColumns) -> tuple[RawId, bytes]:
    """Return the device's own chassis id and system name, from the first MIB that has an id."""
    for base in (LLDP, LLDP_V2):
        raw = walk.raw((*base, 3, _SystemColumn.CHASSIS), (0,))
        if raw:
            subtype = walk.number((*base, 3, _SystemColumn.CHASSIS_SUBTYPE), (0,))
            return RawId(subtype, raw), walk.raw((*base, 3, _SystemColumn.NAME), (0,))
    return RawId(), walk.raw((*LLDP, 3, _SystemColumn.NAME), (0,))


def local_addresses(walk: WalkColumns) -> list[str]:
    """Return the device's own management addresses, which are in the index."""
    columns = [
        (*base, *_LOCAL_ADDRESS, column_number)
        for base in (LLDP, LLDP_V2)
        for column_number in (3, 4, 5)
    ]
    addresses = (_address(index) for index in walk.indices(*columns))
    return [address for address in addresses if address][:MAX_ADDRESSES]


def local_ports(walk: WalkColumns, base: Oid) -> dict[int, LocalPort]:
    """Return the rows of a lldpLocPortTable by port number."""
    table = (*base, *_LOCAL_PORT)
    columns = [(*table, column_number) for column_number in (2, 3, 4)]
    return {
        index[0]: LocalPort(
            index[0],
            RawId(walk.number((*table, 2), index), walk.raw((*table, 3), index)),
            walk.raw((*table, 4), index),
        )
        for index in walk.indices(*columns)
        if len(index) == 1
    }


def bridge_ports(walk: WalkColumns) -> dict[int, int]:
    """Return the ifIndex of each bridge port: dot1dBasePortIfIndex by dot1dBasePort."""
    return {
        index[0]: walk.number(BRIDGE_PORT_IF_INDEX, index)
        for index in walk.indices(BRIDGE_PORT_IF_INDEX)
        if len(index) == 1
    }


def is_unnamed(number: int, ports: Mapping[int, LocalPort]) -> bool:
    """Return whether no row of lldpLocPortTable gives a port a name: its id may be its number."""
    return number not in ports or ports[number].sent.raw == str(number).encode()


def remote_rows(walk: WalkColumns) -> tuple[list[RemoteRow], list[str]]:
    """Return the neighbors in LLDP-MIB, or else in LLDP-V2-MIB, and the problems.

    A row with several time marks counts once, with the highest: some switches keep superseded
    rows. Skips rows whose index does not identify the local port.
    """
    for base in (LLDP, LLDP_V2):
        shapes: Counter[int] = Counter()
        rows = list(_lldp_rows(walk, base, shapes))
        if rows or shapes:
            problems = [
                f"{count} neighbor rows have an index of {shape} numbers, which names no local port"
                for shape, count in sorted(shapes.items())
            ]
            return rows, problems
    return [], []


def _lldp_rows(walk: WalkColumns, base: Oid, shapes: Counter[int]) -> Iterator[RemoteRow]:
    first = _V1_FIRST if base == LLDP else _V2_FIRST
    columns = [(*base, *_REMOTE, first + offset) for offset in range(_NUM_REMOTE)]
    newest: dict[Oid, Oid] = {}
    for index in walk.indices(*columns):  # sorted: the highest time mark of a key is last
        key = _key(index, base)
        if key is None:
            shapes[len(index)] += 1
        else:
            newest[key] = index
    addresses = _remote_addresses(walk, base)
    for key, index in sorted(newest.items()):
        yield RemoteRow(
            number=key[0],
            is_ifindex=base == LLDP_V2,
            chassis=RawId(walk.number(columns[0], index), walk.raw(columns[1], index)),
            port=RawId(walk.number(columns[2], index), walk.raw(columns[3], index)),
            descr=walk.raw(columns[4], index),
            name=walk.raw(columns[5], index),
            addresses=tuple(addresses.get(index, ())),
            capabilities=walk.raw((*base, *_REMOTE, first + _CAPABILITIES), index),
        )


def _key(index: Oid, base: Oid) -> Oid | None:
    """Return (local port, …, row) from the index of a neighbor; None for an unknown shape.

    TP-Link omits the time mark. RouterOS sends the row number only.
    """
    if base == LLDP_V2:
        return index[1:] if len(index) == 4 else None  # noqa: PLR2004 - mark, port, MAC's row, row
    match index:
        case (_, port, row) | (port, row):
            return (port, row)
        case _:
            return None


def _remote_addresses(walk: WalkColumns, base: Oid) -> Mapping[Oid, list[str]]:
    """Return management addresses by the index of the neighbor's row."""
    length = 3 if base == LLDP else 4
    addresses: dict[Oid, list[str]] = defaultdict(list)
    for index in walk.indices(
        *((*base, *_REMOTE_ADDRESS, column_number) for column_number in (3, 4, 5))
    ):
        address = _address(index[length:])
        if address and len(addresses[index[:length]]) < MAX_ADDRESSES:
            addresses[index[:length]].append(address)
    return addresses


def _address(index: Oid) -> str | None:
    """Return the IP address in an index of family, length and bytes; None for other families."""
    if len(index) < 2 or _ADDRESS_BYTES.get(index[0]) != index[1] or len(index) != 2 + index[1]:  # noqa: PLR2004
        return None
    octets = index[2:]
    return str(ipaddress.ip_address(bytes(octets))) if max(octets) < 256 else None  # noqa: PLR2004


def cdp_rows(walk: WalkColumns) -> Iterator[RemoteRow]:
    """Yield the neighbors in the CDP cache; the device id becomes a local chassis id."""
    columns = [(*CDP_CACHE, at) for at in (_CDP_DEVICE, _CDP_PORT)]
    for index in walk.indices(*columns):
        if len(index) != _CDP_INDEX:
            continue
        device = walk.raw(columns[0], index)
        port = walk.raw(columns[1], index)
        address = walk.raw((*CDP_CACHE, _CDP_ADDRESS), index)
        is_ip = walk.number((*CDP_CACHE, _CDP_TYPE), index) == _CDP_IP and len(address) == 4  # noqa: PLR2004
        yield RemoteRow(
            number=index[0],
            is_ifindex=True,
            chassis=RawId(_LOCAL, device),
            port=RawId(_IFNAME, port),
            descr=port,
            name=device.partition(b"(")[0],  # NX-OS: NAME(SERIAL)
            addresses=(str(ipaddress.IPv4Address(address)),) if is_ip else (),
            is_cdp=True,
        )
