"""Claims joined one by one: one identity per device, and cables paired from both ends."""

from collections.abc import Iterable
from dataclasses import replace

from tests.topology.cables import (
    claims,
    heard_from,
    hosts,
    infer_cables,
    listed,
    mac_of,
    of_kind,
    port_ids,
    report,
    star,
    tiers_of,
)
from topology.findings.link_findings import find_one_sided_links
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.fabric import Fabric
from topology.model.facts import Device, DeviceKind, FindingKind, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind

GUID = "0002c903007b78b0"


def links_of(fabric: Fabric) -> set[frozenset[tuple[str, str]]]:
    return {
        frozenset({fabric.port_name(link.a), fabric.port_name(link.b)}) for link in fabric.links
    }


def names_of(fabric: Fabric) -> list[str]:
    return [device.name for device in fabric.devices]


def swept(name: str, guid: str, label: str = "", *, kind: DeviceKind = DeviceKind.HOST) -> Claim:
    ids = (Id(IdKind.NODE_GUID, guid),)
    ports = (Port(label or f"{guid}/1", (Id(IdKind.NODE_GUID, guid, "1"),), rdma_device=label),)
    return Claim(Device(kind, name, ids, ports), Origin.SWEEP)


def kinds_of(fabric: Fabric) -> set[FindingKind]:
    return {finding.kind for finding in fabric.findings}


def with_ids(name: str, *ids: Id, origin: Origin = Origin.REPORT) -> Claim:
    return Claim(Device(DeviceKind.HOST, name, tuple(sorted(ids))), origin)


def node(name: str) -> Id:
    return Id(IdKind.NODE_NAME, name)


def test_it_pairs_a_cable_that_both_ends_report() -> None:
    fabric = build_fabric(claims(star("leaf", ["h1"])))
    assert links_of(fabric) == {frozenset({("h1", "eth0"), ("leaf", "to-h1-eth0")})}
    assert [link.is_one_sided for link in fabric.links] == [False]
    assert list(find_one_sided_links(fabric)) == []


def test_it_marks_a_cable_that_only_one_end_reports() -> None:
    all_claims = [
        *claims(star("leaf", ["h1", "h2"])),
        report("h3", {"eth0": [heard_from("leaf", "9")]}),
    ]
    (finding,) = find_one_sided_links(build_fabric(all_claims))
    assert finding.kind is FindingKind.ONE_SIDED_LINK
    assert {end.device for end in finding.ports} == {"h3", "leaf"}


def test_it_does_not_blame_an_end_that_cannot_report() -> None:
    fabric = build_fabric(claims(star("leaf", ["h1", "h2"]), silent=["leaf"]))
    assert len(fabric.links) == 2
    assert list(find_one_sided_links(fabric)) == []


def test_it_leaves_out_a_stale_entry_that_the_other_end_contradicts() -> None:
    stale = report("h3", {"eth0": [heard_from("leaf", "to-h1-eth0")]})
    inference = infer_cables(star("leaf", ["h1", "h2"]), more=[stale])
    assert tiers_of(inference) == [{"leaf": ["h1", "h2"]}]
    (finding,) = of_kind(inference.findings, FindingKind.ONE_SIDED_LINK)
    assert "this link is left out" in finding.message


def test_it_keeps_a_silent_host_behind_a_dumb_switch() -> None:
    all_claims = claims(star("leaf", ["h1"]))
    leaf = report("leaf", {"to-h1-eth0": [heard_from("h1", "eth0"), heard_from("h2", "eth0")]})
    fabric = build_fabric([*(claim for claim in all_claims if claim.device.name != "leaf"), leaf])
    assert len(fabric.links) == 2
    assert [link.is_disputed for link in fabric.links] == [False, False]


def test_it_places_all_hosts_behind_a_dumb_switch() -> None:
    ends = [("h1", "eth0"), ("h2", "eth0"), ("h3", "eth0"), ("leaf", "1")]
    neighbors_by_port = {
        end: [heard_from(*other_end) for other_end in ends if other_end != end] for end in ends
    }
    all_claims = [
        report(device, {port: neighbors}) for (device, port), neighbors in neighbors_by_port.items()
    ]
    fabric = build_fabric(all_claims)
    assert len(fabric.links) == 6
    assert not any(link.is_one_sided or link.is_disputed for link in fabric.links)


def test_it_identifies_a_port_with_an_unknown_id_by_its_own_entry() -> None:
    alias = Neighbor(
        (Id(IdKind.CHASSIS_ID, mac_of("h1"), "mac"),),
        "h1",
        (Id(IdKind.PORT_ID, "uplink to rack 7", "local"),),
        "",
        Source.LLDP,
    )
    all_claims = [
        report("leaf", {"1": [alias]}),
        report("h1", {"eth0": [heard_from("leaf", "1")]}),
    ]
    fabric = build_fabric(all_claims)
    assert links_of(fabric) == {frozenset({("h1", "eth0"), ("leaf", "1")})}


def test_it_ignores_a_cdp_entry_beside_an_lldp_entry() -> None:
    cdp = heard_from("ghost", "Gi0/1")._replace(source=Source.CDP)
    fabric = build_fabric([report("h1", {"eth0": [cdp, heard_from("leaf", "1")]})])
    assert names_of(fabric) == ["h1", "leaf"]


def test_it_uses_a_cdp_entry_if_there_is_no_other() -> None:
    cdp = heard_from("leaf", "Gi0/1")._replace(source=Source.CDP)
    assert len(build_fabric([report("h1", {"eth0": [cdp]})]).links) == 1


def test_it_ignores_a_port_that_hears_itself() -> None:
    assert build_fabric([report("h1", {"eth0": [heard_from("h1", "eth0")]})]).links == ()


def test_it_joins_a_chassis_id_with_the_port_that_has_this_mac() -> None:
    host = Device(DeviceKind.HOST, "h1", (node("h1"),), (Port("eth0", port_ids("h1", "eth0")),))
    chassis = heard_from("", "")._replace(
        device_ids=(Id(IdKind.CHASSIS_ID, mac_of("h1", "eth0"), "mac"),),
        port_ids=port_ids("h1", "eth0"),
    )
    fabric = build_fabric([Claim(host, Origin.REPORT), report("leaf", {"1": [chassis]})])
    assert names_of(fabric) == ["h1", "leaf"]


def test_it_never_joins_a_node_guid_with_an_equal_port_guid() -> None:
    fabric = build_fabric(
        [
            with_ids("h1", node("h1"), Id(IdKind.PORT_GUID, GUID)),
            with_ids("h2", node("h2"), Id(IdKind.NODE_GUID, GUID)),
        ]
    )
    assert names_of(fabric) == ["h1", "h2"]
    assert fabric.findings == ()


def test_it_does_not_join_by_an_id_that_two_reporters_claim() -> None:
    shared = Id(IdKind.MAC, mac_of("cloned"))
    reporters = [with_ids(name, node(name), shared) for name in ("h1", "h2", "h3")]
    chassis = heard_from("h1", "eth0", "")._replace(device_ids=(shared,), port_ids=())
    leaf = report("leaf", {"1": [chassis], "2": [chassis]})
    fabric = build_fabric([*reporters, leaf])
    messages = [finding.message for finding in fabric.findings if "mac" in finding.message]
    assert [text.partition(" mac")[0] for text in messages[:2]] == [
        "h1 and h2 both claim",
        "h3 also claims",
    ]
    linked_devices = {fabric.ports[link.a].device for link in fabric.links}
    assert {fabric.devices[device].node for device in linked_devices} <= {None}
    assert len(set(names_of(fabric))) == len(fabric.devices) == 5


def test_many_devices_with_one_id_are_one_finding() -> None:
    shared = Id(IdKind.MAC, mac_of("cloned"))
    names = [f"h{number:03}" for number in range(300)]
    findings = build_fabric([listed(name, shared) for name in names]).findings
    pair, crowd = (finding.message for finding in findings)
    assert pair.startswith(f"h000 and h001 both claim mac {shared.value};")
    assert crowd.startswith(f"h002, h003, h004 and 295 more also claim mac {shared.value},")
    assert max(len(finding.ports) for finding in findings) <= 8


def test_it_prefers_the_inventory_to_a_report() -> None:
    shared = Id(IdKind.MAC, mac_of("h1"))
    own_claims = [listed("h1", shared), listed("h2"), with_ids("h2", node("h2"), shared)]
    fabric = build_fabric([*own_claims, report("leaf", {"1": [heard_from("h1", "eth0")]})])
    assert kinds_of(fabric) == {FindingKind.DUPLICATE_ID}
    assert "stays with the device that the inventory lists it for" in fabric.findings[0].message
    ends = {fabric.ports[end].device for link in fabric.links for end in (link.a, link.b)}
    assert {fabric.devices[device].name for device in ends} == {"h1", "leaf"}


def test_it_ignores_an_id_that_the_inventory_lists_twice() -> None:
    shared = Id(IdKind.MAC, mac_of("h1"))
    fabric = build_fabric([listed("h1", shared), listed("h2", shared)])
    assert "it identifies neither" in fabric.findings[0].message


def test_it_joins_a_capture_with_the_listed_node_that_has_its_mac() -> None:
    inventory = listed("node-7", Id(IdKind.MAC, mac_of("h1")))
    capture = with_ids("h1", Id(IdKind.CHASSIS_ID, mac_of("h1"), "mac"), origin=Origin.CAPTURE)
    fabric = build_fabric([inventory, capture])
    assert names_of(fabric) == ["node-7"]
    assert fabric.findings == ()


def test_it_resolves_factory_descriptions_by_the_guids_of_the_inventory() -> None:
    all_claims = [listed("n1", Id(IdKind.NODE_GUID, GUID)), swept("", GUID)]
    fabric = build_fabric(all_claims)
    assert [(device.name, device.node) for device in fabric.devices] == [("n1", "n1")]


IMAGE = Id(IdKind.SYSTEM_IMAGE_GUID, "0002c903007b78b3")


def with_image(claim: Claim) -> Claim:
    return Claim(replace(claim.device, ids=(*claim.device.ids, IMAGE)), claim.origin)


def test_it_resolves_factory_descriptions_by_a_listed_system_image_guid() -> None:
    cards = [with_image(swept("", f"{number:016x}")) for number in (1, 2)]
    fabric = build_fabric([listed("n1", IMAGE), *cards])
    assert [(device.name, device.node) for device in fabric.devices] == [("n1", "n1")]
    assert fabric.findings == ()


def test_a_system_image_guid_of_two_nodes_or_of_another_node_matches_none() -> None:
    card = with_image(swept("", GUID))
    fabric = build_fabric([listed("n1", IMAGE), listed("n2", IMAGE), card])
    assert [device.node for device in fabric.devices] == [None, "n1", "n2"]
    fabric = build_fabric([listed("n1", IMAGE), listed("n2"), with_image(swept("n2", GUID))])
    assert [(device.node, len(device.ids)) for device in fabric.devices] == [("n1", 2), ("n2", 3)]
    (finding,) = fabric.findings
    assert f"lists system-image-guid {IMAGE.value} for n1, but" in finding.message
    assert "show n2 there" in finding.message


def test_a_host_name_of_two_nodes_matches_none_and_is_reported() -> None:
    shared = Id(IdKind.HOSTNAME, "gpu")
    fabric = build_fabric([listed("n1", shared), listed("n2", shared), swept("GPU", GUID)])
    assert [(device.name, device.node) for device in fabric.devices] == [
        ("GPU", None),
        ("n1", "n1"),
        ("n2", "n2"),
    ]
    (finding,) = fabric.findings
    assert finding.kind is FindingKind.DUPLICATE_NAME
    assert "2 nodes have the host name gpu (n1, n2)" in finding.message


def test_it_names_a_host_without_a_name_by_its_guid_and_reports_it() -> None:
    fabric = build_fabric([swept("", GUID)])
    assert names_of(fabric) == [GUID]
    assert kinds_of(fabric) == {FindingKind.UNRESOLVED_HOST}


def test_it_joins_the_hcas_of_one_swept_host_by_name() -> None:
    all_claims = [swept("n1", f"{number:016x}", f"mlx5_{number}") for number in range(1, 5)]
    assert names_of(build_fabric(all_claims)) == ["n1"]


def test_it_leaves_two_swept_hosts_with_one_name_unresolved() -> None:
    all_claims = [swept("lab", f"{number:016x}", "mlx5_0") for number in (1, 2)]
    fabric = build_fabric(all_claims)
    assert [device.node for device in fabric.devices] == [None, None]
    assert kinds_of(fabric) == {FindingKind.DUPLICATE_NAME, FindingKind.UNRESOLVED_HOST}


def test_it_leaves_two_heard_hosts_with_one_name_unresolved() -> None:
    neighbors = [heard_from(f"h{number}", "eth0", name="localhost") for number in (1, 2)]
    fabric = build_fabric(
        [report("leaf", {str(number): [neighbor] for number, neighbor in enumerate(neighbors)})]
    )
    hidden = [device for device in fabric.devices if device.kind is DeviceKind.HOST]
    assert [device.node for device in hidden] == [None, None]
    assert len(set(names_of(fabric))) == 3
    assert [neighbor.kind for neighbor in fabric.findings] == [FindingKind.UNRESOLVED_HOST] * 2


def test_it_does_not_join_a_listed_node_with_a_swept_host_with_other_guids() -> None:
    all_claims = [listed("n1", Id(IdKind.NODE_GUID, "1" * 16)), swept("n1", GUID)]
    fabric = build_fabric(all_claims)
    assert len(fabric.devices) == 2
    assert FindingKind.DUPLICATE_NAME in kinds_of(fabric)


def test_it_joins_a_listed_node_without_ids_by_its_unique_name() -> None:
    fabric = build_fabric([listed("n1.example"), swept("N1", GUID, "mlx5_0")])
    assert [device.node for device in fabric.devices] == ["n1.example"]


def test_it_resolves_a_neighbor_without_ids_by_its_name() -> None:
    nameless = Neighbor((), "LEAF.example", (), "1", Source.LLDP)
    leaf = Claim(Device(DeviceKind.SWITCH, "leaf", (), (Port("1"),)), Origin.CAPTURE)
    assert names_of(build_fabric([leaf, report("h1", {"eth0": [nameless]})])) == ["h1", "leaf"]


def test_it_fills_in_facts_that_an_earlier_claim_about_a_port_lacks() -> None:
    port = Port("mlx5_0/1", (Id(IdKind.NODE_GUID, GUID, "1"),))
    ids = (Id(IdKind.NODE_GUID, GUID),)
    told: Iterable[Claim] = [
        Claim(Device(DeviceKind.HOST, "n1", (node("n1"), *ids), (port,)), Origin.REPORT),
        Claim(
            Device(DeviceKind.HOST, "n1", ids, (port._replace(rate_bps=5, state=PortState.UP),)),
            Origin.SWEEP,
        ),
    ]
    (merged,) = build_fabric(told).ports
    assert (merged.rate_bps, merged.state) == (5, PortState.UP)


def test_it_separates_bond_slaves_that_share_a_mac() -> None:
    shared = Id(IdKind.MAC, mac_of("bond"))
    ports = tuple(Port(name, (Id(IdKind.IFNAME, name), shared)) for name in ("eth0", "eth1"))
    host = Claim(Device(DeviceKind.HOST, "h1", (node("h1"),), ports), Origin.REPORT)
    neighbors = [
        heard_from("h1", name)._replace(port_ids=(Id(IdKind.IFNAME, name), shared), device_ids=())
        for name in ("eth0", "eth1")
    ]
    leaf = report("leaf", {str(number): [neighbor] for number, neighbor in enumerate(neighbors)})
    fabric = build_fabric([host, leaf])
    assert {frozenset({("h1", "eth0"), ("leaf", "0")})} < links_of(fabric)


def test_it_guesses_switches_if_there_are_only_captures() -> None:
    all_claims = [
        Claim(
            Device(
                DeviceKind.UNKNOWN, name, (), (Port("eth0", neighbors=(heard_from("sw", "1"),)),)
            ),
            Origin.CAPTURE,
        )
        for name in hosts(1, 3)
    ]
    fabric = build_fabric(all_claims)
    kinds = {device.name: device.kind for device in fabric.devices}
    assert kinds["sw"] is DeviceKind.SWITCH
    assert kinds["h01"] is DeviceKind.HOST
    assert FindingKind.GUESSED_KIND in kinds_of(fabric)
