"""SNMP to switches, v2c and v3: the only file that knows pysnmp.

Numeric OIDs and raw values only: nothing is looked up in a MIB, since names of MIB files and
printed forms differ by device and version. Source: pysnmp 7.1, hlapi.v3arch.asyncio.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from pyasn1.error import PyAsn1Error
from pyasn1.type.univ import Integer, Null, ObjectIdentifier, OctetString
from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch.asyncio import (
    USM_AUTH_HMAC96_MD5,
    USM_AUTH_HMAC96_SHA,
    USM_AUTH_HMAC128_SHA224,
    USM_AUTH_HMAC192_SHA256,
    USM_AUTH_HMAC256_SHA384,
    USM_AUTH_HMAC384_SHA512,
    USM_AUTH_NONE,
    USM_PRIV_CBC56_DES,
    USM_PRIV_CFB128_AES,
    USM_PRIV_CFB192_AES,
    USM_PRIV_CFB256_AES,
    USM_PRIV_NONE,
    CommunityData,
    ContextData,
    SnmpEngine,
    Udp6TransportTarget,
    UdpTransportTarget,
    UsmUserData,
    bulk_cmd,
)
from pysnmp.proto.errind import RequestTimedOut

from generator.switch_targets import AuthProtocol, Credentials, PrivProtocol, Target
from topology.errors import SwitchRefused, SwitchSilent, show
from topology.sources.lldp_mib_tables import Oid, Value, WalkRow

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 2.0
RETRIES: Final = 1
MAX_REPETITIONS: Final = 40
_AUTH: Final = {
    AuthProtocol.MD5: USM_AUTH_HMAC96_MD5,
    AuthProtocol.SHA: USM_AUTH_HMAC96_SHA,
    AuthProtocol.SHA_224: USM_AUTH_HMAC128_SHA224,
    AuthProtocol.SHA_256: USM_AUTH_HMAC192_SHA256,
    AuthProtocol.SHA_384: USM_AUTH_HMAC256_SHA384,
    AuthProtocol.SHA_512: USM_AUTH_HMAC384_SHA512,
}
_PRIV: Final = {
    PrivProtocol.DES: USM_PRIV_CBC56_DES,
    PrivProtocol.AES: USM_PRIV_CFB128_AES,
    PrivProtocol.AES_192: USM_PRIV_CFB192_AES,
    PrivProtocol.AES_256: USM_PRIV_CFB256_AES,
}


class _Answer(NamedTuple):
    """What one request brought."""

    rows: list[tuple[Oid, Value | None]]
    is_end: bool
    """Whether the switch shows nothing after these rows."""


class SnmpSession:
    """Fetches rows by GETBULK; lives in one event loop."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S, retries: int = RETRIES) -> None:
        """Open nothing yet.

        Args:
            timeout_s: of one request.
            retries: of one request, after the first try.
        """
        self._timeout_s = timeout_s
        self._retries = retries
        # One engine per credentials: an engine keeps users by name, and two switches may know
        # one name by different keys. It takes 0.2 s to make.
        self._engines: dict[Credentials, SnmpEngine] = {}
        self._addresses: dict[tuple[str, int], Any] = {}

    async def __aenter__(self) -> Self:
        """Take over what pysnmp leaves to the event loop: answers that nobody can use."""
        asyncio.get_running_loop().set_exception_handler(_take_fault)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close its sockets."""
        for engine in self._engines.values():
            engine.close_dispatcher()
        await asyncio.sleep(0)  # answers that came late are still on their way to the engines

    async def rows(self, target: Target, root: Oid) -> AsyncIterator[WalkRow]:
        """Yield the rows of a subtree in order; nothing where the switch lacks it.

        Raises:
            SwitchSilent: no answer within the timeouts, or no such host.
            SwitchRefused: an answer that refuses, or does not get on.
        """
        at = root
        while True:
            found, is_end = await self._request(target, at)
            for oid, value in found:
                if oid[: len(root)] != root:
                    return
                if oid <= at:
                    raise SwitchRefused("its OIDs do not increase")
                at = oid
                if value is not None:
                    yield oid, value
            if is_end:
                return

    async def _request(self, target: Target, at: Oid) -> _Answer:
        """Return what follows an OID."""
        try:
            failure, status, _, binds = await bulk_cmd(
                self._engine(target.credentials),
                _auth(target.credentials),
                await self._address(target),
                ContextData(),
                0,
                MAX_REPETITIONS,
                (ObjectIdentifier(at), Null("")),
                lookupMib=False,
            )
        except (PySnmpError, PyAsn1Error, OSError, UnicodeError) as error:
            raise SwitchSilent(show(str(error))) from error
        if isinstance(failure, RequestTimedOut):
            raise SwitchSilent("no answer: down, or it does not know the community")
        if failure:
            raise SwitchRefused(show(str(failure)))
        if status:
            raise SwitchRefused(show(f"error status {status.prettyPrint()}"))
        rows: list[tuple[Oid, Value | None]] = []
        for name, value in binds:
            if isinstance(value, Null):  # endOfMibView is one too
                return _Answer(rows, is_end=True)
            rows.append((tuple(name), _value(value)))
        return _Answer(rows, is_end=not rows)

    def _engine(self, credentials: Credentials) -> SnmpEngine:
        if credentials not in self._engines:
            self._engines[credentials] = SnmpEngine()
        return self._engines[credentials]

    async def _address(self, target: Target) -> UdpTransportTarget | Udp6TransportTarget:
        """Return where to send; a name is resolved once."""
        place = (target.address, target.port)
        if place not in self._addresses:
            kind = Udp6TransportTarget if ":" in target.address else UdpTransportTarget
            self._addresses[place] = await kind.create(
                place, timeout=self._timeout_s, retries=self._retries
            )
        return self._addresses[place]


def _take_fault(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Pass by an answer that came too late or makes no sense: its request ends by its timeout."""
    fault = context.get("exception")
    if isinstance(fault, (PySnmpError, PyAsn1Error)):
        log.debug("answer dropped", extra={"error": show(str(fault))})
    else:
        loop.default_exception_handler(context)


def _auth(credentials: Credentials) -> CommunityData | UsmUserData:
    if credentials.community:
        # Most switches in use have nothing else; whoever sets up v3 gets v3.
        return CommunityData(credentials.community, mpModel=1)  # noqa: S508 - version 2c is asked
    return UsmUserData(
        credentials.user,
        credentials.auth_key or None,
        credentials.priv_key or None,
        authProtocol=_AUTH[credentials.auth_protocol] if credentials.auth_key else USM_AUTH_NONE,
        privProtocol=_PRIV[credentials.priv_protocol] if credentials.priv_key else USM_PRIV_NONE,
    )


def _value(value: object) -> Value | None:
    """Return a number or octets; None for what no column of ours holds, such as an OID."""
    if isinstance(value, Integer):
        return int(value)
    return bytes(value) if isinstance(value, OctetString) else None
