"""Plans that follow from a sweep in doubt are held; all other plans are not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from generator.ingest.inputs import DoubtKind, SweepDoubt
from generator.objects.fabric import ChangeBudget
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.decided_tree import TreeStep
from generator.reconcile.guard import HoldKind, HoldReason, PlanEvidence, judge_plan
from generator.reconcile.hypernode_plan import plan_changes
from tests.generator.reconcile.cluster import hypernode, tree_of


def leaf(name: str, *nodes: str) -> HyperNode:
    return hypernode(name, 1, *nodes)


BEFORE = (leaf("a", "n1", "n2"), leaf("b", "n3", "n4"))
MOVED = (leaf("a", "n1"), leaf("b", "n2", "n3", "n4"))
JOINED = (leaf("a", "n1", "n2", "n5"), leaf("b", "n3", "n4"))


def doubt(kind: DoubtKind, *nodes: str) -> SweepDoubt:
    return SweepDoubt(kind, "why", frozenset(nodes) if nodes else None)


def find_holds(
    doubts: Sequence[SweepDoubt], before: tuple[HyperNode, ...], after: tuple[HyperNode, ...]
) -> tuple[HoldReason, ...]:
    return judge_plan(
        plan_changes(after, before),
        TreeStep(tree_of(before), tree_of(after)),
        budget=ChangeBudget(nodes_percent=100, domains_percent=100),
        evidence=PlanEvidence(doubts=doubts),
    ).hold_reasons


@pytest.mark.parametrize(
    ("after", "given", "kinds"),
    [
        pytest.param(MOVED, doubt(DoubtKind.SWEEPS_DISAGREE, "n2"), ["SweepsDisagree"],
                     id="moves a node in question"),
        pytest.param(MOVED, doubt(DoubtKind.SWEEPS_DISAGREE, "N2.example.com"), ["SweepsDisagree"],
                     id="moves a node that the sweep spells differently"),
        pytest.param(MOVED, doubt(DoubtKind.SWEEPS_DISAGREE, "n4"), [],
                     id="moves another node"),
        pytest.param(JOINED, doubt(DoubtKind.SWEEPS_DISAGREE, "n5"), ["SweepsDisagree"],
                     id="adds a node in question"),
        pytest.param(JOINED, doubt(DoubtKind.SWEEPS_DISAGREE), ["SweepsDisagree"],
                     id="changes anything while all is in question"),
        pytest.param(MOVED, doubt(DoubtKind.SWEEP_CONTRADICTED), ["SweepContradicted"],
                     id="follows from a sweep that hosts contradict"),
        pytest.param(MOVED, doubt(DoubtKind.SWEEP_UNCONFIRMED), ["SweepUnconfirmed"],
                     id="moves a node by an unconfirmed sweep"),
        pytest.param(JOINED, doubt(DoubtKind.SWEEP_UNCONFIRMED), [],
                     id="adds a node by an unconfirmed sweep"),
        pytest.param(BEFORE, doubt(DoubtKind.SWEEP_CONTRADICTED), [], id="changes nothing"),
    ],
)  # fmt: skip
def test_it_judges_a_plan_that(
    after: tuple[HyperNode, ...], given: SweepDoubt, kinds: list[str]
) -> None:
    holds = find_holds([given], BEFORE, after)
    assert [hold.kind.value for hold in holds] == kinds
    assert all(hold.message.startswith("why; the plan would move n") for hold in holds)


def test_it_holds_the_first_plan_only_if_sweeps_disagree() -> None:
    doubts = [doubt(DoubtKind.SWEEP_UNCONFIRMED), doubt(DoubtKind.SWEEPS_DISAGREE, "n1")]
    holds = find_holds(doubts, (), BEFORE)
    assert [hold.kind for hold in holds] == [HoldKind.SWEEPS_DISAGREE]


def test_every_doubt_has_a_hold() -> None:
    assert {kind.value for kind in DoubtKind} <= {kind.value for kind in HoldKind}
