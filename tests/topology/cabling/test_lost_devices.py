"""A planned device without power is one row; a wrong name in the plan is none."""

from collections.abc import Collection
from dataclasses import replace

import pytest

from tests.topology.cabling.test_plan_diff_synthetic import SPECS, compare, plan_of
from tests.topology.synthetic.fabrics import seeded
from tests.topology.verdicts import collect_claims
from topology.cabling.plan_diff import CablingDiff, Difference, DifferenceKind, compare_cabling
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan
from topology.synthetic import (
    Cable,
    FaultSpec,
    SyntheticSpec,
    Wiring,
    build_wiring,
    damage_fabric,
)


def lose(wiring: Wiring, *names: str) -> CablingDiff:
    return compare(damage_fabric(wiring, FaultSpec(lost=names), rng=seeded(0)))


def list_lost(diff: CablingDiff) -> list[Difference]:
    return [row for row in diff.differences if row.kind is DifferenceKind.LOST_DEVICE]


def count_cables(wiring: Wiring, names: Collection[str]) -> int:
    return sum(not {*names}.isdisjoint(end.device for end in cable) for cable in wiring.cables)


@pytest.mark.parametrize("spec", [SPECS["rails"], SPECS["a fat tree"]], ids=["rails", "fat tree"])
def test_a_switch_without_power_is_one_row_with_all_its_cables(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    for switch in wiring.switches:
        diff = lose(wiring, switch.name)
        (row,) = list_lost(diff)
        assert row.lost == switch.name
        assert len(row.planned) == count_cables(wiring, [switch.name])
        assert "and the other ends have no link" in row.message
        kinds = {row.kind for row in diff.differences}
        assert kinds <= {DifferenceKind.LOST_DEVICE, DifferenceKind.UNKNOWN_DEVICE}
        assert diff.moves == ()


def test_a_host_without_power_is_one_row() -> None:
    wiring = build_wiring(SPECS["rails"])
    host = wiring.hosts[3].name
    (row,) = lose(wiring, host).differences
    assert (row.kind, row.lost, len(row.planned)) == (DifferenceKind.LOST_DEVICE, host, 4)


def test_a_cable_between_two_of_them_is_in_one_row() -> None:
    wiring = build_wiring(SPECS["rails"])
    cable = next(cable for cable in wiring.cables if cable.low.device.startswith("leaf"))
    names = [end.device for end in cable]
    rows = list_lost(lose(wiring, *names))
    assert {row.lost for row in rows} == {*names}
    assert sum(len(row.planned) for row in rows) == count_cables(wiring, names)


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_wrong_name_in_the_plan_is_no_lost_device(spec: SyntheticSpec) -> None:
    wiring = build_wiring(spec)
    fabric = build_fabric(collect_claims(damage_fabric(wiring, FaultSpec(), rng=seeded(0))))
    for device in (wiring.hosts[0].name, *(switch.name for switch in wiring.switches)):
        cables = [
            cable._replace(
                device_a="wrong" if cable.device_a == device else cable.device_a,
                device_b="wrong" if cable.device_b == device else cable.device_b,
            )
            for cable in plan_of(wiring).cables
        ]
        assert list_lost(compare_cabling(CablingPlan(tuple(cables)), fabric)) == []
        # Nor is it if no planned port of the device is the right one.
        moved = [
            cable._replace(
                port_a=f"9{cable.port_a}" if cable.device_a == "wrong" else cable.port_a,
                port_b=f"9{cable.port_b}" if cable.device_b == "wrong" else cable.port_b,
            )
            for cable in cables
        ]
        diff = compare_cabling(CablingPlan(tuple(moved)), fabric)
        assert all("wrong" not in row.lost for row in list_lost(diff))


def test_an_other_end_with_another_link_stays_a_row_of_its_own() -> None:
    wiring = build_wiring(SPECS["rails"])
    spine = next(switch.name for switch in wiring.switches if switch.rank == 1)
    damaged = damage_fabric(wiring, FaultSpec(lost=(spine,)), rng=seeded(0))
    ends = [
        end for cable in wiring.cables for end, far in (cable, cable[::-1]) if far.device == spine
    ]
    joined = Cable(ends[0], ends[1])
    diff = compare(replace(damaged, cables=(*damaged.cables, joined)))
    (row,) = list_lost(diff)
    others = [row for row in diff.differences if row.kind is DifferenceKind.UNKNOWN_DEVICE]
    assert (len(row.planned), len(others)) == (len(ends) - 2, 2)
