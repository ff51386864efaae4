"""Parallel walks: outcomes, deadlines, discovery, back-off and the resulting reports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial

import pytest

from generator.switches.discovery import Frontier
from generator.switches.poller import SwitchBackoff
from generator.switches.reports import build_report_name, build_reports
from generator.switches.targets import Discovery, SnmpCredentials, Target
from generator.switches.walk import MAX_ROWS, SwitchWalk, WalkOutcome, walk_all, walk_switch
from tests.generator.switches.switchboard import (
    CREDENTIALS,
    REMOTE,
    FakeSession,
    mac,
    switch_rows,
    target,
)
from topology.model.errors import SwitchRefused, SwitchSilent
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind
from topology.sources.lldp_mib.tables import (
    BASE_SPANS,
    BRIDGE_PORT_IF_INDEX,
    BRIDGE_SPAN,
    CDP_CACHE,
    IF_NAME,
    LLDP,
    LLDP_V2,
    SYS_NAME,
    V2_SPANS,
    ColumnSpan,
    Value,
    WalkRow,
)
from topology.sources.lldp_mib.walk import parse_walk

NETWORK = Discovery.model_validate({"networks": ["10.0.0.0/24"]})
OBSERVED_AT = "2026-01-02T03:04:05Z"


def ticking() -> float:
    """Return the time of a fixed clock."""
    return 7.0


def walk(
    session: FakeSession,
    *addresses: str,
    deadline_s: float = 10,
    parallel: int = 32,
    discovery: Discovery | None = None,
) -> tuple[SwitchWalk, ...]:
    """Return the walks in the order in which they ended."""
    targets = list(dict.fromkeys(map(target, addresses)))
    one = partial(walk_switch, session=session, clock=ticking, deadline_s=deadline_s)
    frontier = Frontier(targets, discovery)

    async def collect() -> tuple[SwitchWalk, ...]:
        walks = walk_all(targets, walk=one, frontier=frontier, parallel=parallel)
        return tuple([found async for found in walks])

    return asyncio.run(collect())


def outcomes(walks: Iterable[SwitchWalk]) -> dict[str, WalkOutcome]:
    return {one.target.address: one.outcome for one in walks}


def test_it_walks_each_address_once_and_keeps_their_order() -> None:
    session = FakeSession({f"10.0.0.{at}": switch_rows(at) for at in range(1, 6)})
    addresses = [f"10.0.0.{at}" for at in (3, 1, 5, 3, 2)]
    walks = walk(session, *addresses)
    assert session.walked == ["10.0.0.3", "10.0.0.1", "10.0.0.5", "10.0.0.2"]
    assert set(outcomes(walks).values()) == {WalkOutcome.OK}
    assert [one.device.name for one in walks if one.device] == [
        "switch-3",
        "switch-1",
        "switch-5",
        "switch-2",
    ]


def test_it_never_walks_more_switches_at_once_than_allowed() -> None:
    session = FakeSession({f"10.0.0.{at}": switch_rows(at) for at in range(1, 20)})
    walk(session, *session.tables, parallel=4)
    assert session.most_at_once == 4


def test_it_delays_no_walk_because_of_a_dead_switch() -> None:
    tables = {f"10.0.0.{at}": switch_rows(at) for at in range(1, 20)}
    session = FakeSession(tables, hanging=frozenset({"10.0.0.100"}))
    walks = walk(session, "10.0.0.100", *tables, parallel=2, deadline_s=1.0)
    assert session.walked == ["10.0.0.100", *tables]
    found = outcomes(walks)
    assert found.pop("10.0.0.100") is WalkOutcome.UNREACHABLE
    assert set(found.values()) == {WalkOutcome.OK}
    assert walks[-1].reason == "the walk did not end within 1 s"


@pytest.mark.parametrize(
    ("tables", "failure", "outcome", "reason"),
    [
        ({}, SwitchSilent("no answer"), WalkOutcome.UNREACHABLE, "no answer"),
        ({}, SwitchRefused("wrong digest"), WalkOutcome.REFUSED, "wrong digest"),
        ({"10.0.0.1": []}, None, WalkOutcome.REFUSED, "it answers, but shows none of the tables"),
        ({"10.0.0.1": switch_rows(1)}, SwitchSilent("no answer"), WalkOutcome.PARTIAL, "no answer"),
        (
            {"10.0.0.1": switch_rows(1)},
            SwitchRefused("no access"),
            WalkOutcome.PARTIAL,
            "no access",
        ),
    ],
    ids=[
        "a switch that says nothing is unreachable",
        "a switch that answers without any table has refused",
        "a switch whose view is empty has refused",
        "a switch that stops answering halfway is partial",
        "a switch that refuses the rest is partial",
    ],
)
def test_it_returns_the_outcome_of_a_walk(
    tables: Mapping[str, list[WalkRow]],
    failure: SwitchSilent | SwitchRefused | None,
    outcome: WalkOutcome,
    reason: str,
) -> None:
    session = FakeSession(tables, failures={"10.0.0.1": failure} if failure else {})
    (found,) = walk(session, "10.0.0.1")
    assert found.outcome is outcome
    assert found.reason.startswith(reason)
    assert (found.device is not None) == (outcome is WalkOutcome.PARTIAL)
    assert found.duration_s == 0


def test_it_stops_at_a_switch_with_endless_rows() -> None:
    endless: list[WalkRow] = [((*CDP_CACHE, 5, at), 1) for at in range(MAX_ROWS + 5)]
    (found,) = walk(FakeSession({"10.0.0.1": [((*SYS_NAME, 0), b"loop"), *endless]}), "10.0.0.1")
    assert found.outcome is WalkOutcome.PARTIAL
    assert "more than 100000 rows" in found.reason


@pytest.mark.parametrize(
    ("row", "refused", "hanging", "port"),
    [
        pytest.param(((*BRIDGE_PORT_IF_INDEX, 7), 1), (), (), "swp2", id="bridge ports"),
        pytest.param(((*LLDP, 3, 7, 1, 3, 7), b"swp2"), (), (BRIDGE_SPAN,), "swp2", id="a table"),
        pytest.param(((*BRIDGE_PORT_IF_INDEX, 7), 1), (BRIDGE_SPAN,), (), "7", id="no access"),
        pytest.param(((*BRIDGE_PORT_IF_INDEX, 7), 1), (), (BRIDGE_SPAN,), "7", id="no answer"),
    ],
)
def test_it_names_a_port_that_is_not_an_ifindex_with(
    row: WalkRow, refused: Iterable[ColumnSpan], hanging: Iterable[ColumnSpan], port: str
) -> None:
    cells: list[Value] = [4, mac(2), 5, b"swp1", b"", b"switch-2"]
    heard: list[WalkRow] = [((*REMOTE, at, 0, 7, 1), cell) for at, cell in enumerate(cells, 4)]
    tables = {"10.0.0.1": [((*IF_NAME, 1), b"swp2"), row, *heard]}
    session = FakeSession(
        tables, refused_spans=frozenset(refused), hanging_spans=frozenset(hanging)
    )
    (found,) = walk(session, "10.0.0.1", deadline_s=0.4)
    assert found.outcome is WalkOutcome.OK
    assert found.device is not None
    assert [one.name for one in found.device.ports if one.neighbors] == [port]


def test_it_fetches_the_newer_mib_only_if_the_older_has_no_neighbors() -> None:
    newer: list[WalkRow] = [((*LLDP_V2, 4, 1, 1, 10, 0, 1, 1, 1), b"spine")]
    session = FakeSession(
        {"10.0.0.1": switch_rows(1, [(2, "")]), "10.0.0.2": [*switch_rows(2), *newer]}
    )
    walks = walk(session, "10.0.0.1", "10.0.0.2")
    asked = {span: address for address, span in session.spans if span in V2_SPANS}
    assert asked == dict.fromkeys(V2_SPANS, "10.0.0.2")
    for address in session.tables:
        assert set(BASE_SPANS) <= {span for at, span in session.spans if at == address}
    assert [sum(len(p.neighbors) for p in one.device.ports) for one in walks if one.device] == [
        1,
        1,
    ]


def chain(length: int) -> dict[str, list[WalkRow]]:
    """Return switches in a row, each of which hears the next."""
    return {
        f"10.0.0.{at}": switch_rows(at, [(at + 1, f"10.0.0.{at + 1}")]) for at in range(1, length)
    }


def test_it_discovers_switches_from_the_first_one() -> None:
    session = FakeSession(chain(6), failures={"10.0.0.6": SwitchSilent("no answer")})
    walks = walk(session, "10.0.0.1", discovery=NETWORK)
    found = outcomes(walks)
    assert found.pop("10.0.0.6") is WalkOutcome.UNREACHABLE
    assert found == {f"10.0.0.{at}": WalkOutcome.OK for at in range(1, 6)}
    assert {one.target.credentials for one in walks} == {CREDENTIALS}


@pytest.mark.parametrize(
    ("limits", "walked"),
    [
        ({"networks": ["10.1.0.0/16"]}, 1),
        ({"networks": ["10.0.0.0/30"]}, 3),
        ({"networks": ["2001:db8::/32", "10.0.0.2/32"]}, 2),
        ({"networks": ["10.0.0.0/24"], "maxSwitches": 2}, 3),
        ({"networks": ["10.0.0.0/24"], "maxDepth": 3}, 4),
    ],
    ids=[
        "none in another network",
        "those in the network",
        "none of another family",
        "no more than allowed",
        "none farther than allowed",
    ],
)
def test_it_walks_of_the_discovered_neighbors(limits: dict[str, object], walked: int) -> None:
    discovery = Discovery.model_validate(limits)
    assert len(walk(FakeSession(chain(9)), "10.0.0.1", discovery=discovery)) == walked


def test_it_walks_a_switch_at_one_of_its_addresses() -> None:
    tables = {
        "10.0.0.1": switch_rows(1, [(2, "10.0.0.2"), (1, "10.0.0.101")]),
        "10.0.0.2": switch_rows(2, [(1, "10.0.0.102")]),
    }
    session = FakeSession(tables)
    walk(session, "10.0.0.1", discovery=NETWORK)
    assert session.walked == ["10.0.0.1", "10.0.0.2"]


def test_it_walks_a_switch_once_that_two_others_hear_at_different_addresses() -> None:
    tables = {
        "10.0.0.1": switch_rows(1, [(3, "10.0.0.3")]),
        "10.0.0.2": switch_rows(2, [(3, "10.0.0.4")]),
        "10.0.0.3": switch_rows(3),
        "10.0.0.4": switch_rows(3),
    }
    session = FakeSession(tables)
    walk(session, "10.0.0.1", "10.0.0.2", discovery=NETWORK)
    assert session.walked == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


def test_it_recognises_a_switch_by_its_own_address() -> None:
    cells: dict[int, Value] = {3: 1, 4: b"\x0a\0\0\3", 6: b"core(FOX1)", 7: b"Eth1"}
    cache: list[WalkRow] = [((*CDP_CACHE, at, 1, 1), cell) for at, cell in cells.items()]
    own: WalkRow = ((*LLDP, 3, 8, 1, 3, 1, 4, 10, 0, 0, 3), 1)
    session = FakeSession(
        {"10.0.0.1": [*switch_rows(1), *cache], "10.0.0.2": [*switch_rows(2), own]}
    )
    walk(session, "10.0.0.1", "10.0.0.2", discovery=NETWORK)
    assert session.walked == ["10.0.0.1", "10.0.0.2"]
    without_address = FakeSession(
        {"10.0.0.1": [*switch_rows(1), *cache], "10.0.0.2": switch_rows(2)}
    )
    walk(without_address, "10.0.0.1", "10.0.0.2", discovery=NETWORK)
    assert without_address.walked == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


def test_it_tries_the_next_address_if_one_does_not_answer() -> None:
    def rows(first: str, second: str) -> list[WalkRow]:
        octets = tuple(map(int, second.split(".")))
        more: WalkRow = ((*REMOTE[:-2], 2, 1, 3, 0, 1, 1, 1, 4, *octets), 2)
        return [*switch_rows(1, [(2, first)]), more]

    session = FakeSession(
        {"10.0.0.1": rows("10.0.0.2", "10.0.0.3"), "10.0.0.3": switch_rows(2)},
        failures={"10.0.0.2": SwitchSilent("no answer")},
    )
    walks = walk(session, "10.0.0.1", discovery=NETWORK)
    assert [one.outcome for one in walks] == [
        WalkOutcome.OK,
        WalkOutcome.UNREACHABLE,
        WalkOutcome.OK,
    ]


def test_it_sends_the_credentials_of_the_switch_that_hears() -> None:
    other = SnmpCredentials(community="other")
    device, _ = parse_walk(switch_rows(1, [(2, "10.0.0.2")]))
    hearing = Target("10.0.0.1", 1161, other)
    found = Frontier([hearing], NETWORK).find_next(hearing, device)
    assert found == [Target("10.0.0.2", 1161, other, is_expected=False)]


def test_it_waits_twice_as_long_after_each_failure_up_to_an_hour() -> None:
    state, waits = SwitchBackoff(), []
    for _ in range(10):
        state = state.after_walk(WalkOutcome.UNREACHABLE, now_s=1000, period_s=60)
        waits.append(state.retry_at_s - 1000)
    assert waits == [120, 240, 480, 960, 1920, 3600, 3600, 3600, 3600, 3600]
    assert state.after_walk(WalkOutcome.PARTIAL, now_s=1000, period_s=60) == SwitchBackoff()
    refused = SwitchBackoff().after_walk(WalkOutcome.REFUSED, now_s=0, period_s=7200)
    assert refused == SwitchBackoff(1, 7200)


def device(*ids: Id) -> Device:
    return Device(DeviceKind.SWITCH, "../../etc/passwd", tuple(sorted(ids)))


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (
            (
                Id(IdKind.CHASSIS_ID, "44:38:39:00:00:01", "mac"),
                Id(IdKind.MAC, "00:00:00:00:00:05"),
            ),
            "switch-443839000001",
        ),
        (
            (Id(IdKind.MAC, "44:38:39:00:00:02"), Id(IdKind.CHASSIS_ID, "../x", "local")),
            "switch-443839000002",
        ),
    ],
    ids=["its chassis", "its first MAC where the chassis is none"],
)
def test_it_names_a_report_after(ids: tuple[Id, ...], name: str) -> None:
    assert build_report_name(device(*ids)) == name


def test_it_names_a_report_of_a_switch_without_macs_by_a_hash() -> None:
    one, other = device(Id(IdKind.HOSTNAME, "../a")), device(Id(IdKind.HOSTNAME, "../b"))
    assert build_report_name(one) != build_report_name(other)
    assert build_report_name(one).removeprefix("switch-").isalnum()


def test_it_reports_a_switch_once_from_a_complete_walk_if_there_is_one() -> None:
    whole, part = switch_rows(1, [(2, "")]), switch_rows(1)
    session = FakeSession(
        {"10.0.0.1": part, "10.0.0.2": whole, "10.0.0.3": whole, "10.0.0.4": switch_rows(9)},
        failures={at: SwitchSilent("no answer") for at in ("10.0.0.1", "10.0.0.4", "10.0.0.5")},
    )
    walks = walk(session, *(f"10.0.0.{at}" for at in range(1, 6)))
    first, second = build_reports(walks, observed_at=OBSERVED_AT)
    assert (first.metadata.name, second.metadata.name) == (
        f"switch-{mac(1).hex()}",
        f"switch-{mac(9).hex()}",
    )
    read = first.device
    assert read is not None
    assert Id(IdKind.IP, "10.0.0.2") in read.ids
    assert len(read.ports) == 1
    (good,), (bad,) = first.status.collectors, second.status.collectors
    assert (good.outcome, good.message) == ("ok", "")
    assert (bad.outcome, bad.message) == ("failed", "no answer")
    assert first.status.observed_at == OBSERVED_AT
