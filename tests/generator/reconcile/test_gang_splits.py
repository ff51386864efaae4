"""Plans that would split a domain under a running gang are held, whatever the budget says."""

from dataclasses import replace

import pytest

from generator.objects.fabric import ChangeBudget
from generator.objects.pods import Gang
from generator.outputs.hypernode.model import HyperNode
from generator.reconcile.decided_tree import TreeStep
from generator.reconcile.guard import HoldKind, PlanEvidence, PlanVerdict, judge_plan
from generator.reconcile.hypernode_plan import plan_changes
from tests.generator.reconcile.cluster import hypernode, tree_of

ANYTHING = ChangeBudget(nodes_percent=100, domains_percent=100)
BEFORE = [
    hypernode("leaf-1", 1, "a", "b", "c"),
    hypernode("leaf-2", 1, "d", "e", "f"),
    hypernode("leaf-3", 1, "g", "h"),
    hypernode("pod-1", 2, "leaf-1", "leaf-2"),
    hypernode("pod-2", 2, "leaf-3"),
]


def verdict(desired: list[HyperNode], *gangs: Gang) -> PlanVerdict:
    actions = plan_changes(desired, BEFORE)
    decision = TreeStep(tree_of(BEFORE), tree_of(desired))
    return judge_plan(actions, decision, budget=ANYTHING, evidence=PlanEvidence(gangs=gangs))


def gang(*nodes: str, name: str = "train/llm") -> Gang:
    return Gang(name, frozenset(nodes))


def changed(**hypernodes: HyperNode) -> list[HyperNode]:
    names = {name.replace("_", "-"): found for name, found in hypernodes.items()}
    return [names.get(found.name, found) for found in BEFORE]


C_MOVES = changed(
    leaf_1=hypernode("leaf-1", 1, "a", "b"), leaf_2=hypernode("leaf-2", 1, "c", "d", "e", "f")
)


@pytest.mark.parametrize(
    ("desired", "running"),
    [
        pytest.param(C_MOVES, gang("a", "c"), id="one of its nodes moves to another leaf"),
        pytest.param(
            changed(leaf_1=hypernode("leaf-1", 1, "a", "b")),
            gang("a", "c"),
            id="one of its nodes leaves every domain",
        ),
        pytest.param(
            changed(pod_1=hypernode("pod-1", 2, "leaf-1"), pod_2=hypernode("pod-2", 2, "leaf-2")),
            gang("a", "d"),
            id="its leaves get different parents",
        ),
    ],
)
def test_it_holds_a_plan_where(desired: list[HyperNode], running: Gang) -> None:
    found = verdict(desired, running)
    assert [hold.kind for hold in found.hold_reasons] == [HoldKind.RUNNING_GANG]
    assert "(train/llm runs on 2 of its nodes)" in found.reason_text
    assert verdict(desired).is_allowed, "without the gang nothing holds it"


@pytest.mark.parametrize(
    ("desired", "running"),
    [
        pytest.param(C_MOVES, gang("a", "b"), id="another node of its leaf moves"),
        pytest.param(C_MOVES, gang("a", "d"), id="its nodes share no leaf, and stay in their pod"),
        pytest.param(C_MOVES, gang("a", "nowhere"), id="but one of its nodes is in no domain"),
        pytest.param(
            [replace(found, name="new") if found.name == "pod-2" else found for found in BEFORE],
            gang("g", "h"),
            id="a domain above it gets another name",
        ),
        pytest.param(
            [
                *BEFORE[1:3],
                hypernode("moved", 1, "a", "b", "c"),
                hypernode("pod-1", 2, "leaf-2", "moved"),
                BEFORE[4],
            ],
            gang("a", "b", "c"),
            id="its leaf gets another name",
        ),
        pytest.param(BEFORE, gang("a", "b"), id="nothing changes"),
    ],
)
def test_it_allows_a_plan_where(desired: list[HyperNode], running: Gang) -> None:
    assert verdict(desired, running).is_allowed


def test_it_names_the_lowest_domain_of_each_gang() -> None:
    desired = [hypernode("all", 1, "a", "d", "g"), hypernode("rest", 1, "b", "c", "e", "f", "h")]
    found = verdict(desired, gang("a", "b"), gang("g", "h", name="train/b"))
    (hold,) = found.hold_reasons
    assert "leaf-1 (train/llm runs on 2 of its nodes)" in hold.message
    assert "leaf-3 (train/b runs on 2 of its nodes)" in hold.message
    assert "pod" not in hold.message
