"""Held plans and approvals, and when HyperNodes are written at all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import structs

from generator.objects.write_policy import parse_write_policy
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.settings import WriteSettings
from generator.reconcile.write_delays import DebounceConfig
from generator.store.fabric_store import FabricStore
from tests.generator.folders import with_approval
from tests.generator.scenes import run
from tests.generator.server.days import MINUTE, NOON, SMALL, Day, hold
from topology.model.errors import KubeForbidden, KubeUnavailable, TopologyError
from topology.reports.packed_reports import unpack_report


def test_it_applies_an_approved_plan_once(day: Day) -> None:
    plan = hold(day)
    assert run("approve", plan, "--store", day.root).code == 0
    day.tick()
    assert len(day.placed()) == 16
    assert day.fabric().status.held is None
    assert day.conditions()["Ready"] == "HyperNodesWritten"
    document = day.store.read_fabric()
    assert document is not None
    assert "annotations" not in document["metadata"], "an approval is for one time"


def approve_by_hand(day: Day, plan: str) -> None:
    """Set the annotation as `kubectl annotate` does, without a check."""
    day.store.write_fabric(with_approval(day.store.read_fabric(), plan))


def find_approval(day: Day) -> str:
    return parse_write_policy(day.store.read_fabric()).approved_plan


def test_it_removes_the_approval_of_another_plan(day: Day) -> None:
    before = day.files()
    plan = hold(day)
    approve_by_hand(day, plan[::-1])
    day.tick()
    assert day.files() == before
    assert day.held() == plan
    assert find_approval(day) == ""


class Evidence:
    """The reports of a day, to be lost and to return."""

    def __init__(self, day: Day) -> None:
        self._day = day
        self._texts = {file: file.read_bytes() for file in day.store.reports.iterdir()}

    def restore(self) -> None:
        for file, text in self._texts.items():
            file.write_bytes(text)
        self._day.tick()


@pytest.mark.parametrize(
    ("num_lost", "is_restarted"), [(0, True), (17, False)], ids=["a restart", "17 hosts are lost"]
)
def test_an_approval_does_not_outlive_the_plan(
    day: Day, num_lost: int, *, is_restarted: bool
) -> None:
    before, evidence = day.files(), Evidence(day)
    plan = hold(day)
    approve_by_hand(day, plan)
    evidence.restore()
    if num_lost:
        approve_by_hand(day, plan)
        day.lose(day.some(num_lost))
        day.tick()
        evidence.restore()
    assert find_approval(day) == ""
    day.now += timedelta(days=21)
    if is_restarted:
        day.restart()
    assert hold(day) == plan, "the same plan for another reason is held"
    day.tick()
    assert day.files() == before


def test_an_approval_that_ended_does_not_count_while_it_cannot_be_removed(
    day: Day, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before, evidence = day.files(), Evidence(day)
    plan = hold(day)
    approve_by_hand(day, plan)

    def refuse(_store: FabricStore, _plan: str) -> bool:
        raise KubeUnavailable("not now", status=503)

    with monkeypatch.context() as patch:
        patch.setattr(FabricStore, "consume_approval", refuse)
        evidence.restore()
        for _ in range(3):
            assert hold(day) == plan
        assert find_approval(day) == plan
    assert caplog.messages.count("approval not removed") == 1
    day.tick()
    assert (day.files(), find_approval(day)) == (before, "")
    approve_by_hand(day, plan)
    day.tick()
    assert len(day.placed()) == 16, "a new approval counts"


def _pause(day: Day) -> None:
    day.want(paused=True)


def _remove_outputs(day: Day) -> None:
    day.want(outputs=[])


@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(_pause, id="paused"),
        pytest.param(_remove_outputs, id="without outputs"),
    ],
)
def test_an_approval_does_not_outlive_the_plan_while_writing_is(
    day: Day, stop: Callable[[Day], None]
) -> None:
    evidence = Evidence(day)
    plan = hold(day)
    stop(day)
    approve_by_hand(day, plan)
    evidence.restore()
    assert find_approval(day) == ""
    day.want()
    day.restart()
    day.tick()
    assert hold(day) == plan
    day.tick()
    assert len(day.placed()) == 32


def test_an_approval_waits_while_nothing_is_known(day: Day) -> None:
    plan = hold(day)
    since = day.fabric().status.held
    lost = Evidence(day)
    day.lose(day.some(32))
    for file in day.store.reports.iterdir():
        file.unlink()
    approve_by_hand(day, plan)
    for is_restarted in (False, True):
        if is_restarted:
            day.restart()
        day.now += MINUTE
        day.tick()
        assert day.conditions()["Ready"] == "-NoData"
        assert find_approval(day) == plan
        assert day.fabric().status.held == since, "what was held still is"
    lost.restore()
    assert len(day.placed()) == 16
    assert find_approval(day) == ""


def test_a_held_plan_keeps_its_time_while_a_new_server_waits_for_it_to_settle(day: Day) -> None:
    hold(day)
    held = day.fabric().status.held
    day.restart(WriteSettings(debounce=DebounceConfig(quiet_s=2.0), clock=lambda: day.now_s))
    for seconds in (0.0, 1.0, 3.0):
        day.now_s, day.now = seconds, day.now + timedelta(seconds=seconds)
        day.tick()
        assert day.fabric().status.held == held


def test_apply_removes_the_approval_of_a_plan_that_it_does_not_plan(day: Day) -> None:
    evidence = Evidence(day)
    plan = hold(day)
    approve_by_hand(day, plan)
    evidence.restore()
    approve_by_hand(day, plan)
    applied = run("apply", "--store", day.root)
    assert applied.code == 0
    assert f"the approval of plan {plan} is removed: it is not held" in applied.err
    assert find_approval(day) == ""
    day.lose(day.some(16))
    approve_by_hand(day, plan[::-1])
    assert run("apply", "--store", day.root).code == 5
    assert find_approval(day) == ""


def test_it_asks_again_when_an_approved_plan_has_changed(day: Day) -> None:
    before = day.files()
    plan = hold(day)
    run("approve", plan, "--store", day.root)
    day.lose(day.some(17))
    day.tick()
    assert day.files() == before
    assert day.held() != plan


def test_it_holds_by_the_last_good_budget_when_the_budget_is_wrong(
    day: Day, caplog: pytest.LogCaptureFixture
) -> None:
    day.want(changeBudget={"nodesPercent": 5000})
    hold(day)
    said = [vars(row)["problem"] for row in caplog.records if "problem" in vars(row)]
    assert [one for one in said if "spec.changeBudget" in one]


@pytest.mark.parametrize("spec", [{"changeBudget": {"nodesPercent": 5000}}, {"changeBudget": 7}])
def test_it_writes_nothing_by_a_budget_that_was_wrong_since_the_start(
    tmp_path: Path, spec: dict[str, object]
) -> None:
    day = Day(tmp_path, SMALL)
    day.want(**spec)
    day.tick()
    assert day.files() == {}
    status = (day.store.fabrics / "default.yaml").read_text()
    assert '"reason": "Paused"' in status
    assert "spec.changeBudget: " in status
    day.want(changeBudget={"nodesPercent": 5})
    day.tick()
    assert len(day.placed()) == 8


def test_it_keeps_the_hold_time_of_a_plan_over_a_restart(day: Day) -> None:
    plan = hold(day)
    day.want(changeBudget={"releaseAfterSeconds": 600})
    day.now += timedelta(seconds=300)
    day.restart()
    day.tick()
    assert day.held() == plan
    day.now += timedelta(seconds=300)
    day.tick()
    assert len(day.placed()) == 16


def test_it_reports_a_held_plan_once(day: Day, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    plan = hold(day)
    file = day.store.fabrics / "default.yaml"
    stamp = file.stat().st_ino
    for minutes in range(1, 4):
        day.now = NOON + minutes * MINUTE
        day.tick()
    plans = [
        vars(row)["plan"] for row in caplog.records if row.getMessage() == "held plan appeared"
    ]
    assert plans == [plan]
    assert file.stat().st_ino == stamp, "an unchanged object is not written again"


def test_it_keeps_observing_but_writes_nothing_while_paused(day: Day) -> None:
    before = day.files()
    day.want(paused=True)
    day.lose(day.some(1))
    day.tick()
    assert day.files() == before
    assert day.conditions()["Ready"] == "-Paused"
    day.want(paused=False)
    day.tick()
    assert len(day.placed()) == 31


def test_it_writes_nothing_until_it_has_read_whether_it_is_paused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    day = Day(tmp_path, SMALL)
    file = day.store.fabrics / "default.yaml"
    file.parent.mkdir()
    file.write_text("spec: {paused: tr")
    day.tick()
    assert day.files() == {}
    assert file.read_text() == "spec: {paused: tr"
    assert "problem appeared" in caplog.messages
    kinds = [vars(row).get("kind") for row in caplog.records if row.message == "finding appeared"]
    assert "unusable-field" in kinds
    file.unlink()
    day.tick()
    assert len(day.placed()) == 8


def test_it_only_logs_planned_changes_in_a_dry_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    day = Day(tmp_path, SMALL)
    day.restart(WriteSettings(is_dry_run=True))
    for _ in range(2):
        day.tick()
    assert day.files() == {}
    assert day.conditions()["Ready"] == "-DryRun"
    logged = [
        (vars(row)["action"], vars(row)["hypernode"])
        for row in caplog.records
        if row.getMessage() == "planned change appeared"
    ]
    planned = run("plan", "--store", day.root, "-o", "json").document
    assert sorted(logged) == sorted((row["op"], row["name"]) for row in planned)


@pytest.mark.parametrize(("known", "is_written"), [(4, True), (3, False)])
def test_it_writes_the_first_hypernodes_when_half_of_the_nodes_are_known(
    tmp_path: Path, known: int, *, is_written: bool
) -> None:
    day = Day(tmp_path, SMALL, is_listed=True)
    day.lose(day.scene.hosts[known:])
    day.tick()
    assert bool(day.files()) is is_written
    blocked = "-WithinBudget" if is_written else "NoQuorum"
    assert day.conditions()["ChangeBlocked"] == blocked


def test_it_writes_no_first_hypernodes_from_stale_reports(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL, is_listed=True)
    for report in day.store.read_reports().values:
        status = structs.replace(report.status, observed_at=NOON.isoformat())
        day.store.write_report(structs.replace(unpack_report(report), status=status))
    day.now = NOON + timedelta(minutes=4)
    day.tick()
    assert day.files() == {}
    day.now = NOON
    day.tick()
    assert len(day.placed()) == 8


def test_it_waits_until_the_plan_is_stable_and_requests_a_retry(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.restart(WriteSettings(DebounceConfig(), lambda: day.now_s))
    assert day.tick() == 2.0
    assert day.files() == {}
    day.now_s = 1.0
    day.lose(day.some(1))
    assert day.tick() == 2.0
    day.now_s = 3.0
    assert day.tick() is None
    assert len(day.placed()) == 7


def test_it_writes_a_leaf_again_only_after_its_window(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.restart(WriteSettings(DebounceConfig(quiet_s=0.0), lambda: day.now_s))
    day.tick()
    before = day.files()
    day.lose(day.some(1))
    day.now_s = 1.0
    assert day.tick() == 4.0
    assert day.files() == before
    assert day.conditions()["Ready"] == "-RecentlyWritten"
    day.now_s = 5.0
    day.tick()
    assert len(day.placed()) == 7
    assert day.conditions()["Ready"] == "HyperNodesWritten"


def test_it_undoes_an_edit_while_a_plan_waits_for_its_window(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.restart(WriteSettings(DebounceConfig(quiet_s=0.0), lambda: day.now_s))
    day.tick()
    before = day.files()
    day.lose(day.some(1))
    day.now_s = 1.0
    day.tick()
    for file in day.store.hypernodes.iterdir():
        file.unlink()
    assert day.tick() is not None
    assert {name: text for name, (_, text) in day.files().items()} == {
        name: text for name, (_, text) in before.items()
    }
    day.now_s = 5.0
    day.tick()
    assert len(day.placed()) == 7


def test_it_removes_all_hypernodes_whatever_their_window(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.restart(WriteSettings(DebounceConfig(quiet_s=0.0), lambda: day.now_s))
    day.tick()
    day.want(outputs=[])
    day.tick()
    assert day.files() == {}


class UnavailableServer:
    """Refuses writes of HyperNodes as an API server that starts or is too busy does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error: TopologyError | None = None
        put = FabricStore.put

        def answer(store: FabricStore, written: HyperNode, *taken: HyperNode | None) -> bool:
            if self.error is not None:
                raise self.error
            return put(store, written, *taken)

        monkeypatch.setattr(FabricStore, "put", answer)


@pytest.mark.parametrize(
    ("asked_s", "waits_s"),
    [
        pytest.param(None, [5, 10, 20, 40, 60, 60], id="that does not say when"),
        pytest.param(32.0, [32, 32, 32, 40, 60, 60], id="for half a minute"),
    ],
)
def test_it_tries_again_soon_after_a_server_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_s: float | None, waits_s: list[float]
) -> None:
    day, server = Day(tmp_path, SMALL), UnavailableServer(monkeypatch)
    server.error = KubeUnavailable("not now", status=429, retry_after_s=asked_s)
    assert [day.tick() for _ in waits_s] == waits_s
    server.error = None
    assert day.tick() is None
    assert len(day.placed()) == 8
    server.error = KubeUnavailable("not now", status=429, retry_after_s=asked_s)
    next(iter(day.store.hypernodes.iterdir())).unlink()
    assert day.tick() == waits_s[0], "the waits begin anew after a success"


def test_it_uses_up_an_approval_that_could_not_be_removed_at_first(
    day: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = hold(day)
    assert run("approve", plan, "--store", day.root).code == 0

    def refuse(_store: FabricStore, _plan: str) -> bool:
        raise KubeUnavailable("not now", status=503)

    with monkeypatch.context() as patch:
        patch.setattr(FabricStore, "consume_approval", refuse)
        assert day.tick() == 5
    day.tick()
    assert len(day.placed()) == 16
    document = day.store.read_fabric()
    assert document is not None
    assert "annotations" not in document["metadata"], "an approval is for one time"


def test_it_waits_for_the_next_round_after_a_write_that_is_refused_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day, server = Day(tmp_path, SMALL), UnavailableServer(monkeypatch)
    server.error = KubeForbidden("no right", status=403)
    assert day.tick() is None
