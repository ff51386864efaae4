"""Simulated switches: one process that answers GETBULK on a UDP port per switch.

Answers are put together from cells encoded beforehand, so that the benchmark times the walker and
not these agents.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Final, NamedTuple, cast

from topology.sources.lldp_mib.tables import (
    IF_ALIAS,
    IF_DESCR,
    IF_HIGH_SPEED,
    IF_NAME,
    IF_OPER_STATUS,
    IF_PHYS_ADDRESS,
    IF_TYPE,
    LLDP,
    REMOTE_STATS,
    SYS_DESCR,
    SYS_NAME,
    SYS_UP_TIME,
    Oid,
    Value,
    WalkRow,
)

COMMUNITY: Final = "cables"
START_S: Final = 60.0
_MAX_DATAGRAM: Final = 1472  # what one Ethernet frame holds; an answer ends there, as agents' do
_INTEGER, _OCTETS, _OID, _SEQUENCE, _RESPONSE, _END_OF_VIEW = 0x02, 0x04, 0x06, 0x30, 0xA2, 0x82
_BITS_OF_CAPABILITIES: Final = b"\x28\x00"


def switch_tables(number: int, num_ports: int) -> list[WalkRow]:
    """Return the rows of a switch; its port P receives from port P of switch `number` + P."""
    rows: list[WalkRow] = [
        ((*SYS_DESCR, 0), b"A simulated switch, version 1.0"),
        ((*SYS_UP_TIME, 0), 600_000),
        ((*SYS_NAME, 0), f"switch-{number}".encode()),
        *(((*column, 0), num_ports) for column in REMOTE_STATS),
        ((*LLDP, 3, 1, 0), 4),
        ((*LLDP, 3, 2, 0), _mac(number, 0)),
        ((*LLDP, 3, 3, 0), f"switch-{number}".encode()),
    ]
    for port in range(1, num_ports + 1):
        rows += _port_rows(number, port)
        rows += _neighbor_rows(number + port, port)
    return sorted(rows, key=lambda row: row[0])


def _mac(switch: int, port: int) -> bytes:
    return bytes((0x44, 0x38, 0x39, switch >> 8, switch & 0xFF, port))


def _port_rows(number: int, port: int) -> Iterator[WalkRow]:
    name = f"swp{port}".encode()
    yield (*IF_DESCR, port), name
    yield (*IF_TYPE, port), 6
    yield (*IF_PHYS_ADDRESS, port), _mac(number, port)
    yield (*IF_OPER_STATUS, port), 1
    yield (*IF_NAME, port), name
    yield (*IF_HIGH_SPEED, port), 100_000
    yield (*IF_ALIAS, port), b""
    for column, value in ((2, 5), (3, name), (4, name)):
        yield (*LLDP, 3, 7, 1, column, port), value


def _neighbor_rows(peer: int, port: int) -> Iterator[WalkRow]:
    """Yield all columns of a neighbor, those too that no walker needs."""
    name, descr = f"swp{port}".encode(), b"A simulated switch, version 1.0"
    ids: tuple[Value, ...] = (4, _mac(peer, 0), 5, name)
    texts: tuple[Value, ...] = (name, f"switch-{peer}".encode(), descr)
    cells = (*ids, *texts, _BITS_OF_CAPABILITIES, _BITS_OF_CAPABILITIES)
    for column, value in enumerate(cells, 4):
        yield (*LLDP, 4, 1, 1, column, 0, port, 1), value
    address = (1, 4, 10, 0, peer >> 8, peer & 0xFF)
    for column, value in ((3, 2), (4, 1001), (5, b"")):
        yield (*LLDP, 4, 2, 1, column, 0, port, 1, *address), value


class Asked(NamedTuple):
    """A GETBULK request."""

    head: bytes
    """Version and community as they came, which an answer repeats."""
    request_id: bytes
    max_repetitions: int
    oids: tuple[Oid, ...]


class SwitchAgent(asyncio.DatagramProtocol):
    """One switch: answers from its table."""

    def __init__(self, rows: Iterable[WalkRow]) -> None:
        """Encode every row."""
        ordered = sorted(rows, key=lambda row: row[0])
        self._oids = [oid for oid, _ in ordered]
        self._cells = [
            encode(_SEQUENCE, encode_oid(oid) + encode_value(value)) for oid, value in ordered
        ]
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way out."""
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str | int, ...]) -> None:
        """Answer a request."""
        assert self._transport is not None
        self._transport.sendto(self.answer(data), addr)

    def answer(self, datagram: bytes) -> bytes:
        """Return the answer to a GETBULK of any number of columns."""
        asked = parse_request(datagram)
        cells = b"".join(self._rows_after(asked))
        pdu = asked.request_id + b"\x02\x01\x00\x02\x01\x00" + encode(_SEQUENCE, cells)
        return encode(_SEQUENCE, asked.head + encode(_RESPONSE, pdu))

    def _rows_after(self, asked: Asked) -> Iterator[bytes]:
        """Yield cells, row by row over all columns asked for, until a datagram is full."""
        starts = [bisect_right(self._oids, oid) for oid in asked.oids]
        left = _MAX_DATAGRAM - 100
        for step in range(asked.max_repetitions):
            for start in starts:
                at = start + step
                cell = self._cells[at] if at < len(self._cells) else self._end()
                left -= len(cell)
                if left < 0:
                    return
                yield cell

    def _end(self) -> bytes:
        return encode(_SEQUENCE, encode_oid(self._oids[-1]) + bytes((_END_OF_VIEW, 0)))


def parse_request(datagram: bytes) -> Asked:
    """Return what a well-formed GETBULK of SNMP v2c asks."""
    _, message, _ = _element(datagram, 0)
    _, _, at = _element(message, 0)
    _, _, end_of_head = _element(message, at)
    _, pdu, _ = _element(message, end_of_head)
    _, _, end_of_id = _element(pdu, 0)
    _, _, at = _element(pdu, end_of_id)  # non-repeaters: the walker has none
    _, count, at = _element(pdu, at)
    _, binds, _ = _element(pdu, at)
    oids = []
    at = 0
    while at < len(binds):
        _, bind, at = _element(binds, at)
        oids.append(_parse_oid(_element(bind, 0)[1]))
    return Asked(message[:end_of_head], pdu[:end_of_id], int.from_bytes(count), tuple(oids))


def _element(raw: bytes, at: int) -> tuple[int, bytes, int]:
    """Return (tag, content, where the next element begins) of a BER element."""
    tag, length, at = raw[at], raw[at + 1], at + 2
    if length & 0x80:
        num_bytes = length & 0x7F
        length, at = int.from_bytes(raw[at : at + num_bytes]), at + num_bytes
    return tag, raw[at : at + length], at + length


def _parse_oid(raw: bytes) -> Oid:
    parts, part = [], 0
    for byte in raw:
        part = part << 7 | byte & 0x7F
        if not byte & 0x80:
            parts.append(part)
            part = 0
    return (*divmod(parts[0], 40), *parts[1:])


def encode(tag: int, content: bytes) -> bytes:
    """Return a BER element."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + content


def encode_oid(oid: Sequence[int]) -> bytes:
    """Return an OID as BER."""
    content = bytearray()
    for part in (oid[0] * 40 + oid[1], *oid[2:]):
        groups = [part & 0x7F]
        while part := part >> 7:
            groups.append(0x80 | part & 0x7F)
        content += bytes(reversed(groups))
    return encode(_OID, bytes(content))


def encode_value(value: Value) -> bytes:
    """Return a number or octets as BER."""
    if isinstance(value, bytes):
        return encode(_OCTETS, value)
    return encode(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, signed=True))


async def _answer_for_ever(num_switches: int, num_ports: int, pipe: Connection) -> None:
    loop = asyncio.get_running_loop()
    ports = []
    for number in range(num_switches):
        make = partial(SwitchAgent, switch_tables(number, num_ports))
        transport, _ = await loop.create_datagram_endpoint(make, local_addr=("127.0.0.1", 0))
        ports.append(transport.get_extra_info("sockname")[1])
    pipe.send(ports)
    await asyncio.Event().wait()


def _run(num_switches: int, num_ports: int, pipe: Connection) -> None:
    asyncio.run(_answer_for_ever(num_switches, num_ports, pipe))


@contextmanager
def answering(num_switches: int, num_ports: int) -> Iterator[list[int]]:
    """Run the switches in a process of their own; yield their UDP ports on loopback."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(num_switches, num_ports, theirs), daemon=True)
    process.start()
    try:
        if not ours.poll(START_S):
            raise TimeoutError("the simulated switches did not start")
        yield ours.recv()
    finally:
        process.terminate()
        process.join()
