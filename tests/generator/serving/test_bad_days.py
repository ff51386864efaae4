"""Bad days of a served store: what is lost, cut short or renamed changes no HyperNode unasked.

Of each day the test says what happens to the store between two rounds; what stands then is
compared by inode and content, so that a file that was rewritten alike counts as written. The
fabric has 32 hosts, eight on each pair of leaves, unless a test says otherwise.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from generator.debounce import Pace
from generator.fabric_object import FabricDocument, parse_fabric_document
from generator.guarding import Writing
from generator.reconcile.conditions import standing_in
from generator.reconcile.policy import with_approval
from generator.serving import Rounds
from generator.store.directory import DirectoryStore
from tests.generator.scenes import Scene, run
from topology.facts import Medium
from topology.synthetic import FabricKind, FabricSpec

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
FABRIC = FabricSpec(FabricKind.DUAL_HOMED, 32, radix=16, medium=Medium.ETHERNET)
SMALL = FabricSpec(FabricKind.DUAL_HOMED, 8, radix=8, medium=Medium.ETHERNET)


class Day:
    """A served store, and what happens to it."""

    def __init__(self, root: Path, spec: FabricSpec = FABRIC, *, is_listed: bool = False) -> None:
        self.scene = Scene.of(root, spec)
        self.root = self.scene.store()
        self.store = DirectoryStore(self.root)
        self.nodes = self.scene.nodes() if is_listed else None
        self.now = NOON
        self.now_s = 0.0
        self.restart()

    def restart(self, writing: Writing | None = None) -> None:
        self.rounds = Rounds(
            self.root,
            nodes=self.nodes,
            period=MINUTE,
            now=lambda: self.now,
            publish=lambda _snapshot: None,
            writing=writing or Writing(),
        )

    def tick(self) -> float | None:
        return self.rounds.tick()

    def files(self) -> Mapping[str, tuple[int, bytes]]:
        """Return inode and content of every HyperNode."""
        found = self.store.hypernodes.iterdir() if self.store.hypernodes.exists() else ()
        return {file.name: (file.stat().st_ino, file.read_bytes()) for file in found}

    def placed(self) -> set[str]:
        """Return the nodes that are in a HyperNode."""
        return {node for one in self.store.read_hypernodes().hypernodes for node in one.nodes}

    def some(self, num: int) -> list[str]:
        """Return the first hosts."""
        return self.scene.hosts[:num]

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Change the text of every report; its file is named after it."""
        for file in list(self.store.reports.iterdir()):
            text = change(file.read_text())
            file.unlink()
            name = json.loads(text)["metadata"]["name"]
            file.with_name(f"{name}.yaml").write_text(text)

    def lose(self, hosts: Collection[str]) -> None:
        """Let hosts vanish: their reports, and what switches tell of them."""
        for file in list(self.store.reports.iterdir()):
            if file.stem in hosts:
                file.unlink()
                continue
            report = json.loads(file.read_text())
            for port in report["spec"]["ports"]:
                near = port.get("neighbors", [])
                port["neighbors"] = [one for one in near if not _names(one, hosts)]
            file.write_text(json.dumps(report))

    def fabric(self) -> FabricDocument:
        document = self.store.read_fabric()
        assert document is not None
        return parse_fabric_document(document)

    def conditions(self) -> dict[str, str]:
        """Return the reason of each condition, with a minus where it is false."""
        return {
            one.type.value: one.reason if one.status == "True" else f"-{one.reason}"
            for one in self.fabric().status.conditions
        }

    def held(self) -> str:
        """Return the hash of the plan that is held."""
        held = standing_in(self.store.read_fabric()).held
        assert held is not None
        return held.hash

    def want(self, **spec: object) -> None:
        """Write what people want into the Fabric object."""
        document = self.store.read_fabric() or with_approval(None, "0" * 16)
        self.store.write_fabric(document | {"spec": spec})


def _names(neighbor: Mapping[str, Any], hosts: Collection[str]) -> bool:
    return neighbor.get("name") in hosts


@pytest.fixture
def day(tmp_path: Path) -> Day:
    made = Day(tmp_path)
    made.tick()
    assert made.placed() == set(made.scene.hosts)
    return made


def hold(day: Day, num: int = 16) -> str:
    """Let hosts vanish and return the hash of the plan that is held then."""
    before = day.files()
    day.lose(day.some(num))
    day.tick()
    assert day.files() == before
    return day.held()


def test_it_deletes_nothing_when_all_reports_vanish(day: Day) -> None:
    before = day.files()
    for file in day.store.reports.iterdir():
        file.unlink()
    for _ in range(2):
        day.tick()
    assert day.files() == before
    assert day.conditions()["Ready"] == "-NoData"


def test_it_deletes_nothing_when_the_reports_of_half_of_the_hosts_vanish(day: Day) -> None:
    before = day.files()
    for host in day.some(16):
        (day.store.reports / f"{host}.yaml").unlink()
    day.tick()
    assert day.files() == before


def test_it_holds_the_loss_of_half_of_the_hosts_and_tells_it(day: Day) -> None:
    plan = hold(day)
    held = day.fabric().status.held
    assert held is not None
    assert (held.hash, held.moved_nodes, held.since) == (plan, 16, "2026-07-01T12:00:00Z")
    assert day.conditions()["ChangeBlocked"] == "TooManyNodes"
    assert day.conditions()["Ready"] == "-ChangeBlocked"


@pytest.mark.parametrize(("num", "is_held"), [(1, False), (3, False), (4, True)])
def test_it_lets_a_tenth_of_the_nodes_go_and_no_more(day: Day, num: int, *, is_held: bool) -> None:
    day.lose(day.some(num))
    day.tick()
    assert len(day.placed()) == (32 if is_held else 32 - num)


@pytest.mark.parametrize(("num", "is_held"), [(3, False), (4, True)])
def test_it_follows_new_names_of_a_tenth_of_the_nodes_and_no_more(
    day: Day, num: int, *, is_held: bool
) -> None:
    def rename(text: str) -> str:
        for host in day.some(num):
            text = text.replace(host, f"new-{host}")
        return text

    day.rewrite(rename)
    day.tick()
    assert len([name for name in day.placed() if name.startswith("new-")]) == (
        0 if is_held else num
    )


def test_it_writes_nothing_when_a_switch_is_replaced(day: Day) -> None:
    before = day.files()
    day.rewrite(lambda text: text.replace("02:5c:00:00:00:00", "02:ff:00:00:00:00"))
    day.tick()
    assert day.files() == before
    assert day.conditions()["Ready"] == "HyperNodesWritten"


@pytest.mark.parametrize("keep", [0.2, 0.6])
def test_it_keeps_hypernodes_when_the_list_of_nodes_is_cut_short(
    tmp_path: Path, keep: float
) -> None:
    day = Day(tmp_path, is_listed=True)
    day.tick()
    before = day.files()
    assert day.nodes is not None
    text = day.nodes.read_text()
    listed = text.splitlines(keepends=True)
    day.nodes.write_text("".join(listed[: int(len(listed) * keep)]))
    day.tick()
    assert day.files() == before
    day.nodes.write_text(text)
    day.tick()
    assert day.files() == before
    assert day.conditions()["ChangeBlocked"] == "-WithinBudget"


def test_it_makes_hypernodes_again_that_somebody_deleted(day: Day) -> None:
    before = {name: content for name, (_, content) in day.files().items()}
    for file in day.store.hypernodes.iterdir():
        file.unlink()
    day.tick()
    assert {name: content for name, (_, content) in day.files().items()} == before


def test_it_comes_back_to_the_same_hypernodes_when_evidence_comes_back(day: Day) -> None:
    kept = {file: file.read_bytes() for file in day.store.reports.iterdir()}
    before = day.files()
    hold(day)
    for file, content in kept.items():
        file.write_bytes(content)
    day.tick()
    assert day.files() == before
    assert day.conditions()["ChangeBlocked"] == "-WithinBudget"
    assert day.fabric().status.held is None


def test_it_carries_out_a_held_plan_that_is_approved_once(day: Day) -> None:
    plan = hold(day)
    assert run("approve", plan, "--store", day.root).code == 0
    day.tick()
    assert len(day.placed()) == 16
    assert day.fabric().status.held is None
    assert day.conditions()["Ready"] == "HyperNodesWritten"
    document = day.store.read_fabric()
    assert document is not None
    assert "annotations" not in document["metadata"], "an approval is for one time"


def test_it_does_nothing_on_the_approval_of_another_plan(day: Day) -> None:
    before = day.files()
    plan = hold(day)
    assert run("approve", plan[::-1], "--store", day.root).code == 0
    day.tick()
    assert day.files() == before
    assert day.held() == plan


def test_it_asks_again_when_an_approved_plan_has_changed(day: Day) -> None:
    before = day.files()
    plan = hold(day)
    run("approve", plan, "--store", day.root)
    day.lose(day.some(17))
    day.tick()
    assert day.files() == before
    assert day.held() != plan


def test_it_carries_out_a_held_plan_when_the_budget_is_raised(day: Day) -> None:
    hold(day)
    day.want(changeBudget={"nodesPercent": 50, "domainsPercent": 50})
    day.tick()
    assert len(day.placed()) == 16


def test_it_holds_by_the_default_budget_when_the_budget_is_no_use(
    day: Day, caplog: pytest.LogCaptureFixture
) -> None:
    day.want(changeBudget={"nodesPercent": 5000})
    hold(day)
    said = [vars(row)["problem"] for row in caplog.records if "problem" in vars(row)]
    assert [one for one in said if "spec.changeBudget" in one]


def test_it_releases_a_plan_by_time_only_where_that_is_wanted(day: Day) -> None:
    before = day.files()
    hold(day)
    day.now += timedelta(days=30)
    day.tick()
    assert day.files() == before
    day.want(changeBudget={"releaseAfterSeconds": 600})
    day.tick()
    assert len(day.placed()) == 16


def test_it_counts_the_time_that_a_plan_is_held_over_a_restart(day: Day) -> None:
    plan = hold(day)
    day.want(changeBudget={"releaseAfterSeconds": 600})
    day.now += timedelta(seconds=300)
    day.restart()
    day.tick()
    assert day.held() == plan
    day.now += timedelta(seconds=300)
    day.tick()
    assert len(day.placed()) == 16


def test_it_tells_a_held_plan_once(day: Day, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    plan = hold(day)
    file = day.store.fabrics / "default.yaml"
    stamp = file.stat().st_ino
    for minutes in range(1, 4):
        day.now = NOON + minutes * MINUTE
        day.tick()
    told = [vars(row)["plan"] for row in caplog.records if row.getMessage() == "held plan appeared"]
    assert told == [plan]
    assert file.stat().st_ino == stamp, "what stands is not written again"


def test_it_writes_no_condition_anew_at_rest(day: Day) -> None:
    file = day.store.fabrics / "default.yaml"
    stamp = file.stat().st_ino
    for minutes in range(1, 4):
        day.now = NOON + minutes * MINUTE
        day.tick()
    assert file.stat().st_ino == stamp


def test_it_goes_on_observing_and_writes_nothing_while_paused(day: Day) -> None:
    before = day.files()
    day.want(paused=True)
    day.lose(day.some(1))
    day.tick()
    assert day.files() == before
    assert day.conditions()["Ready"] == "-Paused"
    day.want(paused=False)
    day.tick()
    assert len(day.placed()) == 31


def test_it_writes_nothing_while_it_cannot_read_whether_it_is_paused(
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
    file.unlink()
    day.tick()
    assert len(day.placed()) == 8


def test_it_only_tells_what_it_would_write_in_a_dry_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    day = Day(tmp_path, SMALL)
    day.restart(Writing(is_dry=True))
    for _ in range(2):
        day.tick()
    assert day.files() == {}
    assert day.conditions()["Ready"] == "-DryRun"
    told = [
        (vars(row)["action"], vars(row)["hypernode"])
        for row in caplog.records
        if row.getMessage() == "planned change appeared"
    ]
    planned = run("plan", "--store", day.root, "-o", "json").document
    assert sorted(told) == sorted((row["op"], row["name"]) for row in planned)


@pytest.mark.parametrize(("known", "is_written"), [(4, True), (3, False)])
def test_it_begins_when_half_of_the_listed_nodes_are_known(
    tmp_path: Path, known: int, *, is_written: bool
) -> None:
    day = Day(tmp_path, SMALL, is_listed=True)
    day.lose(day.scene.hosts[known:])
    day.tick()
    assert bool(day.files()) is is_written
    blocked = "-WithinBudget" if is_written else "NoQuorum"
    assert day.conditions()["ChangeBlocked"] == blocked


def test_it_does_not_begin_with_reports_that_are_too_old(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL, is_listed=True)
    for report in day.store.read_reports().reports:
        status = report.status.model_copy(update={"observed_at": NOON.isoformat()})
        day.store.write_report(report.model_copy(update={"status": status}))
    day.now = NOON + timedelta(minutes=4)
    day.tick()
    assert day.files() == {}
    day.now = NOON
    day.tick()
    assert len(day.placed()) == 8


def test_it_waits_until_the_fabric_is_quiet_and_asks_to_look_again(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.restart(Writing(Pace(), lambda: day.now_s))
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
    day.restart(Writing(Pace(quiet_s=0.0), lambda: day.now_s))
    day.tick()
    before = day.files()
    day.lose(day.some(1))
    day.now_s = 1.0
    assert day.tick() == 4.0
    assert day.files() == before
    day.now_s = 5.0
    day.tick()
    assert len(day.placed()) == 7


def test_it_holds_no_swap_of_two_cables_in_a_small_fabric(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.tick()
    day.lose(day.some(2))
    day.tick()
    assert len(day.placed()) == 6
