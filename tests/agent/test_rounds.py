"""A running agent, round by round: what it keeps, what it publishes, what it logs."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from agent.collect import Node
from agent.publishing import ReportFolder
from agent.rounds import Rounds
from tests.agent.fakes import Answer, FakeRunner, printed
from tests.agent.nodes import SWEEP, card, chassis, heard, node_for, plant
from topology.errors import CommandTimeout
from topology.report import NeighborReport

MAC = "b8:ce:f6:00:00:01"
LATE = CommandTimeout("lldpcli: late")
NEAR = printed(heard(("eth0", "leaf1", "swp1")))
FABRIC = printed('Switch 40 "S-0002c90000000001"\n[1] "S-0002c90000000002"[1]\n')


class Agent:
    """One node with an lldpd and a sweep that answer as a test wants, and a folder."""

    def __init__(self, root: Path) -> None:
        self.sysfs = plant(root / "sys", card("eth0", "0000:03:00.0", MAC))
        self.reports = root / "reports"
        self.answers: dict[str, Answer] = {}
        self.hear(NEAR)
        self.folder = ReportFolder(self.reports, "node01")
        self.folder.prepare()

    def hear(self, answer: Answer) -> None:
        own = answer if isinstance(answer, CommandTimeout) else printed(chassis(MAC))
        self.answers |= {"neighbors": answer, "chassis": own}

    def node(self, *, is_sweeping: bool = False) -> Node:
        runner = FakeRunner(self.answers)
        return node_for(self.sysfs, runner, sweep=SWEEP if is_sweeping else None)

    def start(self, *, is_sweeping: bool = False) -> Rounds:
        return Rounds(self.node(is_sweeping=is_sweeping), self.folder)

    @property
    def report(self) -> NeighborReport:
        report = self.folder.last_report()
        assert report is not None
        return report

    @property
    def files(self) -> list[str]:
        return sorted(file.name for file in self.reports.iterdir())

    @property
    def heard(self) -> list[str]:
        return [one.name for port in self.report.spec.ports for one in port.neighbors]

    @property
    def outcomes(self) -> dict[str, str]:
        return {one.name: one.outcome for one in self.report.status.collectors}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def test_it_publishes_what_it_collected(agent: Agent) -> None:
    agent.start().tick()
    assert agent.heard == ["leaf1"]
    assert agent.outcomes == {
        "net_sysfs": "ok",
        "ib_sysfs": "no-data",
        "lldpd": "ok",
        "firmware_lldp": "no-data",
        "nvlink": "no-data",
    }


def test_it_keeps_the_facts_of_a_collector_that_fails(agent: Agent) -> None:
    rounds = agent.start()
    rounds.tick()
    agent.hear(LATE)
    before = agent.report
    rounds.tick()
    assert agent.report.spec == before.spec
    assert agent.outcomes["lldpd"] == "failed"
    assert agent.report.status.observed_at != before.status.observed_at


def test_it_keeps_them_across_a_restart(agent: Agent) -> None:
    agent.start().tick()
    before = agent.report
    agent.hear(LATE)
    agent.start().tick()
    assert agent.report.spec == before.spec
    assert agent.outcomes["lldpd"] == "failed"


def test_it_never_takes_an_lldpd_that_was_not_there_for_a_lost_one(agent: Agent) -> None:
    agent.answers.clear()
    for _ in range(2):
        agent.start().tick()
        assert agent.outcomes["lldpd"] == "no-data"


def test_it_takes_an_lldpd_that_vanished_for_a_failure(agent: Agent) -> None:
    agent.start().tick()
    agent.answers.clear()
    agent.start().tick()
    assert agent.outcomes["lldpd"] == "failed"
    assert agent.heard == ["leaf1"]


def test_it_forgets_them_when_the_collector_answers_again(agent: Agent) -> None:
    rounds = agent.start()
    for answer in (NEAR, LATE, printed(heard(("eth0", "leaf2", "swp9")))):
        agent.hear(answer)
        rounds.tick()
    assert agent.heard == ["leaf2"]
    agent.hear(printed(heard()))
    rounds.tick()
    assert agent.heard == []


def test_it_lets_facts_grow_old_when_nothing_can_be_observed(agent: Agent) -> None:
    rounds = agent.start()
    rounds.tick()
    before = agent.report
    agent.hear(LATE)
    agent.sysfs.rename(agent.sysfs.with_name("gone"))
    rounds.tick()
    assert set(agent.outcomes.values()) == {"failed", "no-data"}
    assert agent.report.spec == before.spec
    assert agent.report.status.observed_at == before.status.observed_at


def test_it_starts_anew_from_a_broken_report(agent: Agent) -> None:
    (agent.reports / "node01.yaml").write_text("{")
    agent.hear(LATE)
    agent.start().tick()
    assert agent.heard == []
    assert agent.outcomes["lldpd"] == "failed"


def test_it_keeps_the_last_good_sweep(agent: Agent) -> None:
    part = agent.reports / "node01.sweep.0.yaml"
    rounds = agent.start(is_sweeping=True)
    agent.answers["ibnetdiscover"] = FABRIC
    rounds.tick()
    before = part.read_text()
    agent.answers["ibnetdiscover"] = printed(b"")
    rounds.tick()
    assert part.read_text() == before
    agent.start(is_sweeping=True).tick()
    assert part.read_text() == before
    assert agent.outcomes["ib_sweep"] == "failed"


def test_it_removes_parts_that_a_smaller_sweep_no_longer_has(agent: Agent) -> None:
    (agent.reports / "node01.sweep.1.yaml").touch()
    agent.answers["ibnetdiscover"] = FABRIC
    agent.start(is_sweeping=True).tick()
    assert agent.files == ["node01.sweep.0.yaml", "node01.yaml"]


def test_it_withdraws_its_sweep_when_it_no_longer_sweeps(agent: Agent) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    agent.start(is_sweeping=True).tick()
    agent.start().tick()
    assert agent.files == ["node01.yaml"]


def test_it_survives_a_folder_that_vanishes(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    rounds = agent.start()
    agent.reports.rmdir()
    with caplog.at_level(logging.INFO):
        rounds.tick()
        rounds.tick()
        agent.folder.prepare()
        rounds.tick()
        rounds.tick()
    failed, works = [one for one in caplog.records if one.message.startswith("publishing")]
    assert (failed.levelname, failed.message) == ("ERROR", "publishing failed")
    assert "No such file or directory" in vars(failed)["error"]
    assert failed.exc_info is None
    assert works.message == "publishing works again"
    assert agent.heard == ["leaf1"]


def test_it_logs_a_change_of_state_once(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    rounds = agent.start()
    seen = []
    for answer in (NEAR, NEAR, LATE, LATE, NEAR):
        agent.hear(answer)
        caplog.clear()
        with caplog.at_level(logging.INFO):
            rounds.tick()
        seen.append([(one.message, vars(one).get("collector")) for one in caplog.records])
    works, failed = ("collector works", "lldpd"), ("collector failed", "lldpd")
    assert seen == [
        [
            ("collector works", "net_sysfs"),
            ("collector has nothing to read", "ib_sysfs"),
            works,
            ("collector has nothing to read", "firmware_lldp"),
            ("collector has nothing to read", "nvlink"),
            ("report published", None),
        ],
        [],
        [failed],
        [],
        [works],
    ]
