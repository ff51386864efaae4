from generator.reconcile.hypernode_plan import Action, plan_changes
from generator.reconcile.writer import ApplyResult, apply_plan
from tests.generator.reconcile.cluster import FakeCluster, hypernode

TREE = [
    hypernode("leaf-1", 1, "a"),
    hypernode("leaf-2", 1, "b"),
    hypernode("pod", 2, "leaf-1", "leaf-2"),
]


def test_it_applies_a_whole_plan_and_reports_each_action() -> None:
    cluster = FakeCluster([hypernode("old", 1, "a")])
    plan = plan_changes(TREE, list(cluster.state.values()))
    seen: list[Action] = []
    result = apply_plan(plan, cluster, on_done=seen.append)
    assert result == ApplyResult(plan)
    assert result.error is None
    assert tuple(seen) == plan
    assert cluster.state == {found.name: found for found in TREE}


def test_it_stops_at_the_first_failure_and_keeps_earlier_writes() -> None:
    cluster = FakeCluster(fails_at="leaf-2")
    plan = plan_changes(TREE, [])
    seen: list[Action] = []
    result = apply_plan(plan, cluster, on_done=seen.append)
    assert result.error is not None
    assert (result.done, result.pending) == (plan[:1], plan[1:])
    assert str(result.error) == "leaf-2: the webhook does not answer"
    assert seen == list(plan[:1])
    assert set(cluster.state) == {"leaf-1"}
