"""Example outcomes of rounds, for the tests of metrics and Events."""

from dataclasses import replace

from generator.objects.fabric import Condition, ConditionType, HeldPlan
from generator.outputs.hypernode.model import HyperNode, Member, MemberType
from generator.placement.cluster.nodes import NodeSpec, RunningGang, RunningPods
from generator.placement.cluster.snapshot import build_snapshot
from generator.reconcile.hypernode_plan import Action, Op
from generator.reconcile.round_results import RoundOutcome
from tests.generator.rpc.clusters import tree_of
from topology.model.facts import Finding, FindingKind, PortName, Severity

NOW = "2026-11-05T10:00:00Z"
TREE = tree_of(("a1", "a2"), ("b1", "b2"))
_SPECS = {
    name: NodeSpec(name, {"slots": 1, "cpu": 64, "nvidia.com/gpu": 8, "example.com/nic": 2})
    for name in (*TREE.nodes, "outside")
}
_GANG = RunningGang("g", (RunningPods("a1", {"nvidia.com/gpu": 8}),))
SNAPSHOT = build_snapshot(TREE, _SPECS, (_GANG,))


def finding(kind: FindingKind, device: str = "a1", severity: Severity = Severity.ERROR) -> Finding:
    return Finding(kind, device, None, severity, f"{device} is wrong.", (PortName(device, ""),))


def condition(kind: ConditionType, *, is_true: bool, reason: str = "Because") -> Condition:
    return Condition(
        type=kind,
        status="True" if is_true else "False",
        last_transition_time=NOW,
        reason=reason,
        message="it is so",
    )


def hypernode(name: str, tier: int) -> HyperNode:
    return HyperNode(name, tier, f"t{tier}", (Member(MemberType.NODE, "a1"),))


THEIRS = replace(hypernode("theirs", 1), labels=())
HELD = HeldPlan(hash="0123456789abcdef", since=NOW, creates=1, updates=2, deletes=3)
BUSY = RoundOutcome(
    0.25,
    generation=7,
    tree=TREE,
    snapshot=SNAPSHOT,
    num_reports=5,
    num_refused_reports=1,
    findings=(
        finding(FindingKind.STALE_REPORT, severity=Severity.WARNING),
        finding(FindingKind.SILENT_NODE, "b2", Severity.WARNING),
        finding(FindingKind.DUPLICATE_ID),
    ),
    observed_hypernodes=(hypernode("l1", 1), hypernode("l2", 1), hypernode("s", 2), THEIRS),
    conditions=(
        condition(ConditionType.CHANGE_BLOCKED, is_true=True),
        condition(ConditionType.READY, is_true=False),
    ),
    held=HELD,
    completed_actions=(Action(Op.CREATE, "l1", 1, "new", hypernode("l1", 1)),),
    failed_action=Action(Op.DELETE, "l9", 1, "gone", None),
)
