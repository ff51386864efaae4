"""Running collectors: each is isolated, and a failure keeps the last facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.collection import (
    COLLECTORS,
    FRAMES,
    CollectorRun,
    RunOutcome,
    check_availability,
    collect,
    restore_facts,
    run_collector,
)
from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent
from agent.node.command import Runner
from agent.settings import AgentSettings
from tests.agent.fakes import FakeRunner, printed
from tests.agent.nodes import SWEEP, card, chassis, heard, node_for, plant
from topology.model.errors import CollectError, ParseError
from topology.model.facts import Device, DeviceKind, Port

KNOWN = CollectedFacts(ports=(Port("known"),))
FRESH = CollectedFacts(ports=(Port("fresh"),), note="all well")
BAD = ParseError("odd", source="file", line=3)


def answering(answer: CollectedFacts | Exception) -> Collector:
    def answered(_settings: AgentSettings, _runner: Runner) -> CollectedFacts:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Collector(answered, lambda *_: None, lambda _: CollectedFacts())


@pytest.mark.parametrize(
    ("answer", "known", "outcome", "facts", "message"),
    [
        pytest.param(
            FRESH, KNOWN, RunOutcome.OK, FRESH, "all well", id="new facts replace old ones"
        ),
        pytest.param(
            CollectedFacts(note="no card"),
            KNOWN,
            RunOutcome.NO_DATA,
            CollectedFacts(),
            "no card",
            id="an answer of nothing replaces them too",
        ),
        pytest.param(
            CollectError("it broke"),
            KNOWN,
            RunOutcome.FAILED,
            KNOWN,
            "it broke; the last good facts are kept",
            id="a failure keeps the last good facts",
        ),
        pytest.param(
            CollectError("it broke"),
            CollectedFacts(),
            RunOutcome.FAILED,
            CollectedFacts(),
            "it broke",
            id="a failure from the start keeps nothing",
        ),
        pytest.param(
            SourceAbsent("not here"),
            CollectedFacts(),
            RunOutcome.NO_DATA,
            CollectedFacts(),
            "not here",
            id="what never was here is no failure",
        ),
        pytest.param(
            SourceAbsent("not here"),
            KNOWN,
            RunOutcome.FAILED,
            KNOWN,
            "not here; the last good facts are kept",
            id="what was here and is gone is one",
        ),
        pytest.param(
            ZeroDivisionError("by \x1b[31mzero"),
            KNOWN,
            RunOutcome.FAILED,
            KNOWN,
            r"ZeroDivisionError: by \x1b[31mzero; the last good facts are kept",
            id="a defect is a failure of that collector alone",
        ),
        pytest.param(
            CollectedFacts(ports=FRESH.ports, errors=(BAD, BAD)),
            KNOWN,
            RunOutcome.OK,
            CollectedFacts(ports=FRESH.ports, errors=(BAD, BAD)),
            "2 unreadable parts, the first: file:3: odd",
            id="unreadable parts are counted",
        ),
    ],
)
def test_it_ends_a_run_so_that(
    answer: CollectedFacts | Exception,
    known: CollectedFacts,
    outcome: RunOutcome,
    facts: CollectedFacts,
    message: str,
) -> None:
    ended = run_collector("x", node_for(Path("/x")), collect=answering(answer).collect, known=known)
    assert ended == CollectorRun("x", outcome, message, 1.0, facts)


def test_it_does_not_swallow_a_stop() -> None:
    def stopped(_settings: AgentSettings, _runner: Runner) -> CollectedFacts:
        raise KeyboardInterrupt

    collector = Collector(stopped, lambda *_: None, lambda _: CollectedFacts())
    with pytest.raises(KeyboardInterrupt):
        run_collector("x", node_for(Path("/x")), collect=collector.collect, known=CollectedFacts())


@pytest.mark.parametrize(
    ("attempted", "is_complete"),
    [
        pytest.param(CollectorRun("x", RunOutcome.OK, "", 1, FRESH), True, id="good facts"),
        pytest.param(
            CollectorRun("x", RunOutcome.NO_DATA, "", 1, CollectedFacts()), True, id="no data"
        ),
        pytest.param(CollectorRun("x", RunOutcome.FAILED, "", 1, KNOWN), False, id="a failure"),
        pytest.param(
            CollectorRun("x", RunOutcome.OK, "", 1, CollectedFacts(errors=(BAD,))),
            False,
            id="lost lines",
        ),
    ],
)
def test_it_knows_whether_a_run_is_complete(attempted: CollectorRun, *, is_complete: bool) -> None:
    assert attempted.is_complete is is_complete


def tree(root: Path) -> Path:
    return plant(root, card("eth0", "0000:03:00.0", "b8:ce:f6:00:00:01"))


def test_it_runs_every_collector_even_if_one_fails(tmp_path: Path) -> None:
    runner = FakeRunner({"lldpcli": CollectError("boom")})
    outcomes = {one.collector: one.outcome for one in collect(node_for(tree(tmp_path), runner), {})}
    assert outcomes == {
        "net_sysfs": RunOutcome.OK,
        "ib_sysfs": RunOutcome.NO_DATA,
        "lldpd": RunOutcome.FAILED,
        "firmware_lldp": RunOutcome.NO_DATA,
        "nvlink": RunOutcome.NO_DATA,
    }


def test_it_sweeps_only_if_the_settings_enable_it(tmp_path: Path) -> None:
    runner = FakeRunner({"lldpcli": CollectError("boom"), "ibnetdiscover": printed(b"")})
    attempts = collect(node_for(tree(tmp_path), runner, sweep=SWEEP), {})
    assert [one.collector for one in attempts] == list(COLLECTORS)
    assert attempts[-1].message == "the sweep found no switch"


def test_it_restores_nothing_without_a_last_report() -> None:
    assert restore_facts(None) == {}


def test_it_restores_facts_by_collector() -> None:
    recalled = restore_facts(Device(DeviceKind.HOST, "n", (), (Port("eth0"),)))
    assert list(recalled) == [*COLLECTORS, FRAMES]
    assert [name for name, facts in recalled.items() if not facts.is_empty] == ["net_sysfs"]


def test_it_reports_which_collectors_can_work(tmp_path: Path) -> None:
    runner = FakeRunner(
        {"neighbors": printed(heard()), "chassis": printed(chassis("b8:ce:f6:00:00:01"))}
    )
    assert check_availability(node_for(tree(tmp_path), runner)) == {
        "net_sysfs": "",
        "ib_sysfs": "no InfiniBand or RoCE device",
        "lldpd": "",
        "firmware_lldp": "no card with its own LLDP agent",
        "nvlink": "nvidia-smi not found",
        "ib_sweep": "sweeping is off (see --sweep)",
        "frames": "listening is off (see --frames and --listen-for)",
    }


@pytest.mark.parametrize("name", COLLECTORS)
def test_it_gives_every_collector_the_same_shape(name: str) -> None:
    parts: tuple[Callable[..., object], ...] = COLLECTORS[name]
    assert [part.__name__ for part in parts] == ["collect", "find_absence", "restore"]
