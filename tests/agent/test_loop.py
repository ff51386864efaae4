"""A running agent, round by round: what it keeps, what it publishes, what it logs."""

from __future__ import annotations

import logging

import pytest

from tests.agent.fakes import printed
from tests.agent.loops import LATE, NEAR, Agent
from tests.agent.nodes import heard


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


def test_it_never_treats_an_lldpd_that_never_ran_as_lost(agent: Agent) -> None:
    agent.answers.clear()
    for _ in range(2):
        agent.start().tick()
        assert agent.outcomes["lldpd"] == "no-data"


def test_it_treats_a_vanished_lldpd_as_a_failure(agent: Agent) -> None:
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


def test_it_lets_facts_become_stale_when_nothing_can_be_observed(agent: Agent) -> None:
    rounds = agent.start()
    rounds.tick()
    before = agent.report
    agent.hear(LATE)
    agent.sysfs.rename(agent.sysfs.with_name("gone"))
    rounds.tick()
    assert set(agent.outcomes.values()) == {"failed", "no-data"}
    assert agent.report.spec == before.spec
    assert agent.report.status.observed_at == before.status.observed_at


def test_it_starts_without_facts_from_a_broken_report(agent: Agent) -> None:
    (agent.reports / "node01.yaml").write_text("{")
    agent.hear(LATE)
    agent.start().tick()
    assert agent.heard == []
    assert agent.outcomes["lldpd"] == "failed"


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
