"""A running agent, round by round: what it keeps, what it publishes, what it logs."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.loop import ReportLoop
from agent.publish.directory import ReportFolder
from agent.sweep_schedule import FabricFile
from tests.agent.fakes import Answer, FakeClock, FakeRunner, printed
from tests.agent.nodes import SWEEP, card, chassis, heard, node_for, plant
from topology.model.errors import CommandTimeout
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    SweepWitness,
    render_fabric,
)
from topology.reports.neighbor_report import NeighborReport, SweepStanding

MAC = "b8:ce:f6:00:00:01"
LATE = CommandTimeout("lldpcli: late")
NEAR = printed(heard(("eth0", "leaf1", "swp1")))
FABRIC = printed(
    'Switch 40 "S-0002c90000000001"\n[1] "S-0002c90000000002"[1]\n\n'
    'Switch 40 "S-0002c90000000002"\n[1] "S-0002c90000000001"[1]\n'
)


class Agent:
    """One node with an lldpd and a sweep that a test controls, and a folder."""

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

    def start(
        self,
        *,
        is_sweeping: bool = False,
        store: Path | None = None,
        clock: FakeClock | None = None,
        **changes: Any,  # noqa: ANN401 - any of the sweep's settings
    ) -> ReportLoop:
        sweep = replace(SWEEP, **changes) if is_sweeping else None
        node = node_for(self.sysfs, FakeRunner(self.answers), clock, sweep=sweep)
        return ReportLoop(node, self.folder, FabricFile(store) if store else None)

    @property
    def swept(self) -> dict[int, str]:
        """Return the subnets of published parts by their numbers."""
        return {number: part.subnet for number, part in self.folder.read_parts().items() if part}

    def observed_at(self, number: int) -> str:
        part = json.loads((self.reports / f"node01.sweep.{number}.yaml").read_text())
        return str(part["status"]["observedAt"])

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


def test_it_removes_parts_that_a_newer_sweep_does_not_have(agent: Agent) -> None:
    (agent.reports / "node01.sweep.1.yaml").touch()
    agent.answers["ibnetdiscover"] = FABRIC
    agent.start(is_sweeping=True).tick()
    assert agent.files == ["node01.sweep.0.yaml", "node01.yaml"]


def test_it_withdraws_its_sweep_when_it_no_longer_sweeps(agent: Agent) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    agent.start(is_sweeping=True).tick()
    agent.start().tick()
    assert agent.files == ["node01.yaml"]


def test_it_withdraws_the_sweep_of_its_former_subnet(agent: Agent) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    agent.start(is_sweeping=True, subnet="fe80000000000001").tick()
    agent.start(is_sweeping=True, subnet="fe80000000000002").tick()
    assert agent.swept == {1: "fe80000000000002"}


def test_it_sweeps_no_more_often_than_its_interval(agent: Agent) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    clock = FakeClock()
    rounds = agent.start(is_sweeping=True, clock=clock, interval_s=1000.0)
    times = []
    for _ in range(3):
        rounds.tick()
        times.append(agent.observed_at(0))
        assert agent.outcomes["ib_sweep"] == "ok"
    assert times == [times[0]] * 3
    clock.seconds += 1000
    rounds.tick()
    assert agent.observed_at(0) > times[0]


A, B = "fe80000000000001", "fe80000000000002"


class Elections:
    """The elections that the generator publishes, as a test sets them."""

    def __init__(self, root: Path) -> None:
        self.store = root
        self.file = root / "fabrics" / "default.yaml"
        self.file.parent.mkdir()

    def tell(
        self,
        *rows: tuple[str, str, str],
        counted: dict[str, str] | None = None,
        witnesses: dict[str, str] | None = None,
    ) -> None:
        """Write the sweepers as rows of subnet, node and role, and the other nodes by subnet."""
        sweepers = tuple(
            Sweeper(subnet=subnet, node=name, device="mlx5_0", port=1, role=SweepRole(role))
            for subnet, name, role in rows
        )
        sweeps = tuple(
            CountedSweep(subnet=subnet, node=name) for subnet, name in (counted or {}).items()
        )
        compared = tuple(
            SweepWitness(subnet=subnet, node=name) for subnet, name in (witnesses or {}).items()
        )
        status = FabricStatus(sweepers=sweepers, sweeps=sweeps, witnesses=compared)
        self.file.write_text(json.dumps(render_fabric(status)))


@pytest.fixture
def elections(tmp_path: Path) -> Elections:
    return Elections(tmp_path)


def test_it_sweeps_while_elected_and_withdraws_once_another_node_has_swept(
    agent: Agent, elections: Elections
) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    rounds = agent.start(is_sweeping=True, store=elections.store, interval_s=1000.0)
    rounds.tick()
    assert (agent.swept, agent.outcomes["ib_sweep"]) == ({}, "no-data")
    assert agent.report.status.sweeping == SweepStanding(able=True)
    elections.tell((A, "node02", "elected"), (A, "node03", "spare"))
    rounds.tick()
    assert agent.swept == {}
    elections.tell((A, "node01", "elected"), (B, "node01", "elected"))
    rounds.tick()
    assert agent.swept == {0: A, 1: B}
    elections.tell((A, "node02", "elected"), (B, "node01", "elected"), counted={A: "node01"})
    rounds.tick()
    assert agent.swept == {0: A, 1: B}
    elections.tell(
        (A, "node02", "elected"), (B, "node01", "elected"), counted={A: "node02", B: "node01"}
    )
    for _ in range(2):
        rounds.tick()
    agent.start(is_sweeping=True, store=elections.store).tick()
    assert agent.swept == {1: B}


def test_it_keeps_its_last_sweep_while_it_is_a_witness(agent: Agent, elections: Elections) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    rounds = agent.start(is_sweeping=True, store=elections.store, interval_s=1000.0)
    elections.tell((A, "node01", "spare"), counted={A: "node02"})
    rounds.tick()
    others = [(A, "node02", "elected"), (A, "node03", "spare")]
    elections.tell(*others, counted={A: "node02"}, witnesses={A: "node01"})
    rounds.tick()
    agent.start(is_sweeping=True, store=elections.store).tick()
    assert agent.swept == {0: A}
    elections.tell(*others, counted={A: "node02"}, witnesses={A: "node03"})
    for _ in range(2):
        rounds.tick()
    assert agent.swept == {}


@pytest.mark.parametrize("role", ["elected", "spare"])
def test_it_sweeps_while_the_sweep_of_another_node_counts(
    agent: Agent, elections: Elections, role: str
) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    rounds = agent.start(is_sweeping=True, store=elections.store, interval_s=1000.0)
    elections.tell((A, "node01", role), counted={A: "node02"})
    for _ in range(2):
        rounds.tick()
        assert agent.swept == {0: A}


def test_it_stays_elected_while_the_election_is_unreadable(
    agent: Agent, elections: Elections, caplog: pytest.LogCaptureFixture
) -> None:
    agent.answers["ibnetdiscover"] = FABRIC
    elections.tell((A, "node01", "elected"))
    rounds = agent.start(is_sweeping=True, store=elections.store)
    rounds.tick()
    elections.file.write_text("{")
    for _ in range(2):
        rounds.tick()
    assert agent.outcomes["ib_sweep"] == "ok"
    assert [one.message for one in caplog.records] == ["fabric unreadable"]
    elections.file.unlink()
    rounds.tick()
    assert agent.outcomes["ib_sweep"] == "no-data"


def test_it_never_waits_for_a_pipe_in_its_folders(
    agent: Agent, elections: Elections, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkfifo(elections.file)
    os.mkfifo(agent.reports / "node01.yaml")
    os.mkfifo(agent.reports / ".node01.yaml.tmp")
    agent.start(is_sweeping=True, store=elections.store).tick()
    told = {one.message: str(vars(one)["error"]) for one in caplog.records}
    assert "not a regular file" in told["own report unreadable"]
    assert "not a regular file" in told["fabric unreadable"]
    assert "node01.yaml: " in told["publishing failed"]


def test_it_logs_a_folder_instead_of_the_fabric_once(
    agent: Agent, elections: Elections, caplog: pytest.LogCaptureFixture
) -> None:
    elections.file.mkdir()
    rounds = agent.start(is_sweeping=True, store=elections.store)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        rounds.tick()
    assert [one.message for one in caplog.records] == ["fabric unreadable"]
    # What other tests have left open may be closed meanwhile.
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_it_reports_a_refusal_while_it_sweeps_and_a_failure_until_it_sweeps_again(
    agent: Agent, elections: Elections
) -> None:
    rounds = agent.start(is_sweeping=True, store=elections.store)
    timed_out = printed('Ca 1 "H-0002c90100000001"\n', stderr="query_smp timed out\n")
    seen = []
    turns: list[tuple[Answer, str]] = [
        (timed_out, "node01"), (timed_out, "node02"), (LATE, "node01"), (LATE, "node02"),
        (FABRIC, "node01"),
    ]  # fmt: skip
    for answer, elected in turns:
        agent.answers["ibnetdiscover"] = answer
        elections.tell((A, elected, "elected"))
        rounds.tick()
        standing = agent.report.status.sweeping
        assert standing is not None
        seen.append((standing.failed, standing.refused))
    assert seen == [((), (A,)), ((), ()), ((A,), ()), ((A,), ()), ((), ())]


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
