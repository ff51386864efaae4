"""Cables in the wrong port, missing cables, and the advice to repair them."""

from dataclasses import replace

import pytest

from tests.topology.cables import (
    End,
    claims,
    heard_from,
    hosts,
    infer_cables,
    mesh,
    of_kind,
    report,
    star,
)
from tests.topology.synthetic.fabrics import cut, silence, swap
from tests.topology.verdicts import collect_claims, infer_from
from topology.inference.tree_inference import Inference
from topology.model.facts import Finding, FindingKind, Neighbor, PortName
from topology.synthetic import (
    Cable,
    DamagedFabric,
    FabricKind,
    NamePolicy,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
)

RAILS = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 16, rails=4, radix=16)))
PODS = build_undamaged(build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 32, radix=8, tiers=3)))
SPINES = ["spine-1", "spine-2"]


def inferred(damaged: DamagedFabric) -> Inference:
    return infer_from(collect_claims(damaged))


def swaps(findings: list[Finding]) -> set[frozenset[PortName]]:
    return {frozenset(pair) for finding in findings for pair in finding.swap}


def upper(device: str, port: str) -> PortName:
    return next(
        cable.high for cable in (*RAILS.cables, *PODS.cables) if cable.low == (device, port)
    )


def test_it_finds_nothing_wrong_with_undamaged_fabrics() -> None:
    assert inferred(RAILS).findings == inferred(PODS).findings == ()


def test_it_names_the_swap_that_repairs_two_nics_on_each_other_s_rail() -> None:
    one, other = ("node-0002", "mlx5_1/1"), ("node-0002", "mlx5_2/1")
    found = of_kind(inferred(swap(RAILS, one, other)).findings, FindingKind.WRONG_RAIL)
    assert swaps(found) == {frozenset({PortName(*one), PortName(*other)})}, "on one device"
    assert "on each other's rail" in found[0].message


def test_it_names_the_swap_of_two_host_cables_across_groups() -> None:
    one, other = ("node-0002", "mlx5_1/1"), ("node-0010", "mlx5_1/1")
    found = of_kind(inferred(swap(RAILS, one, other)).findings, FindingKind.SWAPPED_CABLE)
    assert swaps(found) == {frozenset({upper(*one), upper(*other)})}


def test_it_names_the_swap_behind_two_hosts_tied_between_two_groups() -> None:
    pairs = build_undamaged(build_wiring(SyntheticSpec(FabricKind.DUAL_HOMED, 16, radix=16)))
    found = inferred(swap(pairs, ("node-0002", "mlx5_0/1"), ("node-0010", "mlx5_0/1")))
    (finding,) = of_kind(found.findings, FindingKind.SWAPPED_CABLE)
    assert {end.device for end in finding.ports} >= {"node-0002", "node-0010"}
    assert len(of_kind(found.findings, FindingKind.UNDECIDABLE)) == 2


def test_it_proposes_no_exchange_that_gives_two_tied_hosts_two_cables_to_one_leaf() -> None:
    pairs = build_undamaged(build_wiring(SyntheticSpec(FabricKind.DUAL_HOMED, 40, radix=10)))
    moved = swap(pairs, ("node-0023", "mlx5_0/1"), ("node-0011", "mlx5_0/1"))
    doubled = swap(moved, ("node-0022", "mlx5_0/1"), ("node-0024", "mlx5_1/1"))
    found = inferred(doubled).findings
    tied = {finding.device for finding in of_kind(found, FindingKind.UNDECIDABLE)}
    assert {"node-0021", "node-0025"} <= tied
    assert of_kind(found, FindingKind.SWAPPED_CABLE) == []


def test_it_names_the_swap_of_two_up_links_across_pods() -> None:
    leaves = [switch.name for switch in PODS.wiring.switches if switch.rank == 1]
    ups = {cable.low.device: cable.low for cable in PODS.cables if cable.low.device in leaves}
    one, other = ups[leaves[0]], ups[leaves[-1]]
    found = of_kind(inferred(swap(PODS, one, other)).findings, FindingKind.SWAPPED_CABLE)
    assert swaps(found) == {frozenset({upper(*one), upper(*other)})}


def test_it_reports_a_lone_host_cable_in_another_group() -> None:
    cables = [
        *(cable for rail in range(3) for cable in star(f"a{rail}", hosts(1, 4), f"eth{rail}")),
        *(cable for rail in range(3) for cable in star(f"b{rail}", hosts(5, 8), f"eth{rail}")),
    ]
    moved = [
        ((low, ("b2", "x")) if low == ("h01", "eth2") else (low, high)) for low, high in cables
    ]
    (finding,) = of_kind(infer_cables(moved).findings, FindingKind.SWAPPED_CABLE)
    assert finding.ports == (PortName("h01", "eth2"), PortName("b2", "x"))
    assert finding.swap == ()


@pytest.mark.parametrize(
    "spec",
    [
        SyntheticSpec(FabricKind.DUAL_HOMED, 7, radix=12, uplinks=4, peer_links=1),
        SyntheticSpec(FabricKind.RAIL, 12, rails=7, radix=22),
        SyntheticSpec(FabricKind.DUAL_PLANE, 5, rails=4, radix=8, tiers=3, uplinks=2),
    ],
    ids=lambda spec: spec.kind.value,
)
def test_it_reports_no_lone_host_on_the_storage_switch_of_another_group(
    spec: SyntheticSpec,
) -> None:
    opaque = replace(spec, storage_leaves=1, names=NamePolicy.OPAQUE)
    found = inferred(build_undamaged(build_wiring(opaque))).findings
    assert of_kind(found, FindingKind.SWAPPED_CABLE) == []


def test_it_reports_a_lone_nic_on_another_rail() -> None:
    cables = [cable for rail in range(3) for cable in star(f"a{rail}", hosts(1, 4), f"eth{rail}")]
    moved = [
        ((low, ("a1", "x")) if low == ("h01", "eth2") else (low, high)) for low, high in cables
    ]
    (finding,) = of_kind(infer_cables(moved).findings, FindingKind.WRONG_RAIL)
    assert (finding.device, finding.port) == ("a1", "x")
    assert "another rail" in finding.message


def test_it_reports_two_cables_of_one_host_on_one_leaf() -> None:
    cables = [
        *star("a0", hosts(1, 9)),
        *star("a1", hosts(1, 9), "eth1"),
        *star("b0", ["h10"]),
        *star("b0", ["h10"], "eth1"),
        *mesh(["a0", "a1", "b0"], SPINES, parallel=2),
    ]
    (finding,) = of_kind(infer_cables(cables).findings, FindingKind.WRONG_RAIL)
    assert finding.device == "b0"
    assert "2 cables to b0" in finding.message


def test_it_reports_nothing_where_many_hosts_have_two_cables_on_a_leaf() -> None:
    cables = [cable for port in ("eth0", "eth1") for cable in star("a0", hosts(1, 4), port)]
    assert infer_cables(cables).findings == ()


def test_it_names_the_port_of_a_host_without_a_link() -> None:
    found = inferred(cut(RAILS, ("node-0003", "mlx5_2/1")))
    (finding,) = of_kind(found.findings, FindingKind.MISSING_LINK)
    assert (finding.device, finding.port) == ("node-0003", "mlx5_2/1")
    far = next(row.high for row in RAILS.cables if row.low == ("node-0003", "mlx5_2/1"))
    assert f"(no link on mlx5_2/1 to {far.device} port {far.port})" in finding.message
    assert finding.ports == (("node-0003", "mlx5_2/1"), far)


def test_it_names_the_port_of_a_silent_host_by_the_ports_of_its_peers() -> None:
    found = inferred(silence(cut(RAILS, ("node-0003", "mlx5_2/1")), "node-0003"))
    (finding,) = of_kind(found.findings, FindingKind.MISSING_LINK)
    assert (finding.device, finding.port) == ("node-0003", "mlx5_2/1")


def test_it_names_both_switches_of_a_missing_up_link() -> None:
    lost = next(cable for cable in RAILS.cables if cable.low.device.startswith("leaf"))
    (finding,) = of_kind(inferred(cut(RAILS, lost.low)).findings, FindingKind.MISSING_LINK)
    assert set(finding.ports) == {lost.low, lost.high}
    assert f"{lost.low.device} port {lost.low.port}" in finding.message
    assert f"{lost.high.device} port {lost.high.port}" in finding.message


def test_it_counts_up_links_where_not_all_pairs_are_cabled() -> None:
    lost = next(cable for cable in PODS.cables if cable.low.device.startswith("spine"))
    (finding,) = of_kind(inferred(cut(PODS, lost.low)).findings, FindingKind.MISSING_LINK)
    assert set(finding.ports) == {lost.low, lost.high}


def test_it_reports_all_links_of_a_host_without_any_cable() -> None:
    dark: list[tuple[End, End]] = [*star("leaf-a", hosts(1, 4))]
    found = infer_from([*claims(dark), report("h09", {"eth0": []})])
    (finding,) = of_kind(found.findings, FindingKind.MISSING_LINK)
    assert (finding.device, finding.port) == ("h09", "eth0")


def test_it_names_the_same_missing_ports_in_any_order_of_the_report() -> None:
    cables = [cable for rail in range(4) for cable in star(f"a{rail}", hosts(1, 4), f"eth{rail}")]
    kept = [cable for cable in cables if cable[0] not in (("h01", "eth1"), ("h01", "eth3"))]
    told = [claim for claim in claims(kept) if claim.device.name != "h01"]
    linked = {low[1]: [heard_from(*high)] for low, high in kept if low[0] == "h01"}
    dark: list[dict[str, list[Neighbor]]] = [
        {"eth1": [], "eth3": [], **linked},
        {"eth3": [], **linked, "eth1": []},
    ]
    first, second = (infer_from([*told, report("h01", ports)]).findings for ports in dark)
    assert first == second
    (finding,) = of_kind(first, FindingKind.MISSING_LINK)
    assert [tuple(end) for end in finding.ports] == [
        *(("h01", "eth1"), ("a1", "")),
        *(("h01", "eth3"), ("a3", "")),
    ]


def test_it_reports_no_missing_link_where_no_cable_is_known() -> None:
    dark = [report("h01", {"eth0": []}), report("h02", {"eth0": []})]
    assert FindingKind.MISSING_LINK not in {one.kind for one in infer_from(dark).findings}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("leaf-p01-g01-r1", 0), ("leaf-p01-g02-r1", 1), id="other leaf groups"),
        pytest.param(("leaf-p02-g03-r1", 2), ("leaf-p02-g03-r2", 3), id="leaves of one group"),
    ],
)
def test_it_names_both_cables_of_a_swap_inside_a_pod(
    first: tuple[str, int], second: tuple[str, int]
) -> None:
    wiring = build_wiring(SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16))
    ups = [
        [cable for cable in wiring.cables if cable.low.device == leaf][number]
        for leaf, number in (first, second)
    ]
    swapped = {ups[0]: Cable(ups[0].low, ups[1].high), ups[1]: Cable(ups[1].low, ups[0].high)}
    cables = tuple(swapped.get(cable, cable) for cable in wiring.cables)
    found = inferred(replace(build_undamaged(wiring), cables=cables)).findings
    (finding,) = found
    assert finding.kind is FindingKind.SWAPPED_CABLE
    assert set(finding.ports) == {end for cable in ups for end in cable}
    assert set(finding.swap[0]) == {ups[0].high, ups[1].high}


def test_it_names_both_swaps_that_share_a_leaf() -> None:
    wiring = build_wiring(SyntheticSpec(FabricKind.RAIL, 64, rails=4, radix=16))
    leaves = ("leaf-p01-g01-r1", "leaf-p01-g01-r2", "leaf-p01-g02-r1")
    first, shared, last = (
        [cable for cable in wiring.cables if cable.low.device == leaf] for leaf in leaves
    )
    pairs = (first[4], shared[0]), (shared[1], last[0])
    swapped = {
        cable: Cable(cable.low, other.high)
        for one, two in pairs
        for cable, other in ((one, two), (two, one))
    }
    cables = tuple(swapped.get(cable, cable) for cable in wiring.cables)
    found = inferred(replace(build_undamaged(wiring), cables=cables)).findings
    assert {finding.kind for finding in found} == {FindingKind.SWAPPED_CABLE}
    assert {frozenset(finding.swap[0]) for finding in found} == {
        frozenset({one.high, two.high}) for one, two in pairs
    }


def test_it_names_the_swaps_that_leave_a_spine_half_of_its_cables() -> None:
    pod = build_undamaged(build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 35, radix=12, uplinks=3)))
    pairs = [(("leaf-g01", "9"), ("leaf-g02", "7")), (("leaf-g03", "9"), ("leaf-g04", "8"))]
    damaged = swap(swap(pod, *pairs[0]), *pairs[1])
    found = inferred(damaged)
    assert {finding.kind for finding in found.findings} == {FindingKind.SWAPPED_CABLE}
    planned = {cable.low: cable.high for cable in pod.cables}
    assert swaps(list(found.findings)) == {
        frozenset(planned[PortName(*end)] for end in pair) for pair in pairs
    }
    assert found.tree.domains[-1].switches == ("spine-01", "spine-02", "spine-03")
