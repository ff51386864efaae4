"""SNMP sessions with switches, v2c and v3: the only module that imports pysnmp.

It uses numeric OIDs and raw values only, as with `lookupMib=False`: names of MIB files and printed
forms differ by device and version. pysnmp sends, checks and decrypts messages. `varbinds` unpacks
the cells in them, which would be nine tenths of pysnmp's work.
Source: pysnmp 7.1, hlapi.v3arch.asyncio and the modules that it uses.
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

from generator.switches.targets import AuthProtocol, PrivProtocol, SnmpCredentials, Target
from generator.switches.varbinds import parse_varbinds
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


def _replace_components(kind: type, **others: object) -> NamedTypes:
    """Return the components of an ASN.1 type, with some of them replaced by name."""
    return NamedTypes(
        *(
            NamedType(part.name, others.get(part.name, part.asn1Object))
            for part in kind.componentType.namedTypes  # type: ignore[attr-defined]
        )
    )


class _RawBinds(RawElement):  # type: ignore[misc]
    """A VarBindList that is not decoded."""

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
    """Returns the answer without decoding its cells, which the library would do."""

    def process_response_varbinds(
        self, engine: object, handle: object, failure: object, pdu: object, context: tuple[Any, ...]
    ) -> None:
        """Resolve the future of the request; a late answer is dropped."""
        del engine, handle
        answered: asyncio.Future[tuple[object, object]] = context[-1]
        if not answered.done():
            answered.set_result((failure, pdu))


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
        self._names = CommandGeneratorLcdConfigurator()

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
            SwitchRefused: the answer is an error, or its OIDs do not increase.
        """
        current, last = span.first, span.last
        while True:
            num_cells = 0
            for oid, value, is_absent in parse_varbinds(await self._request(target, current, span)):
                num_cells += 1
                if is_absent or oid[: len(last)] > last:
                    return
                if oid <= current:
                    raise SwitchRefused("its OIDs do not increase")
                current = oid
                last = oid[: len(last)] if span.is_any_column else last
                if value is not None:
                    yield oid, value
            if not num_cells:
                return

    async def _request(self, target: Target, after: Oid, span: ColumnSpan) -> bytes:
        """Return the cells that follow an OID, not decoded."""
        count = MAX_REPETITIONS if span.num_rows is None else span.num_rows + 1
        varbinds = ((ObjectIdentifier(after), Null("")),)
        answer: asyncio.Future[tuple[Any, Any]] = asyncio.get_running_loop().create_future()
        address = await self._resolve_address(target)
        try:
            engine = self._get_engine(target.credentials)
            name, _ = self._names.configure(engine, _build_auth(target.credentials), address, b"")
            _RawBulkGenerator().send_varbinds(
                engine, name, None, b"", 0, count, varbinds, None, answer
            )
            failure, pdu = await answer
        except (PySnmpError, PyAsn1Error, OSError, UnicodeError) as error:
            raise SwitchSilent(show(str(error))) from error
        if isinstance(failure, RequestTimedOut):
            raise SwitchSilent("no answer: it is down, or does not accept the community")
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
