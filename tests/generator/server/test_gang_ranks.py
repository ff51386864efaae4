"""The ranks of gangs that run while a server serves: a calm finding, and no write.

A gang may be too young for a finding, in its best order, of unknown ranks, or in a poor order for
long enough. Whatever it is, HyperNodes, status and conditions stay as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from generator.jobs.gang_ranks import MIN_AGE, GangRanks
from generator.objects.pod_ranks import PodRank
from generator.objects.pods import BoundPod
from generator.reconcile.round_results import RoundOutcome
from generator.server.loop import LoopConfig, ReconcileLoop
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.folders import StoreFolder
from tests.generator.scenes import PAIRS, Scene
from tests.generator.server.days import MINUTE, NOON
from topology.model.facts import FindingKind, Severity
from topology.model.tree import TopologyTree

TREE = build_tree_of_shape("2x2x2")
"""Nodes node-1-1-1 to node-2-2-2: spines, leaves, nodes."""


def gang_of(nodes: list[str], name: str = "ml/a", *, is_ranked: bool = True) -> list[BoundPod]:
    """Return the pods of a gang that is bound at noon, in the order of their ranks."""
    ranks = [PodRank(indices=(rank,)) if is_ranked else PodRank() for rank in range(len(nodes))]
    return [
        BoundPod(name, node, NOON, {}, f"w{rank.indices}", rank)
        for node, rank in zip(nodes, ranks, strict=True)
    ]


class _GangStore(StoreFolder):
    """A folder in which gangs run."""

    pods: tuple[BoundPod, ...] = ()

    def read_bound_pods(self) -> tuple[BoundPod, ...]:
        return self.pods


class Served:
    """Rounds on a scene with gangs."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.store = _GangStore(scene.root / "store")
        self.now = NOON
        self.outcomes: list[RoundOutcome] = []
        config = LoopConfig(
            period=timedelta(days=1),
            now=lambda: self.now,
            round_listeners=(self.outcomes.append,),
        )
        self.rounds = ReconcileLoop(self.store, config, publish=lambda _snapshot, _pods: None)

    def tick(self, *pods: BoundPod, after: timedelta = timedelta()) -> RoundOutcome:
        self.now, self.store.pods = self.now + after, pods
        self.rounds.tick()
        return self.outcomes[-1]

    def files(self) -> Mapping[Path, tuple[int, bytes]]:
        """Return inode and content of every object: a rewritten file has a new inode."""
        files = [file for file in self.store.fabrics.parent.rglob("*") if file.is_file()]
        return {file: (file.stat().st_ino, file.read_bytes()) for file in files}

    def far_apart(self) -> list[str]:
        """Return nodes of two leaves in turn."""
        tree = self.outcomes[-1].tree
        assert tree is not None
        first, second, *_ = (row for row in tree.domains if row.tier == 1)
        pairs = zip(tree.nodes_of(first)[:2], tree.nodes_of(second)[:2], strict=True)
        return [node for pair in pairs for node in pair]


@pytest.fixture
def served(tmp_path: Path) -> Served:
    scene = Scene.of(tmp_path, PAIRS)
    scene.store()
    served = Served(scene)
    served.tick()
    return served


def test_a_gang_in_a_poor_order_is_an_info_finding_with_the_better_order(served: Served) -> None:
    nodes = served.far_apart()
    outcome = served.tick(*gang_of(nodes), after=MIN_AGE)
    (finding,) = outcome.gang_findings
    assert (finding.kind, finding.device) == (FindingKind.RANK_ORDER, "ml/a")
    assert finding.severity is Severity.INFO
    assert finding.impact.gangs == ("ml/a",)
    assert "leaves a leaf 4 times instead of 2" in finding.message
    assert "toponaut ranks ml/a --kube" in finding.message
    order = [end.device for end in finding.ports]
    assert sorted(order) == sorted(nodes)
    (audit,) = GangRanks().update(require_tree(outcome), gang_of(order)).values()
    assert audit is not None
    assert audit.is_best


def require_tree(outcome: RoundOutcome) -> TopologyTree:
    assert outcome.tree is not None
    return outcome.tree


def test_a_gang_changes_no_object_and_no_condition(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    before, conditions = served.files(), served.outcomes[-1].conditions
    gang = gang_of(served.far_apart())
    for after in (timedelta(), MIN_AGE, MINUTE):
        outcome = served.tick(*gang, after=after)
        assert (outcome.findings, outcome.conditions) == (served.outcomes[0].findings, conditions)
    assert served.tick(after=MINUTE).all_findings == served.outcomes[0].findings
    assert served.files() == before
    assert caplog.messages == ["finding appeared", "finding gone"]


def test_a_gang_that_lives_a_minute_leaves_no_trace(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    gang, before = gang_of(served.far_apart()), served.files()
    for after in (timedelta(), MINUTE):
        assert served.tick(*gang, after=after).gang_findings == ()
    assert served.tick().gang_findings == ()
    assert (served.files(), caplog.messages) == (before, [])


def test_a_gang_has_no_finding_while_one_of_its_pods_is_young(served: Served) -> None:
    first, *others = gang_of(served.far_apart())
    served.tick(after=MIN_AGE)
    for bound_at in (served.now, None):
        outcome = served.tick(first._replace(bound_at=bound_at), *others)
        assert (outcome.gang_findings, len(outcome.gang_ranks)) == ((), 1)


def test_a_good_order_and_unknown_ranks_give_no_finding(served: Served) -> None:
    nodes = served.far_apart()
    best = gang_of(nodes[::2] + nodes[1::2], "ml/best")
    unknown = gang_of(nodes, "ml/unknown", is_ranked=False)
    outcome = served.tick(*best, *unknown, after=MIN_AGE)
    assert outcome.gang_findings == ()
    assert outcome.gang_ranks["ml/best"] is not None
    assert outcome.gang_ranks["ml/unknown"] is None


def test_only_gangs_whose_pods_changed_are_audited_again() -> None:
    ranks = GangRanks()
    still, changing = gang_of(list(TREE.nodes[:3]), "ml/a"), gang_of(list(TREE.nodes[3:]), "ml/b")
    first = ranks.update(TREE, [*still, *changing])
    second = ranks.update(TREE, [*still, *changing[:-1]])
    assert second["ml/a"] is first["ml/a"]
    assert second["ml/b"] != first["ml/b"]
    assert list(ranks.update(TREE, changing)) == ["ml/b"]
    other_tree = ranks.update(build_tree_of_shape("1x1x8"), still)
    assert other_tree["ml/a"] != first["ml/a"]
