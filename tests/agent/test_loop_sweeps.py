"""A running agent, round by round: when it sweeps, and which sweep it keeps."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import pytest

from tests.agent.fakes import Answer, FakeClock, printed
from tests.agent.loops import LATE, Agent
from topology.reports.fabric_status import (
    CountedSweep,
    FabricStatus,
    Sweeper,
    SweepRole,
    SweepWitness,
    render_fabric,
)
from topology.reports.neighbor_report import SweepStanding

FABRIC = printed(
    'Switch 40 "S-0002c90000000001"\n[1] "S-0002c90000000002"[1]\n\n'
    'Switch 40 "S-0002c90000000002"\n[1] "S-0002c90000000001"[1]\n'
)


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
