"""SNMP to switches, v2c and v3: the only file that knows pysnmp.

Numeric OIDs and raw values only, as with `lookupMib=False`: nothing is looked up in a MIB, since
names of MIB files and printed forms differ by device and version. pysnmp carries, checks and
decrypts messages; the cells in them, nine tenths of its work, are unpacked by `snmp_binds`.
Source: pysnmp 7.1, hlapi.v3arch.asyncio and what it is made of.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from traceback import walk_tb
from types import TracebackType
from typing import Any, Final, Self

from pyasn1.error import PyAsn1Error
from pyasn1.type.namedtype import NamedType, NamedTypes
from pyasn1.type.univ import Any as RawElement
from pyasn1.type.univ import Null, ObjectIdentifier, SequenceOf
from pysnmp.entity.rfc3413.cmdgen import BulkCommandGenerator
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
    SnmpEngine,
    Udp6TransportTarget,
    UdpTransportTarget,
    UsmUserData,
)
from pysnmp.hlapi.v3arch.asyncio.lcd import CommandGeneratorLcdConfigurator
from pysnmp.proto.api import v2c
from pysnmp.proto.errind import RequestTimedOut
from pysnmp.proto.mpmod.rfc2576 import SnmpV2cMessageProcessingModel
from pysnmp.proto.mpmod.rfc3412 import (
    ScopedPDU,
    ScopedPduData,
    SNMPv3Message,
    SnmpV3MessageProcessingModel,
)
from pysnmp.proto.rfc1905 import PDUs, ResponsePDU

from generator.switches.targets import AuthProtocol, SnmpCredentials, PrivProtocol, Target
from generator.switches.varbinds import parse_varbinds
from topology.model.errors import SwitchRefused, SwitchSilent, show
from topology.sources.lldp_mib.tables import Oid, ColumnSpan, WalkRow

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


def _replace_components(kind: type, **others: object) -> NamedTypes:
    """Return the components of a type, some of them replaced by name."""
    return NamedTypes(
        *(
            NamedType(part.name, others.get(part.name, part.asn1Object))
            for part in kind.componentType.namedTypes  # type: ignore[attr-defined]
        )
    )


class _RawBinds(RawElement):  # type: ignore[misc]
    """A VarBindList that stays octets."""

    tagSet = SequenceOf.tagSet  # noqa: N815 - pyasn1's


class _RawResponse(ResponsePDU):  # type: ignore[misc]
    componentType = _replace_components(ResponsePDU, **{"variable-bindings": _RawBinds()})  # noqa: N815


class _RawPdus(PDUs):  # type: ignore[misc]
    componentType = _replace_components(PDUs, response=_RawResponse())  # noqa: N815


class _RawMessage(v2c.Message):  # type: ignore[misc]
    componentType = _replace_components(v2c.Message, data=_RawPdus())  # noqa: N815


class _RawScopedPdu(ScopedPDU):  # type: ignore[misc]
    componentType = _replace_components(ScopedPDU, data=_RawPdus())  # noqa: N815


class _RawScopedPduData(ScopedPduData):  # type: ignore[misc]
    componentType = _replace_components(ScopedPduData, plaintext=_RawScopedPdu())  # noqa: N815


class _RawV3Message(SNMPv3Message):  # type: ignore[misc]
    componentType = _replace_components(SNMPv3Message, msgData=_RawScopedPduData())  # noqa: N815


class _RawV2c(SnmpV2cMessageProcessingModel):  # type: ignore[misc]
    SNMP_MSG_SPEC = _RawMessage


class _RawV3(SnmpV3MessageProcessingModel):  # type: ignore[misc]
    SNMP_MSG_SPEC = _RawV3Message


class _RawBulkGenerator(BulkCommandGenerator):  # type: ignore[misc]
    """Hands over the answer as it is, where the library would unpack its cells."""

    def process_response_varbinds(
        self, engine: object, handle: object, failure: object, pdu: object, context: tuple[Any, ...]
    ) -> None:
        """Resolve the future that came with the question; nobody waits for a late answer."""
        del engine, handle
        answered: asyncio.Future[tuple[object, object]] = context[-1]
        if not answered.done():
            answered.set_result((failure, pdu))


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
        self._engines: dict[SnmpCredentials, SnmpEngine] = {}
        self._addresses: dict[tuple[str, int], Any] = {}
        self._names = CommandGeneratorLcdConfigurator()

    async def __aenter__(self) -> Self:
        """Take over what pysnmp leaves to the event loop: answers that nobody can use."""
        asyncio.get_running_loop().set_exception_handler(_ignore_decode_error)
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

    async def fetch_rows(self, target: Target, span: ColumnSpan) -> AsyncIterator[WalkRow]:
        """Yield the rows of a span in order; nothing where the switch lacks it.

        Raises:
            SwitchSilent: no answer within the timeouts, or no such host.
            SwitchRefused: an answer that refuses, or does not get on.
        """
        at, last = span.first, span.last
        while True:
            num_cells = 0
            for oid, value, is_absent in parse_varbinds(await self._request(target, at, span)):
                num_cells += 1
                if is_absent or oid[: len(last)] > last:
                    return
                if oid <= at:
                    raise SwitchRefused("its OIDs do not increase")
                at = oid
                last = oid[: len(last)] if span.is_any_column else last
                if value is not None:
                    yield oid, value
            if not num_cells:
                return

    async def _request(self, target: Target, at: Oid, span: ColumnSpan) -> bytes:
        """Return the cells that follow an OID, as they came."""
        count = MAX_REPETITIONS if span.num_rows is None else span.num_rows + 1
        asked = ((ObjectIdentifier(at), Null("")),)
        answered: asyncio.Future[tuple[Any, Any]] = asyncio.get_running_loop().create_future()
        place = await self._resolve_address(target)
        try:
            engine = self._get_engine(target.credentials)
            name, _ = self._names.configure(engine, _build_auth(target.credentials), place, b"")
            _RawBulkGenerator().send_varbinds(
                engine, name, None, b"", 0, count, asked, None, answered
            )
            failure, pdu = await answered
        except (PySnmpError, PyAsn1Error, OSError, UnicodeError) as error:
            raise SwitchSilent(show(str(error))) from error
        if isinstance(failure, RequestTimedOut):
            raise SwitchSilent("no answer: down, or it does not know the community")
        if failure:
            raise SwitchRefused(show(str(failure)))
        status = v2c.apiPDU.get_error_status(pdu)
        if status:
            raise SwitchRefused(show(f"error status {status.prettyPrint()}"))
        return bytes(v2c.apiPDU.get_varbind_list(pdu))

    def _get_engine(self, credentials: SnmpCredentials) -> SnmpEngine:
        if credentials not in self._engines:
            engine = SnmpEngine()
            for model in (_RawV2c(), _RawV3()):
                engine.message_processing_subsystems[model.MESSAGE_PROCESSING_MODEL_ID] = model
            self._engines[credentials] = engine
        return self._engines[credentials]

    async def _resolve_address(self, target: Target) -> UdpTransportTarget | Udp6TransportTarget:
        """Return where to send; a name is resolved once."""
        place = (target.address, target.port)
        if place not in self._addresses:
            kind = Udp6TransportTarget if ":" in target.address else UdpTransportTarget
            try:
                self._addresses[place] = await kind.create(
                    place, timeout=self._timeout_s, retries=self._retries
                )
            except (PySnmpError, OSError, UnicodeError) as error:
                raise SwitchSilent("no such host: its name has no address here") from error
        return self._addresses[place]


def _ignore_decode_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Pass by an answer that came too late or makes no sense: its request ends by its timeout."""
    fault = context.get("exception")
    if isinstance(fault, (PySnmpError, PyAsn1Error)) or _is_decode_error(fault):
        log.debug("answer dropped", extra={"error": show(str(fault))})
    else:
        loop.default_exception_handler(context)


def _is_decode_error(fault: BaseException | None) -> bool:
    """Return whether pyasn1 failed by an error not its own, as by TypeError of the octets b0 22."""
    frames = [frame for frame, _ in walk_tb(fault.__traceback__)] if fault else []
    return bool(frames) and str(frames[-1].f_globals.get("__name__")).startswith("pyasn1.")


def _build_auth(credentials: SnmpCredentials) -> CommunityData | UsmUserData:
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
