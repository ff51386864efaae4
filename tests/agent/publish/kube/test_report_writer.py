"""What an agent writes to an API server, what it does not write, and when it checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import convert, structs

from agent.publish.destination import PublishOutcome
from agent.publish.kube.credentials import TokenNode
from agent.publish.kube.report_writer import (
    CHECK_INTERVAL_S,
    STATUS_AGE_S,
    STATUS_SPREAD_S,
    WRITE_DEADLINE_S,
    ReportWriter,
)
from runtime.retry import Cooldown
from tests.agent.publish.kube.fakes import FakeApi, SteadyClock
from topology.model.errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeNotFound,
    KubeUnavailable,
)
from topology.model.facts import Device, DeviceKind, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    CollectorOutcome,
    NeighborReport,
    ReportStatus,
    SweepPart,
    build_report,
    parse_stored_report,
)
from topology.reports.sweep_parts import split_sweep

SUBNET = "fe80000000000000"
AWAY = KubeUnavailable("away")
AT = "2026-01-02T03:04:05Z"


def report_with(*ports: str, outcome: str = "ok", **status: Any) -> NeighborReport:  # noqa: ANN401
    device = Device(DeviceKind.HOST, "n1", (), tuple(Port(name) for name in ports))
    fared = convert({"name": "lldpd", "outcome": outcome, "message": AT}, CollectorOutcome)
    told = {"observed_at": AT, "collectors": (fared,)} | status
    return build_report(device, name="n1", status=ReportStatus(**told))


def parts_of(text: str, first: int = 0) -> list[NeighborReport]:
    return split_sweep(text, node="n1", subnet=SUBNET, first=first)


class Agent:
    """The report writer of one node, and the server's objects."""

    def __init__(self) -> None:
        self.clock = SteadyClock()
        self.api = FakeApi(self.clock, node=TokenNode("n1", "uid-1"))
        self.objects = self.started()

    def started(self) -> ReportWriter:
        """Return a report writer that has read nothing yet."""
        cooldown = Cooldown(self.clock, lambda _, high: high, period_s=60)
        return ReportWriter(self.api, "n1", self.clock, lambda _, high: high, cooldown=cooldown)

    def publish(self, *reports: NeighborReport) -> Mapping[str, PublishOutcome]:
        return self.objects.publish(reports)

    def parts(self) -> Mapping[int, SweepPart | None]:
        return self.objects.read_parts()


@pytest.fixture
def agent() -> Agent:
    return Agent()


def test_it_writes_facts_and_status_once(agent: Agent) -> None:
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.SPEC}
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.NONE}
    assert agent.api.writes == ["n1", "n1/status"]
    (owner,) = agent.api.objects["n1"]["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "uid-1"}


@pytest.mark.parametrize(
    ("report", "change"),
    [
        pytest.param(report_with("eth1"), PublishOutcome.SPEC, id="other facts"),
        pytest.param(report_with("eth0", outcome="failed"), PublishOutcome.STATUS, id="an outcome"),
        pytest.param(
            report_with("eth0", flapping=("eth0",)), PublishOutcome.STATUS, id="a flapping port"
        ),
        pytest.param(
            report_with("eth0", agent_version="2"), PublishOutcome.STATUS, id="a new version"
        ),
        pytest.param(
            report_with("eth0", observed_at="later"), PublishOutcome.NONE, id="only the time"
        ),
    ],
)
def test_it_writes_what_changed(
    agent: Agent, report: NeighborReport, change: PublishOutcome
) -> None:
    agent.publish(report_with("eth0"))
    assert agent.publish(report) == {"n1": change}
    whole, status = ["n1", "n1/status"], ["n1/status"]
    more = {PublishOutcome.SPEC: whole, PublishOutcome.STATUS: status, PublishOutcome.NONE: []}[
        change
    ]
    assert agent.api.writes == whole + more


def test_it_does_not_write_because_a_message_changed(agent: Agent) -> None:
    report = report_with("eth0", outcome="failed")
    agent.publish(report)
    worse = CollectorOutcome(name="lldpd", outcome="failed", message="2 parts unreadable")
    status = structs.replace(report.status, collectors=(worse,))
    assert agent.publish(structs.replace(report, status=status)) == {"n1": PublishOutcome.NONE}


def test_it_renews_a_status_after_six_hours_and_within_seven(agent: Agent) -> None:
    agent.publish(report_with("eth0"))
    agent.clock.seconds += STATUS_AGE_S + STATUS_SPREAD_S - 10
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.NONE}
    agent.clock.seconds += 20
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.STATUS}
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.NONE}


@pytest.mark.parametrize(
    ("observed_at", "change"),
    [
        (AT, PublishOutcome.NONE),
        ("2020-01-01T00:00:00Z", PublishOutcome.STATUS),
        ("2099-01-01T00:00:00Z", PublishOutcome.NONE),
        ("2020-01-01T00:00:00", PublishOutcome.NONE),
        ("yesterday", PublishOutcome.NONE),
        (None, PublishOutcome.NONE),
    ],
)
def test_it_uses_the_age_of_the_published_status(
    agent: Agent, observed_at: str | None, change: PublishOutcome
) -> None:
    agent.publish(report_with("eth0", observed_at=observed_at))
    agent.objects = agent.started()
    assert agent.objects.last_report() == report_with("eth0", observed_at=observed_at)
    agent.clock.seconds += STATUS_SPREAD_S + 10
    assert agent.publish(report_with("eth0")) == {"n1": change}


def test_it_has_no_last_report_without_an_object(agent: Agent) -> None:
    assert agent.objects.last_report() is None
    agent.api.problems = [AWAY]
    with pytest.raises(KubeUnavailable):
        agent.objects.last_report()


def test_it_replaces_a_report_that_it_cannot_read(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.publish(report_with("eth0"))
    agent.api.objects["n1"]["spec"] = {}
    agent.objects = agent.started()
    assert agent.objects.last_report() is None
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.SPEC}
    assert [one.message for one in caplog.records] == ["own report unreadable"]


def test_it_checks_its_report_from_time_to_time(agent: Agent) -> None:
    agent.publish(report_with("eth0"))
    agent.clock.seconds += 1.5 * CHECK_INTERVAL_S - 10
    agent.publish(report_with("eth0"))
    assert agent.api.asked == ["PATCH n1", "PATCH n1/status"]
    agent.clock.seconds += 20
    for _ in range(3):
        agent.publish(report_with("eth0"))
    assert agent.api.asked == ["PATCH n1", "PATCH n1/status", "READ n1"]


@pytest.mark.parametrize("what", ["edited", "deleted", "disowned"])
def test_it_rewrites_a_report_that_another_client_changed(agent: Agent, what: str) -> None:
    agent.publish(report_with("eth0"))
    metadata = agent.api.objects["n1"]["metadata"]
    match what:
        case "edited":
            agent.api.objects["n1"] = agent.api.objects["n1"] | {"spec": {"ports": []}}
        case "deleted":
            del agent.api.objects["n1"]
        case _:
            del metadata["ownerReferences"]
    agent.clock.seconds += 2 * CHECK_INTERVAL_S
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.SPEC}
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.NONE}


@pytest.mark.parametrize("node", [None, TokenNode("n2", "uid-2")], ids=["none", "another"])
def test_it_sets_no_owner_other_than_its_node(agent: Agent, node: TokenNode | None) -> None:
    agent.api.node = node
    agent.publish(report_with("eth0"))
    assert "ownerReferences" not in agent.api.objects["n1"]["metadata"]


def test_it_takes_back_fields_from_other_clients(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.api.is_taken = True
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.SPEC}
    assert agent.api.writes == ["n1", "n1", "n1/status", "n1/status"]
    assert {one.message for one in caplog.records} == {"own report changed by another client"}


@pytest.mark.parametrize(
    ("problems", "then"),
    [
        pytest.param([AWAY], PublishOutcome.SPEC, id="the facts"),
        pytest.param([None, AWAY], PublishOutcome.STATUS, id="the status"),
    ],
)
def test_it_retries_what_could_not_be_written(
    agent: Agent, problems: list[KubeError | None], then: PublishOutcome
) -> None:
    agent.api.problems = problems
    with pytest.raises(KubeUnavailable):
        agent.publish(report_with("eth0"))
    assert agent.publish(report_with("eth0")) == {"n1": then}
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.NONE}


def test_it_recreates_a_report_deleted_between_spec_and_status(agent: Agent) -> None:
    agent.api.problems = [None, KubeNotFound("gone", status=404)]
    with pytest.raises(KubeNotFound):
        agent.publish(report_with("eth0"))
    agent.clock.seconds += 60
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.SPEC}


@pytest.mark.parametrize("error", [KubeForbidden("403"), KubeError("422")], ids=str)
def test_it_defers_a_refused_write_and_sends_nothing_meanwhile(
    agent: Agent, error: KubeError
) -> None:
    agent.api.problems = [error]
    with pytest.raises(KubeError):
        agent.publish(report_with("eth0"))
    assert agent.publish(report_with("eth1")) == {"n1": PublishOutcome.DEFERRED}
    assert len(agent.api.asked) == 1
    agent.clock.seconds += 60
    assert agent.publish(report_with("eth2")) == {"n1": PublishOutcome.SPEC}


def test_it_defers_only_changes_while_the_server_is_unavailable(agent: Agent) -> None:
    agent.publish(report_with("eth0"))
    agent.api.blocking_error = AWAY
    agent.clock.seconds += 2 * CHECK_INTERVAL_S
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.NONE}
    assert agent.publish(report_with("eth1")) == {"n1": PublishOutcome.DEFERRED}
    assert len(agent.api.asked) == 2


def test_it_raises_a_conflict_that_force_does_not_resolve(agent: Agent) -> None:
    agent.api.problems = [KubeConflict("409"), KubeConflict("409")]
    with pytest.raises(KubeConflict):
        agent.publish(report_with("eth0"))
    assert len(agent.api.asked) == 2


def test_it_finds_the_parts_of_its_sweeps_without_a_list(agent: Agent) -> None:
    first, second = (parts_of(text, first=at)[0] for at, text in enumerate("ab"))
    agent.publish(first, second)
    agent.objects = agent.started()
    agent.api.asked.clear()
    agent.parts()
    found = agent.parts()
    assert {number: part.sweep_id for number, part in found.items() if part} == {
        number: one.spec.sweep.sweep_id
        for number, one in enumerate((first, second))
        if one.spec.sweep
    }
    assert agent.api.asked == ["READ n1.sweep.0", "READ n1.sweep.1", "READ n1.sweep.2"]


def test_it_retries_parts_that_it_could_not_read(agent: Agent) -> None:
    agent.publish(*parts_of("a"))
    agent.objects = agent.started()
    agent.api.problems = [None, AWAY]
    with pytest.raises(KubeUnavailable):
        agent.parts()
    assert list(agent.parts()) == [0]


def test_it_empties_a_withdrawn_part_and_reuses_it(agent: Agent) -> None:
    agent.publish(*parts_of("a"))
    agent.objects.withdraw(["n1.sweep.0", "n1.sweep.7"])
    withdrawn = parse_stored_report(agent.api.objects["n1.sweep.0"]).spec.sweep
    assert withdrawn is not None
    assert withdrawn.is_withdrawn
    assert agent.parts() == {}
    agent.objects.withdraw(["n1.sweep.0"])
    assert len(agent.api.writes) == 4, "once"
    agent.objects = agent.started()
    assert agent.parts() == {}
    assert agent.publish(*parts_of("b")) == {"n1.sweep.0": PublishOutcome.SPEC}
    assert list(agent.parts()) == [0]


def test_it_defers_the_rest_of_a_long_sweep_to_the_next_round(agent: Agent) -> None:
    many = [parts_of(str(number), first=number)[0] for number in range(40)]
    rounds = 1
    while PublishOutcome.DEFERRED in agent.publish(*many).values():
        rounds += 1
    assert rounds == pytest.approx(2 * len(many) / WRITE_DEADLINE_S, abs=1)
    assert len(agent.api.writes) == 2 * len(many)


def test_it_cuts_a_report_and_logs_it_once(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    ids = (Id(IdKind.CHASSIS_ID, "z" * 500, "local"),)
    crowd = tuple(Neighbor(ids, f"{at:x<500}", (), "y" * 500, Source.LLDP) for at in range(1000))
    device = Device(DeviceKind.HOST, "n1", (), (Port("eth0", neighbors=crowd), Port("eth1")))
    report = build_report(device, name="n1", status=ReportStatus(observed_at=AT))
    for _ in range(3):
        agent.publish(report)
    agent.publish(report_with("eth0"))
    assert [one.message for one in caplog.records] == ["report cut", "report complete again"]
    assert vars(caplog.records[0])["ports"] == "eth0"


def test_it_refuses_a_report_that_cannot_be_cut_to_fit(agent: Agent) -> None:
    ports = tuple(Port(f"{at:x<400}", bond_master="y" * 500) for at in range(1500))
    device = Device(DeviceKind.HOST, "n1", (), ports)
    with pytest.raises(KubeError, match="are more than the API server accepts") as told:
        agent.publish(build_report(device, name="n1"))
    assert not isinstance(told.value, KubeUnavailable)
    assert agent.api.asked == []


def test_it_replaces_an_object_that_the_current_schema_refuses(agent: Agent) -> None:
    """A patch that changes nothing is validated too, unlike a read."""
    agent.api.problems = [KubeError("n1 is invalid", status=422)]
    assert agent.objects.last_report() is None
    assert agent.publish(report_with("eth0")) == {"n1": PublishOutcome.SPEC}
