"""Verdicts on trees that are right, wrong and told of, and wrong in silence; and the grid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.verifying import (
    Row,
    Scenario,
    Score,
    Size,
    Verdict,
    claims_of,
    grid,
    judge,
    render_rows,
    run,
    score,
)
from tests.topology.judging import infer_from
from tests.topology.synthetic.fabrics import seeded, swap
from topology.facts import Finding, FindingKind, PortName, Severity
from topology.inference import Inference
from topology.synthetic import (
    FabricKind,
    FabricSpec,
    Fault,
    FaultKind,
    FaultSpec,
    NamePolicy,
    build_wiring,
    damage,
    undamaged,
)
from topology.tree import DomainSpec, Unplaced, build_tree

SPEC = FabricSpec(FabricKind.RAIL, 16, rails=4, radix=16)
WHOLE = undamaged(build_wiring(SPEC))
GROUPS = ("leaf-g01", "leaf-g02")


def finding(kind: FindingKind, device: str, *ports: PortName) -> Finding:
    return Finding(kind, device, None, Severity.WARNING, "seen", ports)


def moved(*findings: Finding, unplaced: bool = False) -> Inference:
    """Return a tree in which node-0001 is in the other leaf group, or in none."""
    hosts = [host.name for host in WHOLE.wiring.hosts]
    members = (hosts[1:8], hosts[8:] if unplaced else [*hosts[8:], hosts[0]])
    leaves = [
        DomainSpec(
            name,
            tier=1,
            parent="top",
            nodes=tuple(nodes),
            switches=tuple(f"{name}-r{rail}" for rail in range(1, 5)),
        )
        for name, nodes in zip(GROUPS, members, strict=True)
    ]
    gone = [Unplaced(hosts[0], "undecided")] if unplaced else []
    spines = tuple(switch.name for switch in WHOLE.wiring.switches if switch.rank == 2)
    top = DomainSpec("top", tier=2, parent=None, switches=spines)
    return Inference(build_tree([*leaves, top], tiers=("leaf", "spine"), unplaced=gone), findings)


def test_it_calls_what_was_built_exact() -> None:
    assert judge(WHOLE, infer_from(claims_of(WHOLE))) is Verdict.EXACT


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        pytest.param(moved(), Verdict.SILENT, id="nothing is said"),
        pytest.param(
            moved(finding(FindingKind.UNDECIDABLE, "node-0001")),
            Verdict.FLAGGED,
            id="a finding names the node",
        ),
        pytest.param(
            moved(finding(FindingKind.MISSING_LINK, "x", PortName("leaf-g01-r2", "3"))),
            Verdict.FLAGGED,
            id="a finding names a switch where it belongs",
        ),
        pytest.param(
            moved(finding(FindingKind.AUX_SWITCH, "leaf-g02-r1")),
            Verdict.FLAGGED,
            id="a finding names a switch where it is",
        ),
        pytest.param(
            moved(finding(FindingKind.UNDECIDABLE, "node-0002")),
            Verdict.SILENT,
            id="a finding names another node",
        ),
        pytest.param(
            moved(finding(FindingKind.MISSING_LINK, "spine-01")),
            Verdict.SILENT,
            id="a finding names a switch above all nodes",
        ),
        pytest.param(
            moved(finding(FindingKind.SLOW_LINK, "node-0001")),
            Verdict.SILENT,
            id="a finding of a kind that says nothing of the tree",
        ),
        pytest.param(moved(unplaced=True), Verdict.FLAGGED, id="the tree says it is unplaced"),
    ],
)
def test_it_judges_a_node_in_the_wrong_group(found: Inference, verdict: Verdict) -> None:
    assert judge(WHOLE, found) is verdict


def test_it_counts_which_of_the_visible_swaps_are_named() -> None:
    one, other = ("node-0002", "mlx5_1/1"), ("node-0010", "mlx5_1/1")
    damaged = swap(WHOLE, one, other)
    ends = (PortName(*one), PortName(*other))
    damaged = replace(
        damaged,
        faults=(
            Fault(FaultKind.SWAPPED_CABLE, ends, detectable=True),
            Fault(FaultKind.SWAPPED_CABLE, ends, detectable=False),
            Fault(FaultKind.LOST_LINK, ends, detectable=True),
        ),
    )
    found = infer_from(claims_of(damaged))
    assert score(damaged, found) == (Verdict.EXACT, 1, 1)
    assert score(damaged, replace(found, findings=())) == (Verdict.EXACT, 1, 0)


def test_it_scores_alike_what_equal_seeds_break() -> None:
    faults = FaultSpec(lose_links=0.1, swap=0.2, silent=0.1, lose_hosts=1)
    assert run(WHOLE.wiring, faults, seeded(3)) == run(WHOLE.wiring, faults, seeded(3))


def test_it_places_a_lost_host_nowhere() -> None:
    damaged = damage(WHOLE.wiring, FaultSpec(lose_hosts=2), seeded(1))
    tree = infer_from(claims_of(damaged)).tree
    assert {gone.node for gone in tree.unplaced} == damaged.lost_hosts
    assert len(damaged.lost_hosts) == 2


def test_it_swaps_as_many_cables_as_fit() -> None:
    damaged = damage(WHOLE.wiring, FaultSpec(swap=1.0), seeded(1))
    swaps = [fault for fault in damaged.faults if fault.kind is FaultKind.SWAPPED_CABLE]
    assert 0 < len(swaps) <= len(WHOLE.cables) // 2


@pytest.mark.parametrize(
    ("size", "hcas"), [(Size.QUICK, {512}), (Size.FULL, {512, 8192, 65536})], ids=str
)
def test_it_has_fabrics_of_every_kind_under_both_names(size: Size, hcas: set[int]) -> None:
    scenarios = grid(size)
    assert len(set(scenarios)) == len(scenarios)
    for at_most in hcas:
        here = [one for one in scenarios if 0.99 * at_most < one.num_hcas <= at_most]
        assert {one.spec.kind for one in here} == set(FabricKind)
        assert {one.spec.names for one in here} == set(NamePolicy)
        assert {one.spec.tiers for one in here} == {None, 2, 3, 4}


def test_it_plans_quick_fabrics_that_can_be_built() -> None:
    for spec in {one.spec for one in grid(Size.QUICK)}:
        assert build_wiring(spec).hosts


def row(**scores: Score) -> Row:
    scenario = Scenario("rail", "none", SPEC, FaultSpec())
    return Row(scenario, {int(seed[1:]): one for seed, one in scores.items()})


@pytest.mark.parametrize(
    ("found", "seed"),
    [
        pytest.param(
            row(s1=Score(Verdict.EXACT, 2, 2), s2=Score(Verdict.EXACT, 0, 0)), None, id="none"
        ),
        pytest.param(
            row(s1=Score(Verdict.EXACT, 9, 0), s2=Score(Verdict.FLAGGED, 1, 1)),
            2,
            id="the worse verdict first",
        ),
        pytest.param(
            row(s1=Score(Verdict.SILENT, 3, 3), s2=Score(Verdict.SILENT, 3, 2)),
            2,
            id="then the one with more swaps unnamed",
        ),
        pytest.param(
            row(s4=Score(Verdict.FLAGGED, 0, 0), s3=Score(Verdict.FLAGGED, 0, 0)),
            3,
            id="then the smaller seed",
        ),
    ],
)
def test_it_picks_the_run_that_most_needs_a_look(found: Row, seed: int | None) -> None:
    worst = found.worst
    assert (worst.seed if worst else None) == seed


def test_it_renders_counts_and_the_way_to_repeat_the_worst() -> None:
    found = row(s1=Score(Verdict.EXACT, 2, 2), s7=Score(Verdict.SILENT, 1, 0))
    document = render_rows([found], {found.scenario: "repeat me"})
    assert document["total"] == {"runs": 2, "exact": 1, "flagged": 0, "silent": 1}
    (shown,) = document["rows"]
    assert (shown["hcas"], shown["swaps"]) == (64, {"detectable": 3, "named": 2})
    assert shown["worst"] == {"seed": 7, "verdict": "silent", "command": "repeat me"}
