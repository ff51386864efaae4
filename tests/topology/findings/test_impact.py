"""What a finding costs is what counting the cables of the whole fabric says.

The referee counts cables of the wiring before the damage: of a host all of its cables, of a leaf
its cables upwards, and above the leaves those of all switches of the domain.
"""

from __future__ import annotations

import random  # noqa: TID251 - seeded
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.compute_trees import select_compute_plane
from tests.topology.lost_switches import Inferred, fat_tree, infer, pairs, planes, rails
from tests.verify.sources import SourceMix, collect_sources
from topology.findings.impact import CableCounts, add_workloads, measure_impacts
from topology.inference.tree_inference import infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.facts import (
    Finding,
    FindingKind,
    Impact,
    PortName,
    Severity,
    describe_impact,
    sort_findings,
)
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree
from topology.synthetic import (
    FaultSpec,
    SyntheticSpec,
    Wiring,
    build_undamaged,
    build_wiring,
    damage_fabric,
)
from topology.synthetic.truth import SwitchUnit, unit_of
from topology.synthetic.wiring import Cable

FABRICS = {
    "two tiers": fat_tree(128, 32),
    "three tiers": fat_tree(128, 16, 3),
    "rails of one pod": rails(128, 8),
    "rails of several pods": rails(96, 4, 16),
    "two planes": planes(128),
    "pairs of leaves": pairs(128),
}
MISSING = FindingKind.MISSING_LINK


def measure(found: Inferred) -> list[Finding]:
    fabric, plane, inference = found
    return measure_impacts(
        inference.findings, inference.tree, CableCounts(fabric, plane, inference.tree)
    )


class Referee:
    """Counts the cables of the parts of a fabric as it was planned."""

    def __init__(self, wiring: Wiring) -> None:
        self.switches = {switch.name: switch for switch in wiring.switches}
        self.cables = [cable for cable in wiring.cables if self.part_of(cable) is not None]
        self.num_expected = Counter(map(self.part_of, self.cables))

    def part_of(self, cable: Cable) -> str | SwitchUnit | None:
        """Return what loses bandwidth with a cable; None between the leaves of a pair."""
        low, high = (self.switches.get(end.device) for end in cable)
        if low is None:
            return cable.low.device
        if high is not None and low.rank == high.rank:
            return None
        return low.name if low.rank == 1 else unit_of(low)

    def count_gone(self, left: tuple[Cable, ...]) -> Mapping[str | SwitchUnit | None, int]:
        return self.num_expected - Counter(map(self.part_of, left))

    def part_named(self, device: str) -> str | SwitchUnit:
        switch = self.switches.get(device)
        return device if switch is None or switch.rank == 1 else unit_of(switch)

    def count_nodes(self, device: str) -> int:
        """Return the hosts from which cables lead up to a device, or to a switch of its unit."""
        units = {unit_of(self.switches[device])} if device in self.switches else set()
        near = {device}
        for rank in range(max(switch.rank for switch in self.switches.values()), 0, -1):
            near |= {name for name, switch in self.switches.items() if unit_of(switch) in units}
            below = {cable.low.device for cable in self.cables if cable.high.device in near}
            of_rank = (self.switches[name] for name in below if name in self.switches)
            units |= {unit_of(switch) for switch in of_rank if switch.rank < rank}
            near |= {name for name in below if name not in self.switches}
        return sum(name not in self.switches for name in near)


@pytest.mark.parametrize("spec", FABRICS.values(), ids=FABRICS)
def test_a_lost_cable_costs_its_share_of_the_cables_upwards(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    referee = Referee(wiring)
    num_checked = 0
    for seed in range(4):
        damaged = damage_fabric(wiring, FaultSpec(lose_links=1e-9), random.Random(seed))  # noqa: S311
        (lost,) = set(wiring.cables) - set(damaged.cables)
        found = infer(wiring, faults=FaultSpec(lose_links=1e-9), seed=seed)
        for finding in (row for row in measure(found) if row.kind is MISSING):
            num_checked += 1
            expected = referee.num_expected[referee.part_of(lost)]
            assert finding.device == lost.low.device
            assert finding.impact.cables == 1
            assert finding.impact.share == round(1 / expected, 4)
            assert finding.impact.gone_share == finding.impact.share
            assert finding.impact.num_nodes == referee.count_nodes(lost.low.device)
            assert not finding.impact.splits
    assert num_checked > 2


@settings(max_examples=examples(12), deadline=None)
@given(
    spec=st.sampled_from([*FABRICS.values()]),
    seed=st.integers(0, 10_000),
    share=st.sampled_from([0.01, 0.03]),
)
def test_what_is_gone_is_the_sum_of_all_findings(
    spec: SyntheticSpec, seed: int, share: float
) -> None:
    faults, wiring = FaultSpec(lose_links=share), build_wiring(spec)
    damaged = damage_fabric(wiring, faults, random.Random(seed))  # noqa: S311
    referee = Referee(wiring)
    gone = referee.count_gone(damaged.cables)
    rows = [row for row in measure(infer(wiring, faults=faults, seed=seed)) if row.kind is MISSING]
    reported = defaultdict[object, float](float)
    for row in rows:
        reported[referee.part_named(row.device)] += row.impact.cables or 0
    for row in rows:
        part = referee.part_named(row.device)
        if reported[part] == gone[part]:  # else the rest looks like the design
            expected = gone[part] / referee.num_expected[part]
            assert row.impact.gone_share == pytest.approx(expected, abs=1e-4)
            assert (row.impact.share or 0) <= (row.impact.gone_share or 0)
    assert not rows or any(
        reported[part] == gone[part] for part in map(referee.part_named, (r.device for r in rows))
    )


@pytest.mark.parametrize(
    ("spec", "lost", "num_nodes"),
    [
        pytest.param(rails(128, 8), "spine-03", 128, id="a spine of all leaves"),
        pytest.param(rails(96, 4, 16), "spine-p02-03", 16, id="a spine of one pod"),
        pytest.param(planes(128), "leaf-g01-a-r1", 32, id="a leaf of one rail and plane"),
    ],
)
def test_a_lost_switch_costs_what_the_devices_below_it_lack(
    spec: SyntheticSpec, lost: str, num_nodes: int
) -> None:
    wiring = build_wiring(spec)
    referee = Referee(wiring)
    below = [referee.part_of(cable) for cable in wiring.cables if cable.high.device == lost]
    share = len(below) / sum(referee.num_expected[part] for part in set(below))
    rows = [row for row in measure(infer(wiring, lost)) if row.impact.share]
    gone = next(row for row in rows if row.kind is FindingKind.LOST_SWITCH)
    assert (gone.impact.share, gone.impact.num_nodes) == (round(share, 4), num_nodes)
    assert len(gone.impact.places) == 1
    assert gone.severity is Severity.ERROR
    assert all(row.impact.gone_share == gone.impact.share for row in rows)


def test_swapped_cables_cost_both_hosts_a_cable() -> None:
    found = infer(build_wiring(rails(96, 4, 16)), faults=FaultSpec(num_swaps=1), seed=5)
    (row,) = [row for row in measure(found) if row.swap]
    assert row.impact.cables == 2
    assert row.impact.share == row.impact.gone_share == 0.25
    assert row.impact.num_nodes == len(row.impact.places) == 2


def test_a_swap_that_leaves_nodes_without_a_place_stands_above_them() -> None:
    found = infer(build_wiring(rails(32, 2, 16)), faults=FaultSpec(num_swaps=1), seed=0)
    first, *others = sort_findings(measure(found))
    assert (first.kind, first.severity) == (FindingKind.SWAPPED_CABLE, Severity.ERROR)
    assert [row.kind for row in others] == [FindingKind.UNDECIDABLE] * 2
    assert {row.device for row in others} <= {end.device for end in first.ports}


TREE = build_tree(
    [
        DomainSpec("top", 2, None, switches=("spine-1",)),
        DomainSpec("left", 1, "top", ("a", "b", "c"), switches=("leaf-1", "leaf-2")),
        DomainSpec("right", 1, "top", ("d",), switches=("leaf-3",)),
    ],
    tiers=("leaf", "spine"),
    unplaced=[Unplaced("lost", "no cable")],
)


def find(kind: FindingKind, device: str, *others: str, tree: TopologyTree = TREE) -> Impact:
    ports = tuple(PortName(name, "") for name in (device, *others))
    finding = Finding(kind, device, None, Severity.WARNING, "", ports)
    (row,) = measure_impacts([finding], tree)
    return row.impact


@pytest.mark.parametrize(
    ("names", "places", "num"),
    [
        pytest.param(["b"], ("b",), 1, id="one node"),
        pytest.param(["c", "a", "b"], ("left",), 3, id="all nodes of a domain are the domain"),
        pytest.param(["d"], ("d",), 1, id="the only node of a domain is the node"),
        pytest.param(["leaf-2"], ("left",), 3, id="a leaf is its domain"),
        pytest.param(["leaf-9", "leaf-3"], ("right",), 1, id="the first switch that is known"),
        pytest.param(["leaf-1", "b"], ("b",), 1, id="a node beside a switch"),
        pytest.param(["d", "lost", "a"], ("a", "d", "lost"), 3, id="the order of the tree"),
        pytest.param(["nobody"], (), 0, id="an unknown name"),
    ],
)
def test_the_places_behind_a_finding_are_few(
    names: list[str], places: tuple[str, ...], num: int
) -> None:
    impact = find(FindingKind.SILENT_NODE, *names)
    assert (impact.places, impact.num_nodes) == (places, num)


def test_it_says_what_splits_the_fabric_and_what_hides_something() -> None:
    assert find(FindingKind.ISLAND, "leaf-3").splits
    assert find(FindingKind.UNDECIDABLE, "leaf-3").splits
    undecided = find(FindingKind.UNDECIDABLE, "a", "leaf-1", "leaf-3")
    assert (undecided.splits, undecided.hides) == (False, True)
    assert find(FindingKind.HOST_ON_SPINE, "lost", "spine-1").hides
    assert not find(FindingKind.HOST_ON_SPINE, "a", "spine-1").hides
    assert find(FindingKind.PLANE_UNKNOWN, "compute", "a", "lost").places == ("lost",)


def test_the_nodes_that_a_rule_names_are_all_behind_its_finding() -> None:
    finding = Finding(FindingKind.PLANE_UNKNOWN, "compute", None, Severity.WARNING, "")
    named = replace(finding, ports=(PortName("d", "1"),), impact=Impact(places=("d", "a", "lost")))
    (row,) = measure_impacts([named], TREE)
    assert (row.impact.places, row.impact.num_nodes) == (("a", "d", "lost"), 3)


def pull(spec: SyntheticSpec, *, rank: int, num: int) -> Inferred:
    """Return a fabric whose first switch of a rank lacks some up-links."""
    wiring = build_wiring(spec)
    low = next(switch.name for switch in wiring.switches if switch.rank == rank)
    pulled = [cable for cable in wiring.cables if cable.low.device == low][:num]
    left = tuple(cable for cable in wiring.cables if cable not in pulled)
    damaged = replace(build_undamaged(wiring), cables=left)
    fabric = build_fabric(collect_sources(damaged, SourceMix.ALL))
    plane = select_compute_plane(fabric)
    return Inferred(fabric, plane, infer_tree(fabric, plane))


@pytest.mark.parametrize(
    ("num", "severity"),
    [(1, Severity.WARNING), (4, Severity.WARNING), (5, Severity.ERROR), (7, Severity.ERROR)],
)
def test_more_than_half_of_the_up_links_gone_is_an_error(num: int, severity: Severity) -> None:
    rows = measure(pull(rails(96, 4, 16), rank=1, num=num))
    assert [row.kind for row in rows] == [MISSING] * num
    assert {row.severity for row in rows} == {severity}
    assert {row.impact.gone_share for row in rows} == {num / 8}
    assert not any(row.impact.splits for row in rows)


def test_a_leaf_without_any_up_link_splits_the_fabric() -> None:
    (row,) = measure(pull(rails(96, 4, 16), rank=1, num=8))
    assert (row.kind, row.device, row.severity) == (MISSING, "leaf-p01-g01-r1", Severity.ERROR)
    assert (row.impact.cables, row.impact.share, row.impact.splits) == (8, 1, True)
    assert len(row.ports) == 8


def test_one_of_very_many_cables_is_an_info() -> None:
    (row,) = measure(pull(rails(1024, 4), rank=2, num=1))
    assert (row.impact.share, row.impact.splits) == (0.001, False)
    assert row.severity is Severity.INFO


@pytest.mark.parametrize(
    ("impact", "text"),
    [
        (Impact(), ""),
        (Impact(num_nodes=3), "3 nodes"),
        (Impact(share=0.125, gone_share=0.125, num_nodes=1), "12% of 1 node"),
        (Impact(share=0.0312, gone_share=0.0937, num_nodes=32), "3.1% of 32 nodes, 9.4% in all"),
        (Impact(share=1, gone_share=1, num_nodes=1200), "100% of 1,200 nodes"),
        (Impact(splits=True, num_nodes=2, num_gpus=16), "2 nodes cut off, 16 GPUs"),
        (Impact(splits=True), "a part cut off"),
        (Impact(share=0.25, gone_share=0.5), ""),
        (Impact(hides=True, num_nodes=1, num_gpus=0, gangs=("a",)), "1 node not seen, 1 gang"),
        (Impact(hides=True), ""),
    ],
)
def test_it_says_what_a_finding_costs(impact: Impact, text: str) -> None:
    assert describe_impact(impact) == text


def test_gpus_and_gangs_are_those_of_the_nodes_behind_a_finding() -> None:
    rows = [
        Finding(FindingKind.SILENT_NODE, name, None, Severity.WARNING, "")
        for name in ("leaf-1", "d", "lost")
    ]
    measured = measure_impacts(rows, TREE)
    gpus = {"a": 8, "b": 8, "d": 4}
    gangs = {"job-10": ["a"], "job-2": ["a", "c"], "x": ["d"], "elsewhere": ["z"]}
    found = [row.impact for row in add_workloads(measured, TREE, gpus=gpus, gangs=gangs)]
    assert [row.num_gpus for row in found] == [16, 4, 0]
    assert [row.gangs for row in found] == [("job-2", "job-10"), ("x",), ()]
    unknown = [row.impact for row in add_workloads(measured, TREE, gpus=None, gangs=None)]
    assert {(row.num_gpus, row.gangs) for row in unknown} == {(None, None)}
    assert (
        sort_findings(add_workloads(measured, TREE, gpus=gpus, gangs=gangs))[0].device == "leaf-1"
    )
