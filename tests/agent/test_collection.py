"""Running collectors: each alone, none harming another, none losing what it knew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.collection import (
    COLLECTORS,
    FRAMES,
    Attempt,
    Availability,
    Outcome,
    attempt,
    availability,
    collect,
    recall,
)
from agent.collectors.probe import Collected, Collector, SourceAbsent
from agent.node.command import Runner
from agent.settings import Settings
from tests.agent.fakes import FakeRunner, printed
from tests.agent.nodes import SWEEP, card, chassis, heard, node_for, plant
from topology.model.errors import CollectError, ParseError
from topology.model.facts import Device, DeviceKind, Port

KNOWN = Collected(ports=(Port("known"),))
FRESH = Collected(ports=(Port("fresh"),), note="all well")
BAD = ParseError("odd", source="file", line=3)


def answering(answer: Collected | Exception) -> Collector:
    def answered(_settings: Settings, _runner: Runner) -> Collected:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Collector(answered, lambda *_: None, lambda _: Collected())


@pytest.mark.parametrize(
    ("answer", "known", "outcome", "facts", "message"),
    [
        pytest.param(FRESH, KNOWN, Outcome.OK, FRESH, "all well", id="new facts replace old ones"),
        pytest.param(
            Collected(note="no card"),
            KNOWN,
            Outcome.NO_DATA,
            Collected(),
            "no card",
            id="an answer of nothing replaces them too",
        ),
        pytest.param(
            CollectError("it broke"),
            KNOWN,
            Outcome.FAILED,
            KNOWN,
            "it broke; its last good facts are kept",
            id="a failure keeps the last good facts",
        ),
        pytest.param(
            CollectError("it broke"),
            Collected(),
            Outcome.FAILED,
            Collected(),
            "it broke",
            id="a failure from the start keeps nothing",
        ),
        pytest.param(
            SourceAbsent("not here"),
            Collected(),
            Outcome.NO_DATA,
            Collected(),
            "not here",
            id="what never was here is no failure",
        ),
        pytest.param(
            SourceAbsent("not here"),
            KNOWN,
            Outcome.FAILED,
            KNOWN,
            "not here; its last good facts are kept",
            id="what was here and is gone is one",
        ),
        pytest.param(
            ZeroDivisionError("by \x1b[31mzero"),
            KNOWN,
            Outcome.FAILED,
            KNOWN,
            r"ZeroDivisionError: by \x1b[31mzero; its last good facts are kept",
            id="a defect is a failure of that collector alone",
        ),
        pytest.param(
            Collected(ports=FRESH.ports, skipped=(BAD, BAD)),
            KNOWN,
            Outcome.OK,
            Collected(ports=FRESH.ports, skipped=(BAD, BAD)),
            "2 parts unreadable, the first: file:3: odd",
            id="unreadable parts are counted",
        ),
    ],
)
def test_it_ends_a_run_so_that(
    answer: Collected | Exception,
    known: Collected,
    outcome: Outcome,
    facts: Collected,
    message: str,
) -> None:
    ended = attempt("x", node_for(Path("/x")), collector=answering(answer), known=known)
    assert ended == Attempt("x", outcome, message, 1.0, facts)


def test_it_does_not_swallow_a_stop() -> None:
    def stopped(_settings: Settings, _runner: Runner) -> Collected:
        raise KeyboardInterrupt

    collector = Collector(stopped, lambda *_: None, lambda _: Collected())
    with pytest.raises(KeyboardInterrupt):
        attempt("x", node_for(Path("/x")), collector=collector, known=Collected())


@pytest.mark.parametrize(
    ("attempted", "is_complete"),
    [
        pytest.param(Attempt("x", Outcome.OK, "", 1, FRESH), True, id="good facts"),
        pytest.param(Attempt("x", Outcome.NO_DATA, "", 1, Collected()), True, id="none there"),
        pytest.param(Attempt("x", Outcome.FAILED, "", 1, KNOWN), False, id="a failure"),
        pytest.param(
            Attempt("x", Outcome.OK, "", 1, Collected(skipped=(BAD,))), False, id="lost lines"
        ),
    ],
)
def test_it_knows_whether_something_was_lost(attempted: Attempt, *, is_complete: bool) -> None:
    assert attempted.is_complete is is_complete


def tree(root: Path) -> Path:
    return plant(root, card("eth0", "0000:03:00.0", "b8:ce:f6:00:00:01"))


def test_it_runs_every_collector_although_one_fails(tmp_path: Path) -> None:
    runner = FakeRunner({"lldpcli": CollectError("boom")})
    outcomes = {one.collector: one.outcome for one in collect(node_for(tree(tmp_path), runner), {})}
    assert outcomes == {
        "net_sysfs": Outcome.OK,
        "ib_sysfs": Outcome.NO_DATA,
        "lldpd": Outcome.FAILED,
        "firmware_lldp": Outcome.NO_DATA,
        "nvlink": Outcome.NO_DATA,
    }


def test_it_sweeps_only_where_it_was_asked_to(tmp_path: Path) -> None:
    runner = FakeRunner({"lldpcli": CollectError("boom"), "ibnetdiscover": printed(b"")})
    attempts = collect(node_for(tree(tmp_path), runner, sweep=SWEEP), {})
    assert [one.collector for one in attempts] == list(COLLECTORS)
    assert attempts[-1].message == "the sweep found no switch"


def test_it_recalls_nothing_without_a_last_report() -> None:
    assert recall(None) == {}


def test_it_recalls_by_collector() -> None:
    recalled = recall(Device(DeviceKind.HOST, "n", (), (Port("eth0"),)))
    assert list(recalled) == [*COLLECTORS, FRAMES]
    assert [name for name, facts in recalled.items() if not facts.is_empty] == ["net_sysfs"]


def test_it_tells_which_collectors_can_work(tmp_path: Path) -> None:
    runner = FakeRunner(
        {"neighbors": printed(heard()), "chassis": printed(chassis("b8:ce:f6:00:00:01"))}
    )
    assert availability(node_for(tree(tmp_path), runner)) == (
        Availability("net_sysfs", ""),
        Availability("ib_sysfs", "no InfiniBand or RoCE device"),
        Availability("lldpd", ""),
        Availability("firmware_lldp", "no card with an LLDP agent of its own"),
        Availability("nvlink", "nvidia-smi not found"),
        Availability("ib_sweep", "not asked to sweep (--sweep)"),
        Availability("frames", "not told to listen (--frames, --listen-for)"),
    )


@pytest.mark.parametrize("name", COLLECTORS)
def test_it_gives_every_collector_the_same_shape(name: str) -> None:
    parts: tuple[Callable[..., object], ...] = COLLECTORS[name]
    assert [part.__name__ for part in parts] == ["collect", "absence", "recall"]
