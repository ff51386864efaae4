"""SNMP sessions with switches, v2c and v3: the only module that imports pysnmp.

It uses numeric OIDs and raw values only: names of MIB files and printed forms differ by device and
version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from pyasn1.error import PyAsn1Error
from pyasn1.type.univ import Integer, Null, OctetString
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
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    Udp6TransportTarget,
    UdpTransportTarget,
    UsmUserData,
    bulk_cmd,
)
from pysnmp.proto.errind import RequestTimedOut

from generator.switches.targets import AuthProtocol, PrivProtocol, SnmpCredentials, Target
from topology.model.errors import SwitchRefused, SwitchSilent, show
from topology.sources.lldp_mib.tables import ColumnSpan, Oid, WalkRow

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


class SnmpSession:
    """Fetches rows with GETBULK; used within one event loop."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S, retries: int = RETRIES) -> None:
        """Open nothing yet.

        Args:
            timeout_s: the limit of one attempt.
            retries: further attempts of a request.
        """
        self._timeout_s = timeout_s
        self._retries = retries
        # One engine per credentials: an engine stores users by name, and two switches may have
        # different keys for one name. An engine takes 0.2 s to create.
        self._engines: dict[SnmpCredentials, SnmpEngine] = {}
        self._addresses: dict[tuple[str, int], Any] = {}

    async def __aenter__(self) -> Self:
        """Drop the answers that pysnmp cannot decode: their requests end by their timeouts."""
        asyncio.get_running_loop().set_exception_handler(_drop_answer)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the sockets."""
        for engine in self._engines.values():
            engine.close_dispatcher()
        await asyncio.sleep(0)  # let late answers reach the engines

    async def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
        """Yield the rows of a span in order; nothing if the switch lacks the table.

        Raises:
            SwitchSilent: no answer within the timeouts, or no such host.
            SwitchRefused: the answer is an error, or its OIDs do not increase.
        """
        current, last = span.first, span.last
        while cells := await self._request(target, current, span):
            for name, value in cells:
                oid = tuple(name)
                if isinstance(value, Null) or oid[: len(last)] > last:  # nothing more to come
                    return
                if oid <= current:
                    raise SwitchRefused("its OIDs do not increase")
                current = oid
                last = oid[: len(last)] if span.is_any_column else last
                if isinstance(value, OctetString):
                    yield oid, bytes(value)
                elif isinstance(value, Integer):
                    yield oid, int(value)

    async def _request(
        self, target: Target, after: Oid, span: ColumnSpan
    ) -> Sequence[tuple[Any, Any]]:
        """Return the names and values of the cells that follow an OID."""
        count = MAX_REPETITIONS if span.num_rows is None else span.num_rows + 1
        engine = self._engines.get(target.credentials) or SnmpEngine()
        self._engines[target.credentials] = engine
        try:
            failure, status, _, cells = await bulk_cmd(
                engine,
                _build_auth(target.credentials),
                await self._resolve_address(target),
                ContextData(),
                0,
                count,
                ObjectType(ObjectIdentity(after)),
                lookupMib=False,
            )
        except (PySnmpError, PyAsn1Error, OSError, UnicodeError) as error:
            raise SwitchSilent(show(str(error))) from error
        if isinstance(failure, RequestTimedOut):
            shown = ".".join(map(str, after))
            raise SwitchSilent(
                f"no answer to a request for {shown}: it is down, does not accept the community, "
                "or answers what is no SNMP"
            )
        if failure:
            raise SwitchRefused(show(str(failure)))
        if status:
            raise SwitchRefused(show(f"error status {status.prettyPrint()}"))
        rows: Sequence[tuple[Any, Any]] = cells
        return rows

    async def _resolve_address(self, target: Target) -> UdpTransportTarget | Udp6TransportTarget:
        """Return the transport address of a target; a name is resolved once."""
        address = (target.address, target.port)
        if address not in self._addresses:
            kind = Udp6TransportTarget if ":" in target.address else UdpTransportTarget
            try:
                self._addresses[address] = await kind.create(
                    address, timeout=self._timeout_s, retries=self._retries
                )
            except (PySnmpError, OSError, UnicodeError) as error:
                raise SwitchSilent("no such host: its name cannot be resolved") from error
        return self._addresses[address]


def _drop_answer(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Drop an answer that is late or undecodable.

    Only the callbacks of pysnmp run in this loop besides our tasks; an error of a task is ours.
    """
    if "handle" in context:
        log.debug("answer dropped", extra={"error": show(str(context.get("exception")))})
    else:
        loop.default_exception_handler(context)


def _build_auth(credentials: SnmpCredentials) -> CommunityData | UsmUserData:
    if credentials.community:
        # Most switches in use support only v2c; v3 is used where it is configured.
        return CommunityData(credentials.community, mpModel=1)  # noqa: S508 - v2c is configured
    return UsmUserData(
        credentials.user,
        credentials.auth_key or None,
        credentials.priv_key or None,
        authProtocol=_AUTH[credentials.auth_protocol] if credentials.auth_key else USM_AUTH_NONE,
        privProtocol=_PRIV[credentials.priv_protocol] if credentials.priv_key else USM_PRIV_NONE,
    )
