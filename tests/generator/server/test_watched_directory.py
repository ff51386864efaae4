"""A follower has the same tree and writes nothing until it becomes the leader."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from generator.reconcile.round_results import RoundOutcome
from generator.reconcile.settings import WriteSettings
from generator.server.loop import LoopConfig, ReconcileLoop
from tests.generator.folders import StoreFolder
from tests.generator.server.days import MINUTE, Day


class Replica:
    """Rounds on the store of a day, as leader or follower, with their outcomes."""

    def __init__(self, day: Day) -> None:
        self.is_leader = False
        self.published: list[object] = []
        self.outcomes: list[RoundOutcome] = []
        course = LoopConfig(
            period=MINUTE,
            now=lambda: day.now,
            writing=WriteSettings(is_leader=lambda: self.is_leader),
            round_listeners=(self.outcomes.append,),
        )
        store = StoreFolder(day.root)
        self.rounds = ReconcileLoop(
            store, course, publish=lambda one, _: self.published.append(one)
        )

    def tick(self) -> RoundOutcome:
        self.rounds.tick()
        return self.outcomes[-1]


@pytest.fixture
def fresh(tmp_path: Path) -> Day:
    """A store without any HyperNode."""
    return Day(tmp_path)


def test_it_publishes_but_writes_nothing_as_a_follower(fresh: Day) -> None:
    replica = Replica(fresh)
    outcome = replica.tick()
    assert len(replica.published) == 1
    assert outcome.tree is not None
    assert outcome.completed_actions == ()
    assert not fresh.files()
    assert fresh.store.read_fabric() is None


def test_it_writes_its_tree_when_it_becomes_the_leader(fresh: Day) -> None:
    replica = Replica(fresh)
    replica.tick()
    replica.is_leader = True
    outcome = replica.tick()
    assert outcome.completed_plan
    assert fresh.placed() == set(fresh.scene.hosts)
    assert fresh.conditions()["Ready"] == "HyperNodesWritten"
    assert len(replica.published) == 1


def test_it_tracks_the_tree_generation_of_the_leader(day: Day) -> None:
    replica = Replica(day)
    assert replica.tick().generation == day.fabric().status.generation == 1
    day.lose(day.some(1))
    assert replica.tick().generation == 1, "the leader has not written it yet"
    day.tick()
    assert replica.tick().generation == day.fabric().status.generation == 2
    replica.is_leader = True
    assert replica.tick().generation == 2


def test_it_logs_nothing_about_the_plan_that_the_leader_holds(
    day: Day, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(day)
    day.lose(day.some(16))
    day.tick()
    held = day.held()
    caplog.clear()
    caplog.set_level(logging.INFO)
    outcome = replica.tick()
    assert outcome.held is not None
    assert outcome.held.hash == held
    assert not [one for one in caplog.messages if "held" in one]


def test_the_status_has_tiers_findings_and_a_new_generation(day: Day) -> None:
    status = day.fabric().status
    assert [(one.tier, one.name, one.domains, one.nodes) for one in status.tiers] == [
        (1, "leaf", 4, 32),
        (2, "spine", 1, 32),
    ]
    assert (status.generation, status.unplaced) == (1, 0)
    day.lose(day.some(1))
    day.tick()
    status = day.fabric().status
    assert status.generation == 2
    assert status.tiers[0].nodes == 31
    day.restart()
    day.tick()
    assert day.fabric().status.generation == 2, "the same tree after a restart"


def test_it_uses_the_tier_names_of_the_fabric_object(day: Day) -> None:
    day.want(tierNames=["rack", "row"])
    day.tick()
    names = {one.tier_name for one in day.store.read_hypernodes().values}
    assert names == {"rack", "row"}
    assert [one.name for one in day.fabric().status.tiers] == ["rack", "row"]
