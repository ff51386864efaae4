"""`run` as a separate process: it publishes, reacts, and stops on a signal."""

from __future__ import annotations

import json
import os
import signal
import subprocess  # noqa: TID251 - the process is the thing under test
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.nodes import card, chassis, heard, plant
from tests.agent.programs import wait_until_gone, wait_until_there, write_answering
from topology.reports.neighbor_report import NeighborReport, parse_report

MAC = "b8:ce:f6:00:00:01"
DEADLINE_S = 30
SKIPPED = "round skipped: previous still running"


class RunningAgent:
    """A started agent and the folder it publishes to."""

    def __init__(self, process: subprocess.Popen[str], reports: Path) -> None:
        self.process = process
        self.reports = reports

    def await_report(self, is_wanted: Callable[[NeighborReport], bool]) -> NeighborReport:
        """Return the first published report that meets a condition; fail at the deadline."""
        file = self.reports / "node01.yaml"
        pause, until = threading.Event(), time.monotonic() + DEADLINE_S
        while time.monotonic() < until:
            assert self.process.poll() is None, "the agent ended"
            if file.exists():
                report = parse_report(json.loads(file.read_text()))
                if is_wanted(report):
                    return report
            pause.wait(0.02)
        pytest.fail("no such report before the deadline")

    def stop(self, number: signal.Signals) -> tuple[int, list[str]]:
        """Return the exit code and the logged events after a signal."""
        self.process.send_signal(number)
        _, stderr = self.process.communicate(timeout=DEADLINE_S)
        events = [json.loads(line)["event"] for line in stderr.splitlines()]
        return self.process.returncode, events


@pytest.fixture
def lldpcli(tmp_path: Path) -> Path:
    plant(tmp_path / "sys", card("eth0", "0000:03:00.0", MAC))
    answers = {"neighbors": heard(("eth0", "leaf1", "swp1")), "chassis": chassis(MAC)}
    return write_answering(tmp_path / "lldpcli", answers)


@contextmanager
def agent_of(lldpcli: Path, *words: str) -> Iterator[RunningAgent]:
    root = lldpcli.parent
    options = ["--node-name", "node01", "--sysfs-root", str(root / "sys")]
    options += ["--lldpcli", str(lldpcli), "--publish", str(root / "reports")]
    options += ["--period", "50ms", "--jitter", "0s", *words]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", "run", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    try:
        yield RunningAgent(process, root / "reports")
    finally:
        process.kill()
        process.communicate()


def heard_by(report: NeighborReport) -> list[str]:
    return [one.name for port in report.spec.ports for one in port.neighbors]


def outcome_of(report: NeighborReport, name: str) -> str:
    return {one.name: one.outcome for one in report.status.collectors}[name]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_publishes_until_a_stop_signal(lldpcli: Path, number: signal.Signals) -> None:
    with agent_of(lldpcli) as agent:
        first = agent.await_report(lambda report: heard_by(report) == ["leaf1"])
        agent.await_report(lambda report: report.status.observed_at != first.status.observed_at)
        exit_code, events = agent.stop(number)
    assert exit_code == 0
    assert events[0] == "agent started"
    # On a slow machine the last line may report a skipped round.
    assert [event for event in events if event != SKIPPED][-1] == "agent stopping"
    assert events.count("report published") == 1
    assert [file.name for file in agent.reports.iterdir()] == ["node01.yaml"]


def test_it_follows_changes_and_keeps_facts_over_failure_and_restart(lldpcli: Path) -> None:
    answer = lldpcli.with_suffix(".neighbors")
    with agent_of(lldpcli) as agent:
        agent.await_report(lambda report: heard_by(report) == ["leaf1"])
        replace(answer, heard(("eth0", "leaf2", "swp2")))
        agent.await_report(lambda report: heard_by(report) == ["leaf2"])
        answer.unlink()
        failed = agent.await_report(lambda report: outcome_of(report, "lldpd") == "failed")
        assert heard_by(failed) == ["leaf2"]
        assert agent.stop(signal.SIGTERM)[0] == 0
    with agent_of(lldpcli) as agent:
        again = agent.await_report(
            lambda report: report.status.observed_at != failed.status.observed_at
        )
        assert (outcome_of(again, "lldpd"), heard_by(again)) == ("failed", ["leaf2"])
        replace(answer, heard())
        agent.await_report(lambda report: heard_by(report) == [])
        assert agent.stop(signal.SIGTERM)[0] == 0


def replace(file: Path, text: str) -> None:
    beside = file.with_suffix(".new")
    beside.write_text(text)
    beside.rename(file)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_a_running_collection_and_its_command(
    lldpcli: Path, number: signal.Signals
) -> None:
    file = lldpcli.with_name("pid")
    hanging = lldpcli.with_name("hanging")
    hanging.write_text(f"#!/bin/sh\necho $$ > '{file}.new'; mv '{file}.new' '{file}'\nsleep 600\n")
    hanging.chmod(0o755)
    with agent_of(lldpcli, "--lldpcli", str(hanging), "--deadline", "1h") as agent:
        wait_until_there(file)
        exit_code, events = agent.stop(number)
    assert exit_code == 0
    # Rounds that come due meanwhile are skipped, and that is logged.
    assert (events[0], events[-1]) == ("agent started", "agent stopping")
    wait_until_gone(int(file.read_text()))
    assert list(agent.reports.iterdir()) == []


def test_it_ends_a_single_collection_with_its_command(lldpcli: Path) -> None:
    file = lldpcli.with_name("pid")
    hanging = lldpcli.with_name("hanging")
    hanging.write_text(f"#!/bin/sh\necho $$ > '{file}.new'; mv '{file}.new' '{file}'\nsleep 600\n")
    hanging.chmod(0o755)
    options = ["--node-name", "node01", "--sysfs-root", str(lldpcli.parent / "sys")]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", "once", *options, "--lldpcli", str(hanging)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"]},
    )
    wait_until_there(file)
    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, stdout) == (128 + signal.SIGTERM, b"")
    wait_until_gone(int(file.read_text()))
