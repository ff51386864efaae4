"""Each lost cable of a fabric is a step of its work order, and no step is about another cable."""

from __future__ import annotations

import pytest

from tests.effort import first_of
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims, infer_from
from topology.findings.finding_causes import list_causes
from topology.findings.work_order import build_work_order
from topology.model.facts import FindingKind, PortName
from topology.synthetic import (
    FabricKind,
    FaultKind,
    FaultSpec,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
)

ABSENT = frozenset({FindingKind.MISSING_LINK, FindingKind.DOWN_PORT})
RAILS = SyntheticSpec(FabricKind.RAIL, 512)
SMALL_RAILS = SyntheticSpec(FabricKind.RAIL, 512, radix=16)
FAT_TREE = SyntheticSpec(FabricKind.FAT_TREE, 512, radix=16)
LARGE = SyntheticSpec(FabricKind.RAIL, 4096)


def check_steps(spec: SyntheticSpec, faults: FaultSpec, seed: int) -> None:
    damaged = damage_fabric(build_wiring(spec), faults, rng=seeded(seed))
    inference = infer_from(collect_claims(damaged))
    lost = [fault for fault in damaged.faults if fault.kind is FaultKind.LOST_LINK]
    hosts = frozenset(inference.tree.all_nodes)
    order = build_work_order(list_causes(inference.findings, hosts), inference.tree, {})
    ends = {
        PortName(step.device, step.port)
        for step in order.steps
        if step.kind in ABSENT and step.port
    }
    detectable = [fault.ports for fault in lost if fault.is_detectable]
    assert [cable for cable in detectable if ends.isdisjoint(cable)] == []
    assert ends - {end for fault in lost for end in fault.ports} == set()


@pytest.mark.parametrize("seed", first_of(range(6)))
def test_also_of_a_switch_with_a_swapped_up_link(seed: int) -> None:
    check_steps(RAILS, FaultSpec(lose_links=0.02, num_swaps=3), seed)


@pytest.mark.parametrize("seed", first_of((2, 0, 1, 3)))
def test_also_beside_a_lost_core(seed: int) -> None:
    check_steps(FAT_TREE, FaultSpec(lose_links=0.01, lose_switches=1, lose_rank=3), seed)


@pytest.mark.long
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_also_beside_a_lost_core_of_either_tier(seed: int, rank: int) -> None:
    check_steps(SMALL_RAILS, FaultSpec(lose_links=0.01, lose_switches=1, lose_rank=rank), seed)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(FaultSpec(lose_links=0.02, num_swaps=3), id="beside swapped cables"),
        pytest.param(FaultSpec(lose_links=0.01, lose_switches=1, lose_rank=3), id="and a core"),
    ],
)
def test_of_a_large_fabric(faults: FaultSpec) -> None:
    check_steps(LARGE, faults, seed=0)
