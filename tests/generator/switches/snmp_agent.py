"""A small SNMP v2c agent on loopback: answers GETBULK from a table, or misbehaves as configured."""

from __future__ import annotations

import socket
import threading
from bisect import bisect_right
from collections.abc import Iterable
from enum import Enum
from typing import Any, Self

from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto.api import PROTOCOL_MODULES, SNMP_VERSION_2C

from topology.sources.lldp_mib.tables import Oid, Value

_API: Any = PROTOCOL_MODULES[SNMP_VERSION_2C]
LARGE = 0xFFFF_FFFF
_NO_ACCESS = 6
_NOISE = (b"\x30\x03\x02\x01", b"\xb0\x22", b"\x1b[31m")


class Manner(Enum):
    """How the agent answers."""

    WELL = "well"
    REPEATING = "repeating"
    """Always the first row."""
    REFUSING = "refusing"
    """With an error status."""
    TIRING = "tiring"
    """Correctly for its rows, then with an error status."""
    TRUNCATING = "truncating"
    """Without the zero octet in front of `LARGE`."""
    BABBLING = "babbling"
    """With octets that are no SNMP, of each kind that pysnmp fails on, then correctly."""


class SnmpAgent:
    """Listens while it is open."""

    def __init__(
        self, rows: Iterable[tuple[Oid, Any]], *, community: str, manner: Manner = Manner.WELL
    ) -> None:
        """Listen on a free port; values are numbers, octets or values of the API."""
        self.tell(rows)
        self._community = community.encode()
        self._manner = manner
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.num_asked = 0
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        """Start answering."""
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        """Stop, after an empty datagram to itself."""
        self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join(timeout=10)
        self._socket.close()

    def tell(self, rows: Iterable[tuple[Oid, Any]]) -> None:
        """Answer from another table from now on."""
        self._rows = sorted(rows, key=lambda row: row[0])

    def _serve(self) -> None:
        while True:
            datagram, peer = self._socket.recvfrom(65535)
            if not datagram:
                return
            self.num_asked += 1
            if self._manner is Manner.BABBLING and self.num_asked == 1:
                for noise in _NOISE:
                    self._socket.sendto(noise, peer)
                continue
            answer = self._answer(datagram)
            if answer:
                self._socket.sendto(answer, peer)

    def _answer(self, datagram: bytes) -> bytes:
        """Return the answer to a request; none to another community, as agents do."""
        request, _ = decoder.decode(datagram, asn1Spec=_API.Message())
        if bytes(_API.apiMessage.get_community(request)) != self._community:
            return b""
        asked = _API.apiMessage.get_pdu(request)
        response = _API.apiMessage.get_response(request)
        pdu = _API.apiMessage.get_pdu(response)
        ((name, _),) = _API.apiBulkPDU.get_varbinds(asked)
        is_tired = self._manner is Manner.TIRING and tuple(name) > self._rows[-1][0]
        if is_tired or self._manner is Manner.REFUSING:
            _API.apiPDU.set_error_status(pdu, _NO_ACCESS)
        count = int(_API.apiBulkPDU.get_max_repetitions(asked))
        _API.apiPDU.set_varbinds(pdu, self._after(tuple(name), count))
        if self._manner is not Manner.TRUNCATING:
            return bytes(encoder.encode(response))
        rows = [
            (name, _API.Gauge32(LARGE >> 1) if value == LARGE else value)
            for name, value in _API.apiPDU.get_varbinds(pdu)
        ]
        _API.apiPDU.set_varbinds(pdu, rows)
        well: bytes = encoder.encode(response)
        return well.replace(b"\x42\x04\x7f\xff\xff\xff", b"\x42\x04\xff\xff\xff\xff")

    def _after(self, oid: Oid, count: int) -> list[tuple[Oid, Any]]:
        rows = self._rows
        at = bisect_right(rows, oid, key=lambda row: row[0])
        at = 0 if self._manner is Manner.REPEATING else at
        found = [(oid, _asn1(value)) for oid, value in rows[at : at + count]]
        if len(found) < count:
            last = found[-1][0] if found else oid
            found.append((last, _API.EndOfMibView("")))
        return found


def _asn1(value: Value | object) -> object:
    if isinstance(value, int):
        return _API.Gauge32(value)
    return _API.OctetString(value) if isinstance(value, bytes) else value
