"""The laws of applies that are cut off: the same inputs lead to the same end, names included."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.generator.reconcile.applies import (
    Cabling,
    FusedStore,
    Step,
    apply_all,
    apply_once,
    check_ends_alike,
)

NUM_NODES, NUM_LEAVES = 8, 5
modest = settings(max_examples=examples(300), deadline=None)


def cablings() -> st.SearchStrategy[Cabling]:
    leaves = st.tuples(*[st.integers(0, NUM_LEAVES - 1)] * NUM_NODES)
    spines = st.tuples(*[st.integers(0, 1)] * NUM_LEAVES)
    return st.builds(Cabling, leaves, spines).filter(lambda cabling: any(cabling.leaves))


def steps() -> st.SearchStrategy[list[Step]]:
    cuts = st.none() | st.integers(0, 12)
    return st.lists(st.builds(Step, cablings(), cuts), min_size=1, max_size=5)


@modest
@given(steps=steps())
def test_it_ends_as_if_no_apply_had_been_cut_off(steps: list[Step]) -> None:
    check_ends_alike(steps)


@modest
@given(before=cablings(), after=cablings(), cuts=st.lists(st.integers(1, 12), max_size=3))
def test_it_reaches_the_same_end_however_often_it_is_cut_off(
    before: Cabling, after: Cabling, cuts: list[int]
) -> None:
    whole = apply_all([Step(before), Step(after)])
    cut = apply_all([Step(before), *(Step(after, cut) for cut in cuts), Step(after)])
    assert cut.cluster.state == whole.cluster.state
    again = FusedStore(cut.cluster, cut.record)
    apply_once(again, Step(after, 0))
    assert again.cluster.state == whole.cluster.state, "nothing is left to write"


@modest
@given(before=cablings(), after=cablings(), cut=st.integers(1, 12))
def test_it_returns_to_the_same_names_after_a_change_that_was_cut_off(
    before: Cabling, after: Cabling, cut: int
) -> None:
    there = apply_all([Step(before), Step(after), Step(before)])
    back = apply_all([Step(before), Step(after, cut), Step(before)])
    assert back.cluster.state == there.cluster.state
