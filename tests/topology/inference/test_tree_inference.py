"""Hard cases of the inference, each a small fabric written cable by cable.

The usual fabric is two leaves `leaf-a` and `leaf-b` with four hosts each, under two spines. Each
case changes one thing in that fabric.
"""

import pytest

from tests.topology.cables import (
    claims,
    hosts,
    infer_cables,
    listed,
    mesh,
    of_kind,
    reason_of,
    star,
    tiers_of,
)
from tests.topology.compute_trees import infer_compute_tree
from tests.topology.verdicts import infer_from
from topology.inference.tree_inference import tier_names
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.errors import ConfigError
from topology.model.facts import (
    Device,
    DeviceKind,
    FindingKind,
    Medium,
    Neighbor,
    Port,
    Severity,
    Source,
)
from topology.model.ids import Id, IdKind
from topology.model.tree import render_tree

LEAVES = ["leaf-a", "leaf-b"]
SPINES = ["spine-1", "spine-2"]
USUAL = [
    *star("leaf-a", hosts(1, 4)),
    *star("leaf-b", hosts(5, 8)),
    *mesh(LEAVES, SPINES, parallel=2),
]
TWO_LEAVES = {"leaf-a": hosts(1, 4), "leaf-b": hosts(5, 8)}


def test_it_makes_leaves_and_spines_of_the_usual_fabric() -> None:
    inference = infer_cables(USUAL)
    assert tiers_of(inference) == [TWO_LEAVES, {"spine-1-2": hosts(1, 8)}]
    assert inference.tree.tiers == ("leaf", "spine")
    assert inference.findings == ()
    assert inference.tree.unplaced == ()


def test_it_leaves_a_host_on_a_spine_unplaced_and_the_spine_a_spine() -> None:
    inference = infer_cables([*USUAL, *star("spine-1", ["h09"])])
    assert tiers_of(inference) == [TWO_LEAVES, {"spine-1-2": hosts(1, 8)}]
    assert reason_of(inference, "h09") == "cabled to spine-1, which is not a leaf"
    assert [one.device for one in of_kind(inference.findings, FindingKind.HOST_ON_SPINE)] == ["h09"]


def test_it_treats_a_last_leaf_with_one_host_as_a_leaf() -> None:
    inference = infer_cables(
        [*USUAL, *star("leaf-c", ["h09"]), *mesh(["leaf-c"], SPINES, parallel=2)]
    )
    assert tiers_of(inference)[0] == TWO_LEAVES | {"leaf-c": ["h09"]}


def test_it_places_a_single_homed_host_whose_cable_moved_in_its_new_leaf() -> None:
    moved = [cable for cable in USUAL if cable[0][0] != "h04"]
    inference = infer_cables([*moved, *star("leaf-b", ["h04"])])
    assert tiers_of(inference)[0] == {"leaf-a": hosts(1, 3), "leaf-b": hosts(4, 8)}


def test_it_leaves_a_host_tied_between_two_leaves_unplaced_and_reports_it() -> None:
    torn = [*star("leaf-a", ["h09"]), *star("leaf-b", ["h09"], "eth1")]
    inference = infer_cables([*USUAL, *torn])
    assert tiers_of(inference)[0] == TWO_LEAVES
    assert reason_of(inference, "h09") == "undecided: 1 link each to leaf-a and to leaf-b"
    (finding,) = of_kind(inference.findings, FindingKind.UNDECIDABLE)
    assert (finding.device, finding.severity) == ("h09", Severity.ERROR)
    assert {end.device for end in finding.ports} == {"h09", "leaf-a", "leaf-b"}


def test_it_sets_aside_a_storage_pair_that_pods_share() -> None:
    pods = [
        *(cable for at in range(4) for cable in star(f"leaf-{at}a", hosts(4 * at, 4 * at + 3))),
        *(
            cable
            for at in range(4)
            for cable in star(f"leaf-{at}b", hosts(4 * at, 4 * at + 3), "eth1")
        ),
        *mesh([f"leaf-{at}{side}" for at in range(4) for side in "ab"], SPINES, parallel=4),
    ]
    shared = hosts(0, 15)
    storage = [*star("store-a", shared, "eth2"), *star("store-b", shared, "eth3")]
    inference = infer_cables([*pods, *storage])
    assert list(tiers_of(inference)[0].values()) == [hosts(4 * at, 4 * at + 3) for at in range(4)]
    (finding,) = of_kind(inference.findings, FindingKind.AUX_SWITCH)
    assert [end.device for end in finding.ports] == ["store-a", "store-b"]


@pytest.mark.parametrize("num_rails", [2, 4], ids=["an MLAG pair", "four rails"])
def test_it_makes_one_domain_of_leaves_that_serve_the_same_hosts(num_rails: int) -> None:
    cables = []
    leaves = []
    for pod, members in (("a", hosts(1, 4)), ("b", hosts(5, 8))):
        for rail in range(num_rails):
            leaves.append(f"leaf-{pod}{rail}")
            cables += star(leaves[-1], members, f"eth{rail}")
    inference = infer_cables([*cables, *mesh(leaves, SPINES, parallel=2)])
    assert list(tiers_of(inference)[0].values()) == [hosts(1, 4), hosts(5, 8)]
    assert {len(domain.switches) for domain in inference.tree.domains[:2]} == {num_rails}
    assert inference.findings == ()


def test_it_joins_rails_that_share_no_cable() -> None:
    rails = [*star("leaf-a", hosts(1, 4)), *star("leaf-b", hosts(1, 4), "eth1")]
    inference = infer_cables(rails)
    assert tiers_of(inference) == [{"leaf": hosts(1, 4)}]
    assert inference.tree.domains[0].switches == ("leaf-a", "leaf-b")


def test_it_reports_a_leaf_without_uplink_as_an_island() -> None:
    inference = infer_cables([*USUAL, *star("leaf-c", hosts(9, 12))])
    alone = next(domain for domain in inference.tree.domains if domain.name == "leaf-c")
    assert (alone.parent, alone.tier) == (None, 1)
    assert [one.device for one in of_kind(inference.findings, FindingKind.ISLAND)] == ["leaf-c"]


def test_it_keeps_two_fabrics_without_a_cable_between_them_apart() -> None:
    other = [*star("leaf-y", hosts(11, 13)), *star("leaf-z", hosts(14, 16))]
    inference = infer_cables([*USUAL, *other, *mesh(["leaf-y", "leaf-z"], ["spine-8", "spine-9"])])
    assert [len(nodes) for nodes in tiers_of(inference)[1].values()] == [8, 6]
    (finding,) = of_kind(inference.findings, FindingKind.ISLAND)
    assert [end.device for end in finding.ports] == ["spine-8", "spine-9"]


def test_it_gives_a_shallower_pod_a_parent_more_than_one_tier_up() -> None:
    pods = [*USUAL, *star("leaf-y", hosts(11, 14)), *star("leaf-z", hosts(15, 18))]
    pods += mesh(["leaf-y", "leaf-z"], ["spine-8", "spine-9"], parallel=2)
    pods += mesh([*SPINES, "spine-8", "spine-9"], ["core-1", "core-2"], parallel=2)
    pods += star("leaf-s", hosts(21, 24))
    inference = infer_cables([*pods, *mesh(["leaf-s"], ["core-1", "core-2"])])
    names = [domain.name for domain in inference.tree.domains]
    shallow = inference.tree.domains[names.index("leaf-s")]
    assert shallow.parent is not None
    assert (shallow.tier, inference.tree.domains[shallow.parent].tier) == (1, 3)
    assert inference.tree.tiers == ("leaf", "spine", "core")


def test_it_makes_a_flat_forest_of_leaves_without_a_spine() -> None:
    inference = infer_cables([*star("leaf-a", hosts(1, 4)), *star("leaf-b", hosts(5, 8))])
    assert tiers_of(inference) == [TWO_LEAVES]


def test_it_sets_a_leaf_without_hosts_aside_instead_of_making_a_tier_of_it() -> None:
    wide = [*USUAL, *star("leaf-c", hosts(9, 12)), *mesh(["leaf-c"], SPINES, parallel=2)]
    inference = infer_cables([*wide, *mesh(["leaf-d"], SPINES)])
    assert inference.tree.tiers == ("leaf", "spine")
    assert [one.device for one in of_kind(inference.findings, FindingKind.AUX_SWITCH)] == ["leaf-d"]


def test_it_keeps_a_thin_top_that_adds_no_path_and_reports_it() -> None:
    inference = infer_cables([*USUAL, *mesh(SPINES, ["core-1"], parallel=3)])
    assert inference.tree.tiers == ("leaf", "spine", "core")
    (finding,) = of_kind(inference.findings, FindingKind.UNDECIDABLE)
    assert (finding.device, finding.severity) == ("core-1", Severity.INFO)


def test_it_gives_no_parent_to_a_domain_tied_between_two_groups_above() -> None:
    pods = [*USUAL, *star("leaf-y", hosts(11, 14)), *star("leaf-z", hosts(15, 18))]
    pods += mesh(["leaf-y", "leaf-z"], ["spine-8", "spine-9"], parallel=2)
    pods += star("leaf-t", hosts(21, 24))
    inference = infer_cables([*pods, *mesh(["leaf-t"], ["spine-1", "spine-8"], parallel=2)])
    (finding,) = of_kind(inference.findings, FindingKind.UNDECIDABLE)
    assert finding.device == "leaf-t"
    assert "Its domain has no parent" in finding.message
    torn = next(domain for domain in inference.tree.domains if domain.name == "leaf-t")
    assert torn.parent is None


def test_it_keeps_parallel_cables_and_ignores_a_loop_back() -> None:
    loop = (("leaf-a", "loop-1"), ("leaf-a", "loop-2"))
    fabric = build_fabric(claims([*USUAL, loop]))
    assert len(fabric.links) == len(USUAL) + 1
    assert infer_compute_tree(fabric).tree == infer_cables(USUAL).tree


def test_it_places_a_silent_host_by_the_inventory_and_its_leaf() -> None:
    chassis = next(one for one in claims(USUAL) if one.device.name == "h03").device.ids
    mac = next(one.value for one in chassis if one.kind is IdKind.CHASSIS_ID)
    others = [listed(name) for name in hosts(1, 8) if name != "h03"]
    known = infer_cables(USUAL, silent=["h03"], more=[*others, listed("h03", Id(IdKind.MAC, mac))])
    assert tiers_of(known)[0] == TWO_LEAVES


def test_it_leaves_out_hosts_that_are_not_in_the_inventory() -> None:
    silent = infer_cables(USUAL, silent=["h03"], more=[listed(one) for one in hosts(1, 2)])
    assert "h03" not in silent.tree.nodes
    assert all(gone.node != "h03" for gone in silent.tree.unplaced)


def test_it_explains_why_a_listed_node_without_links_is_unplaced() -> None:
    inference = infer_cables(USUAL, more=[listed("h99")])
    assert reason_of(inference, "h99") == "no link in the compute plane is known"


def test_it_leaves_a_host_on_a_shared_switch_alone_unplaced() -> None:
    everyone = hosts(1, 8)
    shared = [*star("store", everyone, "eth1"), *star("store", ["h09"])]
    inference = infer_cables([*USUAL, *shared])
    assert tiers_of(inference)[0] == TWO_LEAVES
    assert (
        reason_of(inference, "h09") == "cabled to store, which is a switch without hosts of its own"
    )


@pytest.mark.parametrize("kind", [DeviceKind.AGGREGATION, DeviceKind.ROUTER])
def test_it_ignores_devices_that_are_neither_host_nor_switch(kind: DeviceKind) -> None:
    def guid(number: int) -> Id:
        return Id(IdKind.NODE_GUID, f"{number:016x}")

    def swept(number: int, of: DeviceKind, peers: list[tuple[int, DeviceKind]]) -> Claim:
        ports = tuple(
            Port(
                str(at),
                (Id(IdKind.NODE_GUID, guid(number).value, str(at)),),
                Medium.INFINIBAND,
                neighbors=(Neighbor((guid(peer),), "", (), "", Source.IB, peer_kind),),
            )
            for at, (peer, peer_kind) in enumerate(peers, 1)
        )
        name = f"n{number}" if of is DeviceKind.HOST else f"sw{number}"
        return Claim(Device(of, name, (guid(number),), ports), Origin.SWEEP)

    parts = [
        swept(1, DeviceKind.SWITCH, [(11, DeviceKind.HOST), (12, DeviceKind.HOST), (5, kind)]),
        swept(2, DeviceKind.SWITCH, [(13, DeviceKind.HOST), (14, DeviceKind.HOST), (5, kind)]),
        swept(5, kind, [(1, DeviceKind.SWITCH), (2, DeviceKind.SWITCH)]),
        *(swept(11 + at, DeviceKind.HOST, [(1 + at // 2, DeviceKind.SWITCH)]) for at in range(4)),
    ]
    inference = infer_from(parts)
    assert tiers_of(inference) == [{"sw1": ["n11", "n12"], "sw2": ["n13", "n14"]}]


def test_it_keeps_all_names_when_one_leaf_is_added_or_a_spine_is_lost() -> None:
    before = infer_cables(USUAL).tree
    added = [*USUAL, *star("leaf-0", hosts(9, 12)), *mesh(["leaf-0"], SPINES, parallel=2)]
    lost = [cable for cable in USUAL if cable[1][0] != "spine-1"]
    grown = infer_from(claims(added), previous=before).tree
    shrunk = infer_from(claims(lost), previous=before).tree
    old = {domain.name for domain in before.domains}
    assert {domain.name for domain in grown.domains} == old | {"leaf-0"}
    assert {domain.name for domain in shrunk.domains} == old


def test_it_renders_the_same_document_for_claims_in_any_order() -> None:
    reports = claims(USUAL)
    assert render_tree(infer_from(reports).tree) == render_tree(infer_from(reports[::-1]).tree)


@pytest.mark.parametrize(
    ("num_tiers", "configured", "names"),
    [
        pytest.param(1, (), ("leaf",), id="one tier"),
        pytest.param(5, (), ("leaf", "spine", "core", "core2", "core3"), id="more than three"),
        pytest.param(2, ("rack", "row", "hall"), ("rack", "row"), id="as configured"),
        pytest.param(3, ("rack",), ("rack", "spine", "core"), id="later ones by default"),
        pytest.param(2, ("spine",), ("spine", "tier-2"), id="a default name for another tier"),
    ],
)
def test_it_names_tiers(
    num_tiers: int, configured: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert tier_names(num_tiers, configured) == names


@pytest.mark.parametrize(
    ("configured", "problem"),
    [
        (("rack", "rack"), "'rack' is listed twice"),
        (("rack", ""), "empty"),
        (("1", "rack"), "'1' is a number"),
        (("node", "rack"), "a single node"),
        (("rack", "CLUSTER"), "all nodes"),
    ],
)
def test_it_refuses_tier_names(configured: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        tier_names(2, configured)
