"""Verdicts on trees that are exact, flagged and silently wrong.

The trees are made by hand, with two pods of two leaf groups each. A wrong node at one tier is
flagged only by a finding at this tier or below, about the node or its domains.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.synthetic.fabrics import seeded, swap
from tests.topology.verdicts import collect_claims, infer_from
from tests.verify.judgement import (
    TreeJudgement,
    TreeVerdict,
    judge_tree,
    run_scenario,
    score_inference,
)
from tests.verify.sources import MIXES
from topology.inference.tree_inference import Inference
from topology.model.facts import Finding, FindingKind, Medium, PortName, Severity
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree
from topology.synthetic import (
    FabricKind,
    Fault,
    FaultKind,
    FaultSpec,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    derive_truth,
)

SPEC = SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=16)
WHOLE = build_undamaged(build_wiring(SPEC))
HOMES = {"n1": "a1", "n2": "a1", "n3": "a2", "n4": "a2", "n5": "b1", "n6": "b1", "n7": "b2"}
PODS = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
TOPS = {"a": "all", "b": "all"}
TIERS = ("leaf", "spine", "core")


def tree(
    homes: dict[str, str | None] | None = None,
    pods: dict[str, str | None] | None = None,
    tops: dict[str, str | None] | None = None,
) -> TopologyTree:
    """Return the tree of two pods after changes; a domain's only switch is `sw-` and its name.

    A node without a home is unplaced, a domain without a parent stands alone, and one that
    nobody is in is not there.
    """
    levels = [HOMES | (homes or {}), PODS | (pods or {}), TOPS | (tops or {})]
    above: dict[str, str | None] = {}
    for level in levels[1:]:
        above |= level
    found = {home for home in levels[0].values() if home}
    specs = []
    for tier in range(1, 4):
        specs += [
            DomainSpec(
                name,
                tier=tier,
                parent=above.get(name),
                nodes=tuple(node for node, home in levels[0].items() if home == name),
                switches=(f"sw-{name}",),
            )
            for name in sorted(found)
        ]
        found = {parent for name in found if (parent := above.get(name))}
    gone = [Unplaced(node, "undecided") for node, home in levels[0].items() if home is None]
    return build_tree(specs, tiers=TIERS, unplaced=gone)


def finding(kind: FindingKind, device: str, *ports: PortName) -> Finding:
    return Finding(kind, device, None, Severity.WARNING, "seen", ports)


def doubt(device: str, *others: str) -> Finding:
    ports = tuple(PortName(name, "") for name in (device, *others))
    return finding(FindingKind.UNDECIDABLE, device, *ports)


def verdict(found: TopologyTree, *findings: Finding) -> TreeVerdict:
    return judge_tree(tree(), Inference(found, findings)).verdict


MOVED = tree({"n1": "b1"})
POD_MOVED = tree(pods={"a2": "b"})
POD_ALONE = tree(tops={"b": None})
FUSED = tree(pods={"b1": "a", "b2": "a"})
SPLIT = tree({"n2": "a3"}, {"a3": "a"})


def test_the_true_tree_is_exact() -> None:
    found = infer_from(collect_claims(WHOLE))
    assert judge_tree(derive_truth(WHOLE), found) == (TreeVerdict.EXACT, frozenset(), frozenset())


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param((), TreeVerdict.SILENT, id="no finding"),
        pytest.param((doubt("n1"),), TreeVerdict.FLAGGED, id="the node is named"),
        pytest.param(
            (doubt("sw-a1"),), TreeVerdict.FLAGGED, id="a switch of its true domain is named"
        ),
        pytest.param(
            (doubt("sw-b1"),), TreeVerdict.FLAGGED, id="a switch of its inferred domain is named"
        ),
        pytest.param(
            (doubt("n5", "sw-b1"),), TreeVerdict.FLAGGED, id="a switch is named among others"
        ),
        pytest.param((doubt("n2"),), TreeVerdict.SILENT, id="a peer is named"),
        pytest.param(
            (doubt("sw-a2"),), TreeVerdict.SILENT, id="a switch of a third group is named"
        ),
        pytest.param((doubt("sw-a"),), TreeVerdict.SILENT, id="a switch a tier above is named"),
        pytest.param(
            (doubt("sw-all"),), TreeVerdict.SILENT, id="a switch above all nodes is named"
        ),
        pytest.param(
            (finding(FindingKind.UNDECIDABLE, "n2", PortName("sw-a1", "7")),),
            TreeVerdict.SILENT,
            id="its leaf is only evidence in a finding about a peer",
        ),
        pytest.param(
            (finding(FindingKind.MISSING_LINK, "n1"), finding(FindingKind.SLOW_LINK, "sw-a1")),
            TreeVerdict.SILENT,
            id="a missing and a slow link do not question the tree",
        ),
        pytest.param(
            (finding(FindingKind.SWAPPED_CABLE, "n1"), finding(FindingKind.WRONG_RAIL, "n1")),
            TreeVerdict.SILENT,
            id="swapped cables do not question the tree",
        ),
        pytest.param(
            (finding(FindingKind.NOT_A_TREE, "sw-all"),),
            TreeVerdict.FLAGGED,
            id="a finding says that the wiring is not a tree",
        ),
    ],
)
def test_it_judges_a_node_in_the_wrong_group(
    findings: tuple[Finding, ...], expected: TreeVerdict
) -> None:
    judged = judge_tree(tree(), Inference(MOVED, findings))
    assert judged.verdict is expected
    assert judged.wrong_nodes == {"n1"}
    assert judged.unflagged_nodes == ({"n1"} if expected is TreeVerdict.SILENT else set())


@pytest.mark.parametrize(
    ("found", "device", "expected"),
    [
        pytest.param(POD_MOVED, None, TreeVerdict.SILENT, id="a group in another pod"),
        pytest.param(POD_MOVED, "sw-a2", TreeVerdict.FLAGGED, id="a finding about the group"),
        pytest.param(POD_MOVED, "sw-b", TreeVerdict.FLAGGED, id="a finding about the inferred pod"),
        pytest.param(POD_MOVED, "sw-a", TreeVerdict.FLAGGED, id="a finding about the true pod"),
        pytest.param(POD_MOVED, "sw-a1", TreeVerdict.SILENT, id="a finding about the other group"),
        pytest.param(POD_MOVED, "sw-all", TreeVerdict.SILENT, id="a finding about the top"),
        pytest.param(POD_MOVED, "n3", TreeVerdict.SILENT, id="a finding about one of its nodes"),
        pytest.param(POD_ALONE, None, TreeVerdict.SILENT, id="a pod below no top"),
        pytest.param(POD_ALONE, "sw-b", TreeVerdict.FLAGGED, id="a finding about that pod"),
        pytest.param(POD_ALONE, "sw-a", TreeVerdict.SILENT, id="a finding about the other pod"),
        pytest.param(POD_ALONE, "sw-all", TreeVerdict.SILENT, id="a finding about the missing top"),
        pytest.param(FUSED, None, TreeVerdict.SILENT, id="two pods in one"),
        pytest.param(FUSED, "sw-b", TreeVerdict.FLAGGED, id="a finding about the missing pod"),
        pytest.param(FUSED, "sw-a", TreeVerdict.SILENT, id="a finding about the pod with both"),
        pytest.param(SPLIT, None, TreeVerdict.SILENT, id="a group in two"),
        pytest.param(SPLIT, "sw-a3", TreeVerdict.FLAGGED, id="a finding about the part"),
    ],
)
def test_it_judges_the_tiers_above(
    found: TopologyTree, device: str | None, expected: TreeVerdict
) -> None:
    assert verdict(found, *([doubt(device)] if device else [])) is expected


def test_a_node_flagged_at_one_tier_is_flagged_above() -> None:
    found = tree({"n1": "b1"}, tops={"b": None})
    judged = judge_tree(tree(), Inference(found, (doubt("n1"),)))
    assert judged.wrong_nodes == {"n1", "n5", "n6", "n7"}
    assert judged.unflagged_nodes == {"n5", "n6", "n7"}


def test_it_accepts_a_node_that_is_listed_as_unplaced_but_counts_it_as_wrong() -> None:
    judged = judge_tree(tree(), Inference(tree({"n1": None}), ()))
    assert judged == TreeJudgement(TreeVerdict.FLAGGED, frozenset({"n1"}), frozenset())


@pytest.mark.parametrize(
    ("truth", "found"),
    [
        pytest.param(tree({"n1": None}), tree(), id="placed where the truth cannot place it"),
        pytest.param(tree(), tree({"n8": "a1"}), id="an unknown node"),
        pytest.param(tree({"n8": "a1"}), tree(), id="a missing placed node"),
        pytest.param(tree({"n8": None}), tree(), id="a missing unplaced node"),
    ],
)
def test_no_node_appears_or_vanishes_silently(truth: TopologyTree, found: TopologyTree) -> None:
    judged = judge_tree(truth, Inference(found, ()))
    assert (judged.verdict, len(judged.unflagged_nodes)) == (TreeVerdict.SILENT, 1)


@pytest.mark.parametrize("is_extra", [True, False], ids=["a tier too many", "a tier too few"])
@pytest.mark.parametrize(
    ("device", "expected"),
    [(None, TreeVerdict.SILENT), ("sw-all", TreeVerdict.FLAGGED), ("n1", TreeVerdict.SILENT)],
)
def test_it_judges_the_number_of_tiers(
    is_extra: bool,  # noqa: FBT001 - a parameter of the test
    device: str | None,
    expected: TreeVerdict,
) -> None:
    whole, without = tree(), tree(tops={"a": None, "b": None})
    truth, found = (without, whole) if is_extra else (whole, without)
    judged = judge_tree(truth, Inference(found, (doubt(device),) if device else ()))
    assert judged.verdict is expected
    assert len(judged.wrong_nodes) == len(HOMES)


@settings(max_examples=examples(200))
@given(
    homes=st.fixed_dictionaries({}, optional=dict.fromkeys(HOMES, st.sampled_from([*PODS, None]))),
    pods=st.fixed_dictionaries({}, optional=dict.fromkeys(PODS, st.sampled_from([*TOPS, None]))),
    told=st.sets(st.sampled_from([*HOMES, *(f"sw-{name}" for name in (*PODS, *TOPS, "all"))])),
)
def test_more_findings_never_make_a_verdict_worse(
    homes: dict[str, str | None], pods: dict[str, str | None], told: set[str]
) -> None:
    found = tree(homes, pods)
    quiet = judge_tree(tree(), Inference(found, ()))
    loud = judge_tree(tree(), Inference(found, tuple(map(doubt, sorted(told)))))
    everything = [*HOMES, *(f"sw-{name}" for name in (*PODS, *TOPS, "all"))]
    loudest = judge_tree(tree(), Inference(found, tuple(map(doubt, everything))))
    assert quiet.wrong_nodes == loud.wrong_nodes == loudest.wrong_nodes
    assert (
        loudest.unflagged_nodes
        <= loud.unflagged_nodes
        <= quiet.unflagged_nodes
        <= quiet.wrong_nodes
    )
    assert loudest.verdict is not TreeVerdict.SILENT
    assert (quiet.verdict is TreeVerdict.EXACT) == (not quiet.wrong_nodes)


def test_it_counts_the_detectable_swaps_that_are_named() -> None:
    one, other = ("node-0002", "mlx5_1/1"), ("node-0010", "mlx5_1/1")
    damaged = swap(WHOLE, one, other)
    ends = (PortName(*one), PortName(*other))
    damaged = replace(
        damaged,
        faults=(
            Fault(FaultKind.SWAPPED_CABLE, ends, is_detectable=True),
            Fault(FaultKind.SWAPPED_CABLE, ends, is_detectable=False),
            Fault(FaultKind.LOST_LINK, ends, is_detectable=True),
        ),
    )
    found = infer_from(collect_claims(damaged))
    truth = derive_truth(damaged)
    assert score_inference(damaged, found, truth) == (TreeVerdict.EXACT, 0, 1, 1)
    silenced = replace(found, findings=())
    assert score_inference(damaged, silenced, truth) == (TreeVerdict.EXACT, 0, 1, 0)


def test_equal_seeds_give_equal_scores() -> None:
    faults = FaultSpec(lose_links=0.1, swap=0.2, silent=0.1, lose_hosts=1, shuffle=True)
    for mix in MIXES[Medium.INFINIBAND]:
        scores = [run_scenario(WHOLE.wiring, faults, seeded(3), mix=mix) for _ in range(2)]
        assert scores[0] == scores[1]
