"""A node that claims ids of other devices loses them, and their owners are placed as before."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.topology.cables import (
    claims,
    heard_from,
    hosts,
    infer_cables,
    listed,
    mac_of,
    mesh,
    of_kind,
    report,
    star,
    tiers_of,
)
from topology.identity.id_owners import index_id_owners
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Key, Origin
from topology.model.fabric import Fabric
from topology.model.facts import Device, DeviceKind, FindingKind, Neighbor, Port
from topology.model.ids import Id, IdKind

GUID = "0002c903007b78b0"
POD = [*star("leaf1", hosts(1, 4)), *star("leaf2", hosts(5, 8)), *mesh(["leaf1", "leaf2"], ["s1"])]


def liar(name: str, *ids: Id, heard: dict[str, list[Neighbor]] | None = None) -> Claim:
    """Return the claim of a node that claims the ids of other devices, too."""
    found = report(name, heard or {}).device
    device = Device(found.kind, name, tuple(sorted({*found.ids, *ids})), found.ports)
    return Claim(device, Origin.REPORT)


def mac(device: str, port: str = "") -> Id:
    return Id(IdKind.MAC, mac_of(device, port))


def chassis(device: str) -> Id:
    return Id(IdKind.CHASSIS_ID, mac_of(device), "mac")


def swept(name: str, guid: str, kind: DeviceKind, *ports: Port) -> Claim:
    return Claim(Device(kind, name, (Id(IdKind.NODE_GUID, guid),), ports), Origin.SWEEP)


def names_with(fabric: Fabric, value: str) -> list[str]:
    return [
        device.name
        for device in fabric.devices
        if value in {identifier.value for identifier in device.ids}
    ]


@pytest.mark.parametrize("name", ["h00", "h99"])
def test_a_node_keeps_the_address_that_its_cable_confirms(name: str) -> None:
    honest = infer_cables(POD)
    inference = infer_cables(POD, more=[liar(name, mac("h01", "eth0"), chassis("h01"))])
    assert tiers_of(inference) == tiers_of(honest)
    (finding,) = of_kind(inference.findings, FindingKind.DUPLICATE_ID)
    assert finding.device == name
    assert "belong to h01 according to other devices" in finding.message
    assert [gone.node for gone in inference.tree.unplaced] == [name]


def test_a_claimant_keeps_its_undisputed_ids() -> None:
    other_claims = [claim for claim in claims(POD) if claim.device.name != "h05"]
    bad = liar("h05", chassis("h01"), heard={"eth0": [heard_from("leaf2", "to-h05-eth0")]})
    fabric = build_fabric([*other_claims, bad])
    assert names_with(fabric, mac_of("h01")) == ["h01"]
    ends = {fabric.port_name(end) for link in fabric.links for end in (link.a, link.b)}
    assert ("h05", "eth0") in ends


@pytest.mark.parametrize("silent", [(), ("leaf1",)], ids=["walked", "not walked"])
@pytest.mark.parametrize("is_on_it", [True, False], ids=["a host of it", "a stranger"])
def test_a_leaf_keeps_its_chassis_id(*, silent: tuple[str, ...], is_on_it: bool) -> None:
    honest = infer_cables(POD, silent=silent)
    cable = {"eth0": [heard_from("leaf1", "to-h04-eth0")]}
    bad = liar("h04" if is_on_it else "h99", chassis("leaf1"), heard=cable if is_on_it else {})
    other_claims = [
        claim for claim in claims(POD, silent=silent) if claim.device.name != bad.device.name
    ]
    inference = infer_cables([], more=[*other_claims, bad])
    assert tiers_of(inference) == tiers_of(honest)
    (finding,) = of_kind(inference.findings, FindingKind.DUPLICATE_ID)
    assert finding.device == bad.device.name


def test_a_host_cannot_claim_the_id_of_a_swept_switch() -> None:
    switch = swept("leaf", GUID, DeviceKind.SWITCH)
    fabric = build_fabric([switch, liar("h1", Id(IdKind.NODE_GUID, GUID))])
    assert {device.name: device.kind for device in fabric.devices} == {
        "h1": DeviceKind.HOST,
        "leaf": DeviceKind.SWITCH,
    }
    assert names_with(fabric, GUID) == ["leaf"]


def test_a_sweep_decides_by_the_name_that_it_found() -> None:
    guid = Id(IdKind.NODE_GUID, GUID)
    port = Port("mlx5_0/1", (Id(IdKind.NODE_GUID, GUID, "1"),), rdma_device="mlx5_0")
    all_claims = [swept("h2", GUID, DeviceKind.HOST, port), liar("h1", guid), liar("h2", guid)]
    fabric = build_fabric(all_claims)
    assert names_with(fabric, GUID) == ["h2"]
    assert [fabric.devices[port_row.device].name for port_row in fabric.ports] == ["h2"]
    assert [finding.device for finding in fabric.findings] == ["h1"]


@pytest.mark.parametrize("first", ["h1", "h2"])
def test_an_id_stays_with_its_first_owner_without_other_evidence(first: str) -> None:
    guid = Id(IdKind.NODE_GUID, GUID)
    both_claims = [liar("h1", guid), liar("h2", guid)]
    owners: dict[Key, str] = {(IdKind.NODE_GUID, GUID): first}
    assert names_with(build_fabric(both_claims, previous_owners=owners), GUID) == [first]
    fabric = build_fabric(both_claims)
    assert "it identifies neither" in fabric.findings[0].message


def test_the_last_generation_knows_the_first_owner() -> None:
    guid = Id(IdKind.NODE_GUID, GUID)
    before = build_fabric([liar("h2", guid), liar("h3")])
    assert index_id_owners(before).get((IdKind.NODE_GUID, GUID)) == "h2"
    all_claims = [liar("h1", guid), liar("h2", guid), liar("h3")]
    after = build_fabric(all_claims, previous_owners=index_id_owners(before))
    assert names_with(after, GUID) == ["h2"]
    owners = [
        index_id_owners(after).get((IdKind.NODE_NAME, name)) for name in ("h1", "h2", "h3", "h4")
    ]
    assert owners == ["h1", "h2", "h3", None]


def test_an_id_that_two_nodes_have_has_no_owner() -> None:
    guid = Id(IdKind.NODE_GUID, GUID)
    fabric = build_fabric([liar("h1", guid), liar("h2", guid)])
    assert index_id_owners(fabric).get((IdKind.NODE_GUID, GUID)) is None


def test_there_are_no_owners_without_reports() -> None:
    assert index_id_owners(build_fabric([])).get((IdKind.NODE_GUID, GUID)) is None


def test_an_id_that_cables_confirm_for_two_nodes_identifies_neither() -> None:
    shared = heard_from("h01", "eth0", name="")
    leaf = report("leaf1", {f"to-{name}-eth0": [shared] for name in ("h01", "h02")})
    both = [
        liar(name, chassis("h01"), heard={"eth0": [heard_from("leaf1", f"to-{name}-eth0")]})
        for name in ("h01", "h02")
    ]
    (finding,) = build_fabric([leaf, *both]).findings
    assert "it identifies neither" in finding.message


def test_hosts_that_hear_each_other_keep_their_ids() -> None:
    ring = [(("h1", "eth0"), ("h2", "eth1")), (("h2", "eth0"), ("h3", "eth1"))]
    fabric = build_fabric(claims([*ring, (("h3", "eth0"), ("h1", "eth1"))]))
    assert len(fabric.links) == 3
    assert fabric.findings == ()


@given(st.permutations(claims(POD)), st.integers(0, 10))
def test_the_order_of_claims_has_no_effect(shuffled: list[Claim], position: int) -> None:
    bad = liar("h06", chassis("h01"), chassis("leaf1"))
    rest = [claim for claim in shuffled if claim.device.name != "h06"]
    expected = build_fabric([*[claim for claim in claims(POD) if claim.device.name != "h06"], bad])
    assert build_fabric([*rest[:position], bad, *rest[position:]]) == expected


GUIDS = {
    name: [f"0002c9030000{number}{at:03}" for at in range(4)]
    for number, name in ((1, "h1"), (2, "h2"), (3, "h3"))
}


def named_row(name: str, guids: list[str]) -> Claim:
    return listed(name, *(Id(IdKind.NODE_GUID, guid) for guid in guids))


def swept_hcas(names: dict[str, str] | None = None) -> list[Claim]:
    """Return the HCAs of all hosts, described as their hosts or as `names` says."""
    return [
        swept(
            (names or {}).get(guid, name),
            guid,
            DeviceKind.HOST,
            Port(f"mlx5_{at}/1", (Id(IdKind.NODE_GUID, guid, "1"),), rdma_device=f"mlx5_{at}"),
        )
        for name, guids in GUIDS.items()
        for at, guid in enumerate(guids)
    ]


def reports_of_hcas() -> list[Claim]:
    return [
        liar(name, *(Id(IdKind.NODE_GUID, guid) for guid in guids)) for name, guids in GUIDS.items()
    ]


def owners_of_guids(fabric: Fabric) -> dict[str, set[str | None]]:
    return {
        guid: {device.node for device in fabric.devices if guid in {i.value for i in device.ids}}
        for guids in GUIDS.values()
        for guid in guids
    }


TRUE_OWNERS = {guid: {name} for name, guids in GUIDS.items() for guid in guids}
ROWS = {
    "two rows": {"h1": GUIDS["h2"], "h2": GUIDS["h1"], "h3": GUIDS["h3"]},
    "one id of two rows": {
        "h1": [GUIDS["h2"][0], *GUIDS["h1"][1:]],
        "h2": [GUIDS["h1"][0], *GUIDS["h2"][1:]],
        "h3": GUIDS["h3"],
    },
    "three rows": {"h1": GUIDS["h2"], "h2": GUIDS["h3"], "h3": GUIDS["h1"]},
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("sources", ["sweep", "reports", "both"])
def test_ids_exchanged_in_the_inventory_move_no_node(
    rows: dict[str, list[str]], sources: str
) -> None:
    inventory = [named_row(name, guids) for name, guids in rows.items()]
    others = [
        *(swept_hcas() if sources != "reports" else ()),
        *(reports_of_hcas() if sources != "sweep" else ()),
    ]
    fabric = build_fabric([*inventory, *others])
    assert owners_of_guids(fabric) == TRUE_OWNERS
    num_pairs = 3 if rows is ROWS["three rows"] else 1
    assert len(fabric.findings) == num_pairs
    assert all("Correct the inventory." in finding.message for finding in fabric.findings)


REPEATED = {
    "one id": {**GUIDS, "h1": [*GUIDS["h1"], GUIDS["h2"][0]]},
    "all ids": {**GUIDS, "h1": GUIDS["h2"]},
    "all ids in three rows": {
        name: [guid for guids in GUIDS.values() for guid in guids] for name in GUIDS
    },
}


@pytest.mark.parametrize("rows", REPEATED.values(), ids=REPEATED)
@pytest.mark.parametrize("sources", ["sweep", "reports", "both"])
def test_ids_listed_for_several_nodes_move_no_node(
    rows: dict[str, list[str]], sources: str
) -> None:
    inventory = [named_row(name, guids) for name, guids in rows.items()]
    others = [
        *(swept_hcas() if sources != "reports" else ()),
        *(reports_of_hcas() if sources != "sweep" else ()),
    ]
    fabric = build_fabric([*inventory, *others])
    assert owners_of_guids(fabric) == TRUE_OWNERS
    assert {finding.kind for finding in fabric.findings} == {FindingKind.DUPLICATE_ID}
    assert all("Correct the inventory." in finding.message for finding in fabric.findings)


def test_an_id_listed_for_several_nodes_identifies_none_without_evidence() -> None:
    fabric = build_fabric([named_row("h1", GUIDS["h1"]), named_row("h2", GUIDS["h1"])])
    (finding,) = fabric.findings
    assert "it identifies neither" in finding.message


def captures_of(cables: list[Claim]) -> list[Claim]:
    """Return reports as captures that persons made on the devices: they name no node."""
    return [
        Claim(
            replace(
                claim.device,
                kind=DeviceKind.UNKNOWN,
                ids=tuple(id_ for id_ in claim.device.ids if id_.kind is not IdKind.NODE_NAME),
            ),
            Origin.CAPTURE,
        )
        for claim in cables
    ]


LISTED_HOSTS = hosts(1, 8)


@pytest.mark.parametrize("silent", [(), LISTED_HOSTS], ids=["all devices", "switches"])
@pytest.mark.parametrize(
    "others",
    [
        {"h01": "h05", "h05": "h01"},
        {"h01": "h05", "h05": "h02", "h02": "h01"},
        {"h01": "h05"},
    ],
    ids=["two rows", "three rows", "one row twice"],
)
def test_ids_exchanged_in_the_inventory_move_no_captured_node(
    others: dict[str, str], silent: tuple[str, ...]
) -> None:
    captures = captures_of(claims(POD, silent=silent))
    true = [listed(name, mac(name)) for name in LISTED_HOSTS]
    wrong = [listed(name, mac(others.get(name, name))) for name in LISTED_HOSTS]
    inference = infer_cables([], more=[*wrong, *captures])
    assert tiers_of(inference) == tiers_of(infer_cables([], more=[*true, *captures]))
    found = of_kind(inference.findings, FindingKind.DUPLICATE_ID)
    assert found
    assert all("Correct the inventory." in finding.message for finding in found)


def test_what_hosts_hear_exchanges_no_listed_nodes() -> None:
    inventory = [listed(name, mac(name)) for name in LISTED_HOSTS]
    honest = infer_cables(POD, silent=("h01", "h05"), more=inventory)
    forged = {
        "eth9": [heard_from("h01", "eth0", "h05")],
        "eth8": [heard_from("h05", "eth0", "h01")],
    }
    other_claims = claims(POD, silent=("h01", "h02", "h05"))
    own = [heard_from("leaf1", "to-h02-eth0")]
    bad = liar("h02", heard={"eth0": own, **forged})
    inference = infer_cables([], more=[*inventory, *other_claims, bad])
    assert tiers_of(inference) == tiers_of(honest)


def test_a_description_alone_moves_no_node() -> None:
    guid = GUIDS["h1"][0]
    inventory = [named_row(name, guids) for name, guids in GUIDS.items()]
    fabric = build_fabric([*inventory, *swept_hcas({guid: "h2"})])
    assert owners_of_guids(fabric) == TRUE_OWNERS
    (finding,) = fabric.findings
    assert "describes the HCA as h2's. It counts for h1." in finding.message


def test_a_report_alone_takes_no_listed_id_of_a_silent_node() -> None:
    inventory = [named_row(name, guids) for name, guids in GUIDS.items()]
    thief = liar("h2", *(Id(IdKind.NODE_GUID, guid) for guid in (*GUIDS["h2"], GUIDS["h1"][0])))
    fabric = build_fabric([*inventory, thief])
    assert owners_of_guids(fabric) == TRUE_OWNERS
    (finding,) = fabric.findings
    assert "it stays with the device that the inventory lists it for" in finding.message


def test_a_walked_switch_keeps_its_id_against_a_host_that_copies_its_cables() -> None:
    honest = infer_cables(POD)
    (leaf,) = [claim.device for claim in claims(POD) if claim.device.name == "leaf1"]
    copy = Device(DeviceKind.HOST, "h99", (*leaf.ids, Id(IdKind.NODE_NAME, "h99")), leaf.ports)
    inference = infer_cables(POD, more=[Claim(copy, Origin.REPORT)])
    expected = [set(map(tuple, tier.values())) for tier in tiers_of(honest)]
    found = [
        {tuple(node for node in nodes if node != "h99") for nodes in tier.values()} - {()}
        for tier in tiers_of(inference)
    ]
    assert found == expected


BMC = Id(IdKind.CHASSIS_ID, "de:ad:be:ef:00:01", "mac")


def test_hosts_share_the_address_of_what_is_no_port_without_a_fault() -> None:
    """lldpd may send the address of an interface that a BMC, a bridge or rshim shows each host."""
    others = [claim for claim in claims(POD) if claim.device.kind is not DeviceKind.HOST]
    sharers = [
        replace(claim, device=replace(claim.device, ids=tuple(sorted({*claim.device.ids, BMC}))))
        for claim in claims(POD)
        if claim.device.kind is DeviceKind.HOST
    ]
    inference = infer_cables([], more=[*others, *sharers])
    assert tiers_of(inference) == tiers_of(infer_cables(POD))
    assert of_kind(inference.findings, FindingKind.DUPLICATE_ID) == []
    assert names_with(build_fabric([*others, *sharers]), BMC.value) == []


def test_an_address_of_a_port_is_a_fault_on_any_number_of_hosts() -> None:
    sharers = [liar(f"h{number:02}", mac("h50", "eth0")) for number in range(50, 53)]
    for at, claim in enumerate(sharers):
        port = Port("eth7", (mac("h50", "eth0"),))
        device = replace(claim.device, ports=(*claim.device.ports, port))
        sharers[at] = replace(claim, device=device)
    fabric = build_fabric([*claims(POD), *sharers])
    assert of_kind(fabric.findings, FindingKind.DUPLICATE_ID)
