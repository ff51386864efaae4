"""The SNMP session against an agent on loopback: rows, silence, and malformed answers."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest
from pysnmp.proto.api import PROTOCOL_MODULES, SNMP_VERSION_2C

from generator.switches.session import MAX_REPETITIONS, SnmpSession
from generator.switches.targets import AuthProtocol, PrivProtocol, SnmpCredentials, Target
from tests.generator.switches.snmp_agent import LARGE, Manner, SnmpAgent
from topology.model.errors import SwitchError, SwitchRefused, SwitchSilent
from topology.sources.lldp_mib.tables import (
    IF_DESCR,
    IF_NAME,
    IFX_ENTRY,
    SYS_NAME,
    ColumnSpan,
    Oid,
    WalkRow,
)

API: Any = PROTOCOL_MODULES[SNMP_VERSION_2C]
COMMUNITY = "cables"
NAMES: list[WalkRow] = [((*IF_NAME, at), f"swp{at}".encode()) for at in range(1, 100)]


def fetch(
    port: int, wanted: Oid | ColumnSpan, *, community: str = COMMUNITY, host: str = "127.0.0.1"
) -> Any:  # noqa: ANN401 - the rows
    """Return the rows of a subtree or a span; a request waits 0.2 s for its answer."""
    span = wanted if isinstance(wanted, ColumnSpan) else ColumnSpan(wanted, wanted)
    target = Target(host, port, SnmpCredentials(community=community))

    async def collect() -> list[WalkRow]:
        async with SnmpSession(timeout_s=0.2, retries=1) as session:
            return [row async for row in session.fetch_rows(target, span)]

    return asyncio.run(collect())


def test_it_fetches_a_subtree_to_its_end_and_no_further() -> None:
    rows = [*NAMES, ((*SYS_NAME, 0), b"leaf01"), ((*IFX_ENTRY, 15, 1), 100_000)]
    with SnmpAgent(rows, community=COMMUNITY) as agent:
        assert fetch(agent.port, IF_NAME) == NAMES
        assert agent.num_asked == 1 + len(NAMES) // MAX_REPETITIONS
        assert fetch(agent.port, SYS_NAME) == [((*SYS_NAME, 0), b"leaf01")]
        assert fetch(agent.port, (*IFX_ENTRY, 15)) == [((*IFX_ENTRY, 15, 1), 100_000)]


def test_it_treats_an_absent_subtree_as_empty() -> None:
    with SnmpAgent(NAMES, community=COMMUNITY) as agent:
        assert fetch(agent.port, IF_DESCR) == []
        assert fetch(agent.port, (*IFX_ENTRY, 18)) == []
    with SnmpAgent([], community=COMMUNITY) as empty:
        assert fetch(empty.port, IF_DESCR) == []


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (API.Integer(-3), -3),
        (API.Counter64(2**60), 2**60),
        (API.TimeTicks(7), 7),
        (API.IpAddress("10.0.0.1"), b"\x0a\0\0\1"),
        (API.OctetString(b"\0\xff"), b"\0\xff"),
        (API.ObjectIdentifier((1, 3, 6)), None),
    ],
    ids=["an integer", "a counter", "ticks", "an address", "octets", "an OID, which is no value"],
)
def test_it_returns_raw_values(value: object, read: object) -> None:
    rows = [((*IF_NAME, 1), value), ((*IF_NAME, 2), b"last")]
    with SnmpAgent(rows, community=COMMUNITY) as agent:
        found = dict(fetch(agent.port, IF_NAME))
    assert found.get((*IF_NAME, 1)) == read
    assert found[(*IF_NAME, 2)] == b"last"


def test_it_continues_after_answers_that_are_no_snmp_and_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with SnmpAgent(NAMES[:3], community=COMMUNITY, manner=Manner.BABBLING) as agent:
        assert fetch(agent.port, IF_NAME) == NAMES[:3]
        assert agent.num_asked == 2
    assert not [one for one in caplog.records if one.levelno >= logging.INFO]


@pytest.mark.parametrize(
    ("manner", "reason"),
    [(Manner.REPEATING, "its OIDs do not increase"), (Manner.REFUSING, "error status noAccess")],
    ids=["of a switch whose OIDs repeat", "of a switch that answers with an error"],
)
def test_it_reports_the_refusal(manner: Manner, reason: str) -> None:
    with (
        SnmpAgent(NAMES, community=COMMUNITY, manner=manner) as agent,
        pytest.raises(SwitchRefused, match=reason),
    ):
        fetch(agent.port, IF_NAME)


def test_it_names_the_column_that_cannot_be_decoded() -> None:
    speeds: list[WalkRow] = [((*IFX_ENTRY, 15, 1), 100_000), ((*IFX_ENTRY, 15, 2), LARGE)]
    rows = [*NAMES, *speeds]
    with SnmpAgent(rows, community=COMMUNITY, manner=Manner.TRUNCATING) as agent:
        with pytest.raises(SwitchSilent, match=r"request for 1\.3\.6\.1\.2\.1\.31\.1\.1\.1\.15: "):
            fetch(agent.port, (*IFX_ENTRY, 15))
        assert fetch(agent.port, (*IFX_ENTRY, 18)) == []
    with SnmpAgent(rows, community=COMMUNITY) as agent:
        assert fetch(agent.port, (*IFX_ENTRY, 15)) == speeds


def test_it_treats_a_wrong_community_as_silence_and_never_shows_it() -> None:
    with SnmpAgent(NAMES, community=COMMUNITY) as agent:
        with pytest.raises(SwitchSilent, match="no answer") as silent:
            fetch(agent.port, IF_NAME, community="mistyped")
        assert agent.num_asked == 2
    assert "mistyped" not in str(silent.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"], ids=["over IPv4", "over IPv6"])
def test_it_treats_a_closed_port_as_silence(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
    except OSError:
        pytest.skip(f"needs the address {host}: enable IPv6")
    with pytest.raises(SwitchSilent):
        fetch(port, IF_NAME, host=host)


def test_it_treats_an_unknown_host_name_as_silence() -> None:
    with pytest.raises(SwitchSilent, match="cannot be resolved"):
        fetch(161, IF_NAME, host="no-such-switch.invalid")


@pytest.mark.parametrize("priv", PrivProtocol)
@pytest.mark.parametrize("auth", [AuthProtocol.MD5, AuthProtocol.SHA_512])
def test_it_supports_every_protocol_of_version_3(auth: AuthProtocol, priv: PrivProtocol) -> None:
    credentials = SnmpCredentials(
        user="reader",
        auth_protocol=auth,
        auth_key="authpass12",
        priv_protocol=priv,
        priv_key="privpass12",
    )

    async def ask() -> None:
        async with SnmpSession(timeout_s=0.05, retries=0) as session:
            async for _ in session.fetch_rows(
                Target("127.0.0.1", 9, credentials), ColumnSpan(IF_NAME, IF_NAME)
            ):
                pass

    with pytest.raises(SwitchError):  # silence there, but no protocol that is unknown here
        asyncio.run(ask())


def test_it_reports_an_error_of_our_own_tasks(caplog: pytest.LogCaptureFixture) -> None:
    async def lose_a_task() -> None:
        async with SnmpSession():
            context = {"message": "a task failed", "exception": RuntimeError("a defect")}
            asyncio.get_running_loop().call_exception_handler(context)

    asyncio.run(lose_a_task())
    assert "a task failed" in caplog.text
