"""The laws of plans: every step is valid, every stop is recoverable, the end is the desired set.

A state is a set of HyperNodes. Observed states are forests, or forests damaged by losses, foreign
objects, cycles and interrupted plans. A state is valid if Volcano's scheduler survives it: no link
to a missing HyperNode, no second parent, no parent at or below the tier of its child, no empty
list, no node in two leaves: the scheduler merges leaves that share a node. In a damaged state an
action must not add to the damage.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generator.outputs.hypernode.model import PLACEHOLDER, HyperNode
from generator.reconcile.conflicts import find_conflicts, without_conflicts
from generator.reconcile.hypernode_plan import plan_changes
from tests.effort import examples
from tests.generator.reconcile.cluster import FakeCluster
from tests.generator.reconcile.forests import damaged, evolutions, forests

modest = settings(max_examples=examples(100), deadline=None)


def follow(
    desired: Sequence[HyperNode],
    observed: Sequence[HyperNode],
    *,
    check: Callable[[FakeCluster], None],
) -> FakeCluster:
    cluster = FakeCluster(observed)
    for action in plan_changes(desired, observed):
        cluster.apply(action)
        check(cluster)
    return cluster


@modest
@given(pair=st.tuples(forests(), forests()) | evolutions())
def test_it_never_shows_a_missing_child_or_a_second_parent(
    pair: tuple[list[HyperNode], list[HyperNode]],
) -> None:
    desired, observed = pair

    def check(cluster: FakeCluster) -> None:
        assert not cluster.dangling()
        assert not cluster.doubled()
        assert not cluster.disordered()
        assert not cluster.shared()
        assert all(node.members for node in cluster.state.values())

    end = follow(desired, observed, check=check)
    assert end.state == {node.name: node for node in desired}


def leaves_of(forest: Sequence[HyperNode]) -> dict[str, str]:
    return {node: found.name for found in forest for node in found.nodes}


@modest
@given(pair=st.tuples(forests(), forests()) | evolutions())
def test_it_moves_the_nodes_of_one_leaf_to_one_other_leaf_at_a_time(
    pair: tuple[list[HyperNode], list[HyperNode]],
) -> None:
    desired, observed = pair
    old, new = leaves_of(observed), leaves_of(desired)
    staying = old.keys() & new.keys()

    def check(cluster: FakeCluster) -> None:
        between = staying - cluster.placed()
        assert len({(old[node], new[node]) for node in between}) <= 1

    follow(desired, observed, check=check)
    num_moved = sum(old[node] != new[node] for node in staying)
    num_bound = 2 * num_moved + 3 * (len(desired) + len(observed))
    assert len(plan_changes(desired, observed)) <= num_bound


@modest
@given(observed=forests(), goals=st.lists(forests(), min_size=1, max_size=4), data=st.data())
def test_it_shares_no_node_and_loses_no_child_over_plans_that_are_cut_off(
    observed: list[HyperNode], goals: list[list[HyperNode]], data: st.DataObject
) -> None:
    cluster = FakeCluster(observed)
    for goal in (*goals, goals[0]):
        actions = plan_changes(goal, list(cluster.state.values()))
        for action in actions[: data.draw(st.integers(0, len(actions)))]:
            cluster.apply(action)
            assert not cluster.shared()
            assert not cluster.dangling()
            assert not cluster.doubled()
            assert not cluster.disordered()


@modest
@given(desired=forests(), observed=damaged())
def test_it_repairs_nodes_in_two_leaves_before_it_moves_others(
    desired: list[HyperNode], observed: list[HyperNode]
) -> None:
    cluster = FakeCluster(observed)
    for action in plan_changes(desired, observed):
        if action.op == "create":
            assert not cluster.shared()
        cluster.apply(action)
    assert not cluster.shared()


@modest
@given(desired=forests(), observed=damaged())
def test_it_never_adds_to_the_damage_it_finds(
    desired: list[HyperNode], observed: list[HyperNode]
) -> None:
    before = FakeCluster(observed)
    foreign = [node for node in observed if not node.is_ours]
    dangling, doubled, shared = before.dangling(), before.doubled(), before.shared()

    def check(cluster: FakeCluster) -> None:
        nonlocal dangling, doubled, shared
        assert cluster.dangling() <= dangling
        assert cluster.doubled() <= doubled
        assert cluster.shared() <= shared
        dangling, doubled, shared = cluster.dangling(), cluster.doubled(), cluster.shared()

    end = follow(desired, observed, check=check)
    assert all(end.state[node.name] == node for node in foreign)


@modest
@given(desired=forests(), observed=damaged())
def test_it_ends_with_the_desired_set_and_nothing_left_to_plan(
    desired: list[HyperNode], observed: list[HyperNode]
) -> None:
    end = follow(desired, observed, check=lambda _: None)
    expected = without_conflicts(desired, observed)
    listed = {conflict.name for conflict in find_conflicts(desired, observed)}
    own_nodes = {name: node for name, node in end.state.items() if node.is_ours}
    assert set(expected) <= set(own_nodes)
    assert set(own_nodes) - set(expected) <= listed
    assert all(own_nodes[name].matches(node) for name, node in expected.items())
    assert all(node.nodes or node.children for node in expected.values())
    assert not plan_changes(desired, list(end.state.values()))


@modest
@given(desired=forests(), observed=damaged(), data=st.data())
def test_it_reaches_the_desired_set_from_any_stopped_plan(
    desired: list[HyperNode], observed: list[HyperNode], data: st.DataObject
) -> None:
    actions = plan_changes(desired, observed)
    assume(actions)
    stopped = FakeCluster(observed)
    for action in actions[: data.draw(st.integers(0, len(actions) - 1))]:
        stopped.apply(action)
    other = data.draw(forests(), label="another desired set")
    for goal in (other, desired):
        for action in plan_changes(goal, list(stopped.state.values())):
            stopped.apply(action)
    expected = without_conflicts(desired, observed)
    assert all(stopped.state[name].matches(node) for name, node in expected.items())
    assert not plan_changes(desired, list(stopped.state.values()))


def check_state(cluster: FakeCluster) -> None:
    assert not cluster.dangling()
    assert not cluster.doubled()
    assert not cluster.disordered()
    assert not cluster.shared()


@modest
@given(pair=st.tuples(forests(), forests()) | evolutions(), data=st.data())
def test_a_hypernode_that_is_being_deleted_may_disappear_after_any_plan(
    pair: tuple[list[HyperNode], list[HyperNode]], data: st.DataObject
) -> None:
    desired, observed = pair
    deleted = data.draw(st.sets(st.sampled_from([found.name for found in observed] or [""])))
    marked = [
        replace(found, finalizers=("a.org/b",)) if found.name in deleted else found
        for found in observed
    ]
    listed = {link for link in FakeCluster(marked).links() if link[1] in deleted}

    def check(cluster: FakeCluster) -> None:
        nonlocal listed
        now_listed = {link for link in cluster.links() if link[1] in deleted}
        assert now_listed <= listed, "no parent lists it anew"
        listed = now_listed
        check_state(cluster)

    end = follow(desired, marked, check=check)
    assert not listed
    assert deleted <= end.state.keys() | {""}, "no second delete"
    assert not plan_changes(desired, list(end.state.values())), "nothing is left to plan"
    for name in data.draw(st.permutations(sorted(deleted))):
        end.state.pop(name, None)
        assert not end.dangling()
    rest = follow(desired, list(end.state.values()), check=check_state)
    assert rest.state == {node.name: node for node in desired}


@modest
@given(desired=forests(), observed=damaged(), data=st.data())
def test_it_does_not_depend_on_the_order_of_its_inputs(
    desired: list[HyperNode], observed: list[HyperNode], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(desired)), data.draw(st.permutations(observed))
    assert plan_changes(*shuffled) == plan_changes(desired, observed)


@modest
@given(desired=forests(), observed=forests())
def test_it_leaves_no_placeholder_behind(
    desired: list[HyperNode], observed: list[HyperNode]
) -> None:
    end = follow(desired, observed, check=lambda _: None)
    assert PLACEHOLDER not in {
        member.name for node in end.state.values() for member in node.members
    }
