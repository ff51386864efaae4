"""Rounds with a destination that fails, defers writes, and recovers."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec import structs

from agent.collection import CollectorRun
from agent.loop import ReportLoop
from agent.publish.destination import PublishOutcome
from tests.agent.fakes import Answer, FakeClock, FakeRunner, printed
from tests.agent.nodes import SWEEP, card, chassis, heard, node_for, plant
from topology.model.errors import CommandTimeout, KubeForbidden, KubeUnavailable, TopologyError
from topology.reports.neighbor_report import NeighborReport, ReportStatus, SweepPart

MAC = "b8:ce:f6:00:00:01"
AWAY = KubeUnavailable("away")
FABRIC = printed(
    'Switch 40 "S-0002c90000000001"\n[1] "S-0002c90000000002"[1]\n\n'
    'Switch 40 "S-0002c90000000002"\n[1] "S-0002c90000000001"[1]\n'
)


@dataclass
class FakeDestination:
    """Keeps reports in memory; fails or defers writes as a test says."""

    reports: dict[str, NeighborReport] = field(default_factory=dict)
    problem: TopologyError | None = None
    """The failure of every attempt."""
    deferred: frozenset[str] = frozenset()
    """The names whose writes are deferred."""
    tries: int = 0

    def last_report(self) -> NeighborReport | None:
        """Return the published report."""
        self._fail()
        return self.reports.get("node01")

    def publish(self, reports: Iterable[NeighborReport]) -> Mapping[str, PublishOutcome]:
        """Keep the reports."""
        self._fail()
        changes = {}
        for report in reports:
            name = report.metadata.name
            is_deferred = name in self.deferred
            changes[name] = PublishOutcome.DEFERRED if is_deferred else PublishOutcome.SPEC
            if not is_deferred:
                self.reports[name] = report
        return changes

    def read_parts(self) -> Mapping[int, SweepPart | None]:
        """Return the parts of sweeps."""
        self._fail()
        return {
            int(name.rpartition(".")[2]): one.spec.sweep
            for name, one in self.reports.items()
            if one.spec.sweep is not None
        }

    def withdraw(self, names: Iterable[str]) -> None:
        """Forget reports."""
        for name in names:
            del self.reports[name]

    def _fail(self) -> None:
        self.tries += 1
        if self.problem is not None:
            raise self.problem


@dataclass
class FakeObserver:
    """Remembers its calls."""

    collections: list[bool] = field(default_factory=list)
    published: list[dict[str, PublishOutcome]] = field(default_factory=list)
    problems: list[TopologyError] = field(default_factory=list)

    def record_collection(self, attempts: Sequence[CollectorRun], *, is_good: bool) -> None:
        """Record whether the collection was good."""
        assert attempts
        self.collections.append(is_good)

    def record_publishing(
        self, changes: Mapping[str, PublishOutcome], problem: TopologyError | None = None
    ) -> None:
        """Record the changes, or the problem."""
        if problem is None:
            self.published.append(dict(changes))
        else:
            self.problems.append(problem)


class Agent:
    """One node, and a destination that a test can make fail."""

    def __init__(self, root: Path) -> None:
        self.sysfs = plant(root / "sys", card("eth0", "0000:03:00.0", MAC))
        self.answers: dict[str, Answer] = {}
        self.destination = FakeDestination()
        self.observer = FakeObserver()
        self.hear("leaf1")

    def hear(self, switch: str | None) -> None:
        """Let lldpd hear this switch, or fail."""
        near = printed(heard(("eth0", switch, "swp1"))) if switch else CommandTimeout("late")
        self.answers |= {"neighbors": near, "chassis": printed(chassis(MAC))}

    def start(self, *, is_sweeping: bool = False) -> ReportLoop:
        sweep = SWEEP if is_sweeping else None
        node = node_for(self.sysfs, FakeRunner(self.answers), FakeClock(), sweep=sweep)
        return ReportLoop(node, self.destination, observers=[self.observer])

    @property
    def heard(self) -> list[str]:
        ports = self.destination.reports["node01"].spec.ports
        return [one.name for port in ports for one in port.neighbors]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def test_it_publishes_nothing_before_it_has_read_its_last_report(agent: Agent) -> None:
    agent.start().tick()
    agent.hear(None)
    agent.destination.problem = AWAY
    rounds = agent.start()
    rounds.tick()
    rounds.tick()
    agent.destination.problem = None
    rounds.tick()
    assert agent.heard == ["leaf1"]


def test_it_prefers_facts_observed_since_its_start(agent: Agent) -> None:
    agent.start().tick()
    agent.destination.problem = AWAY
    rounds = agent.start()
    agent.hear("leaf2")
    rounds.tick()
    agent.hear(None)
    agent.destination.problem = None
    rounds.tick()
    assert agent.heard == ["leaf2"]


def test_it_collects_even_if_nothing_can_be_published(agent: Agent) -> None:
    agent.destination.problem = AWAY
    rounds = agent.start()
    for _ in range(3):
        rounds.tick()
    assert agent.observer.collections == [True] * 3
    assert agent.observer.problems == [AWAY] * 3
    assert agent.destination.tries == 3


def test_it_logs_an_outage_once_by_its_kind(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    rounds = agent.start()
    problems = [AWAY, KubeUnavailable("503"), KubeForbidden("403"), KubeForbidden("401"), None]
    with caplog.at_level(logging.INFO, logger="agent.loop"):
        for problem in problems:
            agent.destination.problem = problem
            rounds.tick()
    told = [one.message for one in caplog.records if one.message.startswith("publishing")]
    assert told == ["publishing failed", "publishing failed", "publishing works again"]


@pytest.mark.parametrize(("refusals", "errors"), [(2, 0), (5, 1)])
def test_it_logs_a_missing_right_only_if_it_stays_missing(
    agent: Agent, caplog: pytest.LogCaptureFixture, refusals: int, errors: int
) -> None:
    rounds = agent.start()
    for problem in (*[KubeForbidden("refused", status=403)] * refusals, None):
        agent.destination.problem = problem
        rounds.tick()
    said = [one.message for one in caplog.records if one.levelname == "ERROR"]
    assert said == ["publishing failed"] * errors


def test_it_logs_no_recovery_while_a_report_is_deferred(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    rounds = agent.start()
    rounds.tick()
    with caplog.at_level(logging.INFO, logger="agent.loop"):
        agent.destination.problem = AWAY
        rounds.tick()
        agent.destination.problem, agent.destination.deferred = None, frozenset({"node01"})
        rounds.tick()
    assert [one.message for one in caplog.records if "publishing" in one.message] == [
        "publishing failed"
    ]
    assert agent.observer.published[-1] == {"node01": PublishOutcome.DEFERRED}


@pytest.mark.parametrize("is_away", [True, False], ids=["away", "put off"])
def test_it_retries_a_sweep_that_could_not_be_written(agent: Agent, *, is_away: bool) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    rounds = agent.start(is_sweeping=True)
    agent.destination.problem = AWAY if is_away else None
    agent.destination.deferred = frozenset({"node01.sweep.0"})
    rounds.tick()
    assert "node01.sweep.0" not in agent.destination.reports
    agent.destination.problem, agent.destination.deferred = None, frozenset()
    agent.answers["ibnetdiscover"] = printed(b"")  # and now sweeping fails
    rounds.tick()
    assert set(agent.destination.reports) == {"node01", "node01.sweep.0"}


def test_it_keeps_an_old_part_until_the_new_ones_are_written(agent: Agent) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    agent.start(is_sweeping=True).tick()
    agent.destination.deferred = frozenset({"node01"})
    rounds = agent.start()
    rounds.tick()
    assert "node01.sweep.0" in agent.destination.reports
    agent.destination.deferred = frozenset()
    rounds.tick()
    assert set(agent.destination.reports) == {"node01"}


def test_it_keeps_the_time_of_facts_across_a_restart(agent: Agent) -> None:
    agent.start().tick()
    report = agent.destination.reports["node01"]
    old = structs.replace(report, status=ReportStatus(observed_at="2020-01-01T00:00:00Z"))
    agent.destination.reports["node01"] = old
    agent.hear(None)
    agent.sysfs.rename(agent.sysfs.with_name("gone"))
    agent.start().tick()
    assert agent.destination.reports["node01"].status.observed_at == "2020-01-01T00:00:00Z"
