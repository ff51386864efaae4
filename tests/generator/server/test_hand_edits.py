"""What was written is restored at once, whatever the budget says, and names survive a stop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.settings import WriteSettings
from generator.reconcile.write_delays import DebounceConfig
from generator.store.fabric_store import FabricStore
from tests.generator.server.days import FABRIC, SMALL, Day
from topology.model.errors import StoreError


@pytest.fixture
def strict(tmp_path: Path) -> Day:
    """A store with HyperNodes, and a budget that lets no node move."""
    day = Day(tmp_path, FABRIC)
    day.tick()
    day.want(changeBudget={"nodesPercent": 0, "domainsPercent": 0})
    day.tick()
    return day


def contents(day: Day) -> Mapping[str, bytes]:
    return {name: text for name, (_, text) in day.files().items()}


def edit(day: Day, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the file of a HyperNode, as a person does."""
    file = day.store.hypernodes / name
    document = yaml.safe_load(file.read_text())
    change(document)
    file.write_text(yaml.safe_dump(document))


def tiers(day: Day) -> tuple[list[str], list[str]]:
    """Return the files of the leaves and of the spines."""
    found = day.store.read_hypernodes().values
    top = max(one.tier for one in found)
    leaves = sorted(f"{one.name}.yaml" for one in found if one.tier == 1)
    return leaves, sorted(f"{one.name}.yaml" for one in found if one.tier == top)


def with_members_of(day: Day, other: str) -> Callable[[dict[str, Any]], object]:
    source = yaml.safe_load((day.store.hypernodes / other).read_text())
    return lambda document: document["spec"].update(members=source["spec"]["members"])


EDITS = (
    "a leaf lists the nodes of another leaf",
    "a spine lists one leaf only",
    "a node is in a second leaf",
    "a leaf is gone",
    "a leaf has another tier",
    "all HyperNodes are gone",
)


def harm(day: Day, what: str) -> None:
    """Make one of `EDITS`."""
    (leaf, other, *_), (spine, *_) = tiers(day)
    first = yaml.safe_load((day.store.hypernodes / other).read_text())["spec"]["members"][:1]
    if what == EDITS[0]:
        edit(day, leaf, with_members_of(day, other))
    elif what == EDITS[1]:
        edit(day, spine, lambda found: found["spec"].update(members=found["spec"]["members"][:1]))
    elif what == EDITS[2]:
        edit(day, leaf, lambda found: found["spec"]["members"].extend(first))
    elif what == EDITS[3]:
        (day.store.hypernodes / leaf).unlink()
    elif what == EDITS[4]:
        edit(day, leaf, lambda found: found["spec"].update(tier=2))
    else:
        for file in day.store.hypernodes.iterdir():
            file.unlink()


@pytest.mark.parametrize("what", EDITS)
def test_it_undoes_an_edit_by_hand_without_a_budget(strict: Day, what: str) -> None:
    before = contents(strict)
    for is_restarted in (False, True):
        harm(strict, what)
        assert contents(strict) != before
        if is_restarted:
            strict.restart()
        strict.tick()
        assert contents(strict) == before
    strict.tick()
    assert strict.conditions()["Ready"] == "HyperNodesWritten"


def test_it_undoes_each_edit_while_another_plan_is_held(strict: Day) -> None:
    before = contents(strict)
    strict.lose(strict.some(16))
    strict.tick()
    plan = strict.held()
    for what in EDITS:
        harm(strict, what)
        strict.tick()
        assert contents(strict) == before, what
    strict.tick()
    assert strict.held() == plan
    assert strict.conditions()["ChangeBlocked"] == "TooManyNodes"


def test_it_undoes_each_edit_while_the_fabric_is_unknown(strict: Day) -> None:
    before = contents(strict)
    for file in strict.store.reports.iterdir():
        file.unlink()
    strict.tick()
    for what in EDITS:
        for is_restarted in (False, True):
            harm(strict, what)
            if is_restarted:
                strict.restart()
            strict.tick()
            assert contents(strict) == before, what
    assert strict.conditions()["Ready"] == "-NoData"


def test_it_undoes_an_edit_without_waiting_for_a_quiet_plan(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.restart(WriteSettings(DebounceConfig(), lambda: day.now_s))
    day.tick()
    day.now_s = 2.0
    day.tick()
    before = contents(day)
    (leaf, other, *_), _ = tiers(day)
    waits = []
    for _ in range(12):
        edit(day, leaf, with_members_of(day, other))
        wait_s = day.tick()
        waits.append(wait_s or 0.0)
        day.now_s += wait_s or 0.0
        day.tick()
        assert contents(day) == before
    assert sum(waits[:4]) <= 3.0, "the first edits are undone at once"
    assert 60 < waits[-1] <= 240.0, "a fight over an object costs few writes"


def test_it_edits_nothing_while_it_is_paused(strict: Day) -> None:
    strict.want(paused=True)
    strict.tick()
    (leaf, other, *_), _ = tiers(strict)
    edit(strict, leaf, with_members_of(strict, other))
    harmed = contents(strict)
    strict.tick()
    strict.restart()
    strict.tick()
    assert contents(strict) == harmed
    assert strict.conditions()["Ready"] == "-Paused"


def test_it_completes_an_approved_plan_that_was_cut_off(
    strict: Day, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict.lose(strict.some(16))
    strict.tick()
    strict.store.approve(strict.held())
    with monkeypatch.context() as full:
        put = FabricStore.put

        def refuse(folder: FabricStore, written: HyperNode, *taken: HyperNode | None) -> bool:
            if written.tier > 1:
                raise StoreError("the disk is full")
            return put(folder, written, *taken)

        full.setattr(FabricStore, "put", refuse)
        strict.tick()
        assert strict.conditions()["Ready"] == "-WriteFailed"
    strict.restart()
    strict.tick()
    assert len(strict.placed()) == 16
    assert strict.conditions()["Ready"] == "HyperNodesWritten"
    document = strict.store.read_fabric()
    assert document is not None
    assert "annotations" not in document["metadata"], "an approval is for one time"


def test_it_adopts_hypernodes_of_an_earlier_version_without_a_write(strict: Day) -> None:
    before = strict.files()
    (strict.store.records / "default.yaml").unlink()
    strict.restart()
    strict.tick()
    assert strict.files() == before
    assert strict.store.read_record().record is not None


def test_it_names_a_record_that_cannot_be_read_and_writes_it_anew(
    strict: Day, caplog: pytest.LogCaptureFixture
) -> None:
    (strict.store.records / "default.yaml").write_text("kind: TreeRecord")
    strict.restart()
    strict.tick()
    said = [vars(row)["problem"] for row in caplog.records if "problem" in vars(row)]
    assert [one for one in said if "treerecords/default.yaml" in one]
    strict.tick()
    assert strict.store.read_record().record is not None


def foreign(day: Day, name: str, *, child: str) -> None:
    member = {"type": "HyperNode", "selector": {"exactMatch": {"name": child}}}
    document = {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": 2, "members": [member]},
    }
    (day.store.hypernodes / f"{name}.yaml").write_text(yaml.safe_dump(document))


@pytest.mark.parametrize("is_held", [False, True], ids=["nothing is held", "a plan is held"])
def test_it_names_a_foreign_parent_of_a_leaf(
    strict: Day, caplog: pytest.LogCaptureFixture, *, is_held: bool
) -> None:
    caplog.set_level(logging.INFO)
    (leaf, *_), _ = tiers(strict)
    if is_held:
        strict.lose(strict.some(16))
        strict.tick()
    foreign(strict, "theirs", child=leaf.removesuffix(".yaml"))
    strict.tick()
    strict.tick()
    (ready,) = (one for one in strict.fabric().status.conditions if one.type == "Ready")
    assert (ready.status, ready.reason) == ("False", "ForeignHyperNodes")
    assert "the foreign HyperNode theirs lists it as a child" in ready.message
    assert bool(strict.fabric().status.held) is is_held
    parents = [
        one.name
        for one in strict.store.read_hypernodes().values
        if leaf.removesuffix(".yaml") in one.children
    ]
    assert parents == ["theirs"], "a second parent would stop the scheduler"
    (strict.store.hypernodes / "theirs.yaml").unlink()
    strict.tick()
    strict.tick()
    assert strict.conditions()["Ready"] == ("-ChangeBlocked" if is_held else "HyperNodesWritten")


def test_it_counts_the_changes_of_the_last_hour_with_those_of_a_plan(tmp_path: Path) -> None:
    day = Day(tmp_path, FABRIC)
    day.tick()
    for number, num_placed in ((1, 31), (2, 30), (3, 29), (4, 29)):
        day.lose(day.some(number))
        day.now += timedelta(minutes=5)
        day.restart()
        day.tick()
        assert len(day.placed()) == num_placed
    assert day.conditions()["ChangeBlocked"] == "TooManyNodes"
    (blocked,) = (one for one in day.fabric().status.conditions if one.type == "ChangeBlocked")
    assert "1 of 29 nodes would leave a domain, at most 2 may (10 %), and 3 left one in the " in (
        blocked.message
    )
    day.now += timedelta(minutes=50, seconds=1)  # times are recorded as whole seconds
    day.tick()
    assert len(day.placed()) == 28
    assert day.conditions()["ChangeBlocked"] == "-WithinBudget"


@pytest.mark.parametrize("jump", [timedelta(days=400), timedelta(hours=2)])
def test_it_forgets_changes_of_a_clock_that_was_ahead_after_the_usual_time(
    tmp_path: Path, jump: timedelta
) -> None:
    day = Day(tmp_path, FABRIC)
    day.tick()
    day.now += jump
    day.lose(day.some(3))
    day.tick()
    assert len(day.placed()) == 29
    day.now -= jump
    day.lose(day.some(4))
    day.restart()
    day.tick()
    assert day.conditions()["ChangeBlocked"] == "TooManyNodes", "a wrong clock frees no budget"
    day.now += timedelta(minutes=59)
    day.tick()
    assert len(day.placed()) == 29
    day.now += timedelta(minutes=2)
    day.tick()
    assert len(day.placed()) == 28


def test_it_counts_a_node_that_leaves_and_returns_once(tmp_path: Path) -> None:
    day = Day(tmp_path, FABRIC)
    day.tick()
    reports = {file: file.read_text() for file in day.store.reports.iterdir()}
    for _ in range(2):
        day.lose(day.some(2))
        day.tick()
        assert len(day.placed()) == 30
        for file, text in reports.items():
            file.write_text(text)
        day.tick()
        assert len(day.placed()) == 32


def test_it_counts_each_plan_alone_without_a_window(tmp_path: Path) -> None:
    day = Day(tmp_path, FABRIC)
    day.want(changeBudget={"windowSeconds": 0})
    day.tick()
    for number in range(1, 5):
        day.lose(day.some(number))
        day.tick()
        assert len(day.placed()) == 32 - number


def test_it_does_not_charge_what_a_person_approved(tmp_path: Path) -> None:
    day = Day(tmp_path, FABRIC)
    day.tick()
    day.lose(day.some(16))
    day.tick()
    day.store.approve(day.held())
    day.tick()
    assert len(day.placed()) == 16
    day.lose(day.some(17))
    day.tick()
    assert len(day.placed()) == 15


def test_it_removes_all_hypernodes_if_nobody_wants_them(tmp_path: Path) -> None:
    day = Day(tmp_path, FABRIC)
    day.tick()
    theirs = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode"}
    spec = {"tier": 1, "members": []}
    (day.store.hypernodes / "theirs.yaml").write_text(
        yaml.safe_dump(theirs | {"metadata": {"name": "theirs"}, "spec": spec})
    )
    day.want(outputs=[], paused=True)
    day.tick()
    assert len(day.files()) > 1
    day.want(outputs=[])
    day.tick()
    assert set(day.files()) == {"theirs.yaml"}
    assert day.conditions() == day.conditions() | {
        "Ready": "-NotWanted",
        "ChangeBlocked": "-WithinBudget",
    }
    day.want()
    day.tick()
    assert len(day.placed()) == 32


def test_it_keeps_hypernodes_if_outputs_is_left_empty_in_yaml(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.tick()
    before = day.files()
    day.want(outputs=None)
    day.tick()
    assert day.files() == before


def test_it_removes_hypernodes_that_nobody_wants_without_any_report(tmp_path: Path) -> None:
    day = Day(tmp_path, SMALL)
    day.tick()
    for file in day.store.reports.iterdir():
        file.unlink()
    day.want(outputs=[])
    day.restart()
    day.tick()
    assert day.files() == {}
