"""The laws of plans: every step is valid, every stop is recoverable, the end is the desired set.

A state is a set of HyperNodes. Observed states are forests, or forests damaged by losses,
foreign objects, cycles and interrupted plans. "Valid" is what Volcano's scheduler survives: no
link to a missing HyperNode, no second parent, no parent at or below its child's tier, no empty
list. In a damaged state an action may not add to the damage.
"""

from collections.abc import Callable, Sequence

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generator.outputs.hypernode import PLACEHOLDER, HyperNode
from generator.reconcile.conflicts import find_conflicts, without_conflicts
from generator.reconcile.plan import plan_changes
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
        assert all(found.members for found in cluster.state.values())

    end = follow(desired, observed, check=check)
    assert end.state == {found.name: found for found in desired}


@modest
@given(desired=forests(), observed=damaged())
def test_it_never_adds_to_the_damage_it_finds(
    desired: list[HyperNode], observed: list[HyperNode]
) -> None:
    before = FakeCluster(observed)
    foreign = [found for found in observed if not found.is_ours]
    dangling, doubled = before.dangling(), before.doubled()

    def check(cluster: FakeCluster) -> None:
        nonlocal dangling, doubled
        assert cluster.dangling() <= dangling
        assert cluster.doubled() <= doubled
        dangling, doubled = cluster.dangling(), cluster.doubled()

    end = follow(desired, observed, check=check)
    assert all(end.state[found.name] == found for found in foreign)


@modest
@given(desired=forests(), observed=damaged())
def test_it_ends_with_the_desired_set_and_nothing_left_to_plan(
    desired: list[HyperNode], observed: list[HyperNode]
) -> None:
    end = follow(desired, observed, check=lambda _: None)
    wanted = without_conflicts(desired, observed)
    listed = {conflict.name for conflict in find_conflicts(desired, observed)}
    ours = {name: found for name, found in end.state.items() if found.is_ours}
    assert set(wanted) <= set(ours)
    assert set(ours) - set(wanted) <= listed
    assert all(ours[name].matches(found) for name, found in wanted.items())
    assert all(found.nodes or found.children for found in wanted.values())
    assert not plan_changes(desired, list(end.state.values()))


@modest
@given(desired=forests(), observed=damaged(), data=st.data())
def test_it_arrives_from_wherever_a_plan_stopped(
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
    wanted = without_conflicts(desired, observed)
    assert all(stopped.state[name].matches(found) for name, found in wanted.items())
    assert not plan_changes(desired, list(stopped.state.values()))


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
        member.name for found in end.state.values() for member in found.members
    }
