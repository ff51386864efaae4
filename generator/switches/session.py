"""SNMP sessions with switches, v2c and v3: the only module that imports pysnmp.

It uses numeric OIDs and raw values only: names of MIB files and printed forms differ by device and
version.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from traceback import walk_tb
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
from pysnmp.proto.mpmod.rfc2576 import SnmpV2cMessageProcessingModel
from pysnmp.proto.mpmod.rfc3412 import SnmpV3MessageProcessingModel

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


class _DecodeFaults:
    """Notes which addresses sent an answer that breaks the rules of SNMP.

    pysnmp drops such an answer silently, so its request would look unanswered. Some agents, such as
    mini-snmpd before 2018, omit the zero octet in front of a large unsigned number.
    """

    def __init__(self, addresses: set[tuple[str, int]]) -> None:
        """Add the addresses to a set."""
        super().__init__()
        self._addresses = addresses

    def prepare_data_elements(
        self, engine: SnmpEngine, domain: object, address: tuple[Any, ...], message: bytes
    ) -> object:
        """Decode a message."""
        try:
            return super().prepare_data_elements(engine, domain, address, message)  # type: ignore[misc]
        except PyAsn1Error as error:
            self._addresses.add((address[0], address[1]))
            log.debug("answer dropped", extra={"address": address[0], "error": show(str(error))})
            raise


class _V2c(_DecodeFaults, SnmpV2cMessageProcessingModel):  # type: ignore[misc]
    pass


class _V3(_DecodeFaults, SnmpV3MessageProcessingModel):  # type: ignore[misc]
    pass


class SnmpSession:
    """Fetches rows with GETBULK; used within one event loop."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S, retries: int = RETRIES) -> None:
        """Open nothing yet.

        Args:
            timeout_s: of one attempt.
            retries: further attempts of a request.
        """
        self._timeout_s = timeout_s
        self._retries = retries
        # One engine per credentials: an engine stores users by name, and two switches may have
        # different keys for one name. An engine takes 0.2 s to create.
        self._engines: dict[SnmpCredentials, SnmpEngine] = {}
        self._addresses: dict[tuple[str, int], Any] = {}
        self._garbled: set[tuple[str, int]] = set()

    async def __aenter__(self) -> Self:
        """Handle the errors that pysnmp leaves to the event loop: undecodable answers."""
        asyncio.get_running_loop().set_exception_handler(_ignore_decode_error)
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
            SwitchRefused: the answer is an error or cannot be decoded, or its OIDs do not increase.
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
        address = await self._resolve_address(target)
        peer = address.transport_address[:2]
        self._garbled.discard(peer)
        try:
            failure, status, _, cells = await bulk_cmd(
                self._get_engine(target.credentials),
                _build_auth(target.credentials),
                address,
                ContextData(),
                0,
                count,
                ObjectType(ObjectIdentity(after)),
                lookupMib=False,
            )
        except (PySnmpError, PyAsn1Error, OSError, UnicodeError) as error:
            raise SwitchSilent(show(str(error))) from error
        if isinstance(failure, RequestTimedOut):
            if peer in self._garbled:
                shown = ".".join(map(str, after))
                raise SwitchRefused(f"its answer to a request for {shown} cannot be decoded")
            raise SwitchSilent("no answer: it is down, or does not accept the community")
        if failure:
            raise SwitchRefused(show(str(failure)))
        if status:
            raise SwitchRefused(show(f"error status {status.prettyPrint()}"))
        rows: Sequence[tuple[Any, Any]] = cells
        return rows

    def _get_engine(self, credentials: SnmpCredentials) -> SnmpEngine:
        if credentials not in self._engines:
            engine = SnmpEngine()
            for model in (_V2c(self._garbled), _V3(self._garbled)):
                engine.message_processing_subsystems[model.MESSAGE_PROCESSING_MODEL_ID] = model
            self._engines[credentials] = engine
        return self._engines[credentials]

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


def _ignore_decode_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Drop an answer that is late or undecodable: its request ends by its timeout."""
    fault = context.get("exception")
    if isinstance(fault, (PySnmpError, PyAsn1Error)) or _is_decode_error(fault):
        log.debug("answer dropped", extra={"error": show(str(fault))})
    else:
        loop.default_exception_handler(context)


def _is_decode_error(fault: BaseException | None) -> bool:
    """Return whether pyasn1 raised a general error, such as the TypeError for the octets b0 22."""
    frames = [frame for frame, _ in walk_tb(fault.__traceback__)] if fault else []
    return bool(frames) and str(frames[-1].f_globals.get("__name__")).startswith("pyasn1.")


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
