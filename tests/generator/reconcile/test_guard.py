"""Which plans are held: the limits of every budget."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.objects.fabric import ChangeBudget
from generator.objects.write_policy import compute_allowance
from generator.outputs.hypernode.model import OWN_LABELS, PADDING_LABEL, SOURCE_LABEL, HyperNode
from generator.reconcile.decided_tree import TreeStep
from generator.reconcile.guard import (
    ALWAYS_ALLOWED_NODES,
    Coverage,
    HoldKind,
    PlanEvidence,
    PlanVerdict,
    hash_plan,
    judge_plan,
)
from generator.reconcile.hypernode_plan import Op, plan_changes
from tests.generator.reconcile.cluster import hypernode, tree_of
from tests.generator.reconcile.forests import forests

NONE_HOLD: list[HoldKind] = []
NODES, DOMAINS, QUORUM = HoldKind.TOO_MANY_NODES, HoldKind.TOO_MANY_DOMAINS, HoldKind.NO_QUORUM


def tree(num_leaves: int, per_leaf: int, *, prefix: str = "leaf") -> list[HyperNode]:
    """Return leaves of nodes below one pod."""
    leaves = [
        hypernode(f"{prefix}-{leaf}", 1, *(f"n{leaf}-{node}" for node in range(per_leaf)))
        for leaf in range(num_leaves)
    ]
    return [*leaves, hypernode("pod", 2, *(leaf.name for leaf in leaves))]


POD = tree(4, 1)[-1]
PADDED = tuple(sorted(((PADDING_LABEL, "true"), *OWN_LABELS)))


def without_nodes(forest: list[HyperNode], num: int) -> list[HyperNode]:
    """Return the forest without the last nodes of its first leaves, one of each leaf in turn."""
    kept = list(forest)
    leaves = [at for at, found in enumerate(forest) if found.nodes]
    for turn in range(num):
        at = leaves[turn % len(leaves)]
        kept[at] = replace(kept[at], members=kept[at].members[:-1])
    return kept


def verdict(
    desired: list[HyperNode],
    observed: list[HyperNode],
    *,
    budget: ChangeBudget | None = None,
    coverage: Coverage | None = None,
) -> PlanVerdict:
    return judge_plan(
        plan_changes(desired, observed),
        TreeStep(tree_of(observed), tree_of(desired)),
        budget=budget or ChangeBudget(),
        evidence=PlanEvidence(coverage or Coverage()),
    )


def holds(
    desired: list[HyperNode], observed: list[HyperNode], *, budget: ChangeBudget | None = None
) -> list[HoldKind]:
    return [hold.kind for hold in verdict(desired, observed, budget=budget).hold_reasons]


@pytest.mark.parametrize(
    ("num", "percent", "allowed"),
    [
        pytest.param(0, 10, 0, id="0 of 0 nodes"),
        pytest.param(1, 10, 0, id="never the only node"),
        pytest.param(2, 10, 0, id="one of two is half"),
        pytest.param(3, 10, 1, id="one of three is less than half"),
        pytest.param(4, 10, 1, id="two of four are half"),
        pytest.param(5, 10, 2, id="two of five are allowed"),
        pytest.param(8, 10, 2, id="two of eight are allowed"),
        pytest.param(29, 10, 2, id="the share of 29 is two as well"),
        pytest.param(30, 10, 3, id="the share of 30 is three"),
        pytest.param(1000, 10, 100, id="the share of a thousand"),
        pytest.param(1009, 10, 100, id="shares are rounded down"),
        pytest.param(8, 0, 0, id="0 % allows nothing"),
        pytest.param(8, 100, 8, id="100 % is all"),
        pytest.param(1, 100, 1, id="100 % of one is one"),
    ],
)
def test_it_allows_a_share_and_always_a_few(num: int, percent: int, allowed: int) -> None:
    assert compute_allowance(num, percent, always_allowed=ALWAYS_ALLOWED_NODES) == allowed


@pytest.mark.parametrize(
    ("gone", "expected"),
    [(1, NONE_HOLD), (10, NONE_HOLD), (11, [NODES]), (50, [NODES])],
)
def test_it_holds_a_plan_that_removes_more_than_a_tenth_of_the_nodes(
    gone: int, expected: list[HoldKind]
) -> None:
    before = tree(10, 10)
    assert holds(without_nodes(before, gone), before) == expected


def test_it_counts_moved_nodes_like_removed_nodes() -> None:
    before = tree(4, 5)
    swapped = [
        replace(before[0], members=before[1].members),
        replace(before[1], members=before[0].members),
        *before[2:],
    ]
    found = verdict(swapped, before)
    assert [hold.kind for hold in found.hold_reasons] == [NODES]
    assert found.num_moved == 10
    assert "10 of 20 nodes would leave a domain, at most 2 may (10 %)" in found.reason_text
    assert "n0-0" in found.reason_text
    assert found.reason_text.endswith("and 5 more")


def test_it_counts_the_nodes_below_a_leaf_that_gets_another_parent() -> None:
    leaves = tree(4, 5)[:4]
    before = [*leaves, hypernode("p", 2, "leaf-0", "leaf-1"), hypernode("q", 2, "leaf-2", "leaf-3")]
    after = [*leaves, hypernode("p", 2, "leaf-0"), hypernode("q", 2, "leaf-1", "leaf-2", "leaf-3")]
    assert verdict(after, before).num_moved == 5
    assert holds(after, before) == [NODES]


@pytest.mark.parametrize(("gone", "expected"), [(2, NONE_HOLD), (3, [DOMAINS])])
def test_it_holds_a_plan_that_deletes_more_than_a_quarter_of_a_tier(
    gone: int, expected: list[HoldKind]
) -> None:
    before = [*tree(8, 1), hypernode("big", 1, *(f"b{node}" for node in range(100)))]
    doomed = {f"leaf-{number}" for number in range(gone)}
    kept = [found for found in before if found.name not in doomed and found.name != "pod"]
    pod = hypernode("pod", 2, *(found.name for found in kept if found.name != "big"))
    assert holds([*kept, pod], before) == expected


def test_it_holds_the_loss_of_one_leaf_of_two_and_allows_one_of_three() -> None:
    for num_leaves, expected in ((2, [DOMAINS]), (3, NONE_HOLD)):
        before = tree(num_leaves, 1)
        big = hypernode("big", 3, "pod")
        nodes = [hypernode("wide", 4, "big")]
        after = [before[0], *before[1 : num_leaves - 1]]
        pod = hypernode("pod", 2, *(found.name for found in after))
        budget = ChangeBudget(nodes_percent=100)
        assert holds([*after, pod, big, *nodes], [*before, big, *nodes], budget=budget) == expected


def test_it_holds_the_deletion_of_everything_even_with_two_nodes() -> None:
    assert holds([], tree(1, 2)) == [NODES, DOMAINS, DOMAINS]


def test_it_holds_nothing_with_a_budget_of_100_percent() -> None:
    budget = ChangeBudget(nodes_percent=100, domains_percent=100)
    assert holds([], tree(4, 4), budget=budget) == NONE_HOLD


def test_it_holds_the_loss_of_one_node_with_a_budget_of_0_percent() -> None:
    before = tree(10, 10)
    budget = ChangeBudget(nodes_percent=0)
    assert holds(without_nodes(before, 1), before, budget=budget) == [NODES]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(tree(2, 4), tree(40, 4), id="a fabric that grows"),
        pytest.param(
            tree(4, 4),
            [*tree(4, 4)[:4], replace(POD, name="sub"), hypernode("pod", 3, "sub")],
            id="a new tier in between",
        ),
        pytest.param(
            [*(replace(found, labels=PADDED) for found in tree(4, 1)[:4]), POD],
            [hypernode("pod", 1, *(f"n{leaf}-0" for leaf in range(4)))],
            id="deleted padding",
        ),
        pytest.param(
            [replace(found, labels=((SOURCE_LABEL, "ufm"),)) for found in tree(4, 4)],
            tree(4, 4, prefix="ours")[:4],
            id="foreign hypernodes",
        ),
        pytest.param(tree(4, 4), tree(4, 4), id="an unchanged tree"),
    ],
)
def test_it_counts_as_no_loss(before: list[HyperNode], after: list[HyperNode]) -> None:
    found = verdict(after, before)
    assert (found.num_moved, found.is_allowed) == (0, True), found.reason_text


@pytest.mark.parametrize(
    ("coverage", "expected"),
    [
        pytest.param(Coverage(), NONE_HOLD, id="no inventory"),
        pytest.param(Coverage(8, 4), NONE_HOLD, id="half of them are known"),
        pytest.param(Coverage(9, 4), [QUORUM], id="less than half of them are known"),
        pytest.param(Coverage(8, 0), [QUORUM], id="none of them is known"),
    ],
)
def test_it_writes_the_first_hypernodes_only_with_a_quorum(
    coverage: Coverage, expected: list[HoldKind]
) -> None:
    found = verdict(tree(2, 4), [], coverage=coverage)
    assert [hold.kind for hold in found.hold_reasons] == expected


def test_it_needs_no_quorum_once_hypernodes_exist() -> None:
    before = tree(10, 10)
    found = verdict(without_nodes(before, 1), before, coverage=Coverage(100, 1))
    assert found.is_allowed


def test_it_counts_the_actions_of_a_plan() -> None:
    found = verdict(tree(2, 4)[:1], tree(2, 4))
    assert found.counts == {Op.UPDATE: 1, Op.DELETE: 2}
    assert verdict(tree(2, 4), tree(2, 4)).counts == {}


def test_it_identifies_a_plan_by_its_writes_alone() -> None:
    before = tree(4, 4)
    plan = plan_changes(without_nodes(before, 3), before)
    assert hash_plan(plan) == hash_plan(plan_changes(without_nodes(before, 3), before[::-1]))
    assert hash_plan(replace(one, reason="another") for one in plan) == hash_plan(plan)
    others = [
        plan_changes(without_nodes(before, 2), before),
        plan[::-1],
        plan[:-1],
        [replace(one, op=Op.CREATE) for one in plan],
    ]
    assert hash_plan(plan) not in {hash_plan(other) for other in others}
    assert len(hash_plan(plan)) == 16


@given(forests(), forests(), st.integers(0, 100), st.integers(0, 100))
def test_it_never_holds_more_with_a_larger_budget(
    before: list[HyperNode], after: list[HyperNode], nodes: int, domains: int
) -> None:
    small = ChangeBudget(nodes_percent=nodes, domains_percent=domains)
    large = ChangeBudget(nodes_percent=min(100, nodes + 10), domains_percent=100)
    kept, more = verdict(after, before, budget=small), verdict(after, before, budget=large)
    assert {hold.kind for hold in more.hold_reasons} <= {hold.kind for hold in kept.hold_reasons}
    assert more.hash == kept.hash
