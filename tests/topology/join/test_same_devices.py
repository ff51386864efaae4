"""Descriptions of one device are joined; no single false frame or report joins two devices."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.topology.cables import (
    claims,
    heard_from,
    listed,
    mac_of,
    mesh,
    of_kind,
    port_ids,
    report,
    star,
)
from topology.findings.link_findings import find_one_sided_links
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.fabric import Fabric
from topology.model.facts import Device, DeviceKind, FindingKind, Neighbor, Port
from topology.model.ids import Id, IdKind

HOSTS = ("h1", "h2", "h3", "h4")
CABLES = [*star("leaf", HOSTS[:2]), *star("other", HOSTS[2:]), *mesh(["leaf", "other"], ["top"])]


def reports_without(*silent: str) -> list[Claim]:
    return claims(CABLES, silent=silent)


def own_claim(device: str) -> Claim:
    (claim,) = (claim for claim in claims(CABLES) if claim.name == device)
    return claim


def capture(device: str, file: str = "", ids: Iterable[Id] = ()) -> Claim:
    """Return a capture of a device, named after its file; without ids it has no chassis."""
    own = own_claim(device).device
    ports = tuple(
        Port(port.name, (Id(IdKind.IFNAME, port.name),), neighbors=port.neighbors)
        for port in own.ports
    )
    return Claim(Device(DeviceKind.UNKNOWN, file or device, tuple(ids), ports), Origin.CAPTURE)


def walk_without_chassis(device: str, name: str = "") -> Claim:
    """Return a walk with the MACs of interfaces that no neighbor hears."""
    own = own_claim(device).device
    ids = (Id(IdKind.MAC, mac_of(device, "management")),)
    return Claim(replace(own, name=name or device, ids=ids), Origin.REPORT)


def names_of(fabric: Fabric) -> list[str]:
    return [device.name for device in fabric.devices]


def links_of(fabric: Fabric) -> set[frozenset[str]]:
    """Return the cables by the names of their devices, under which the leaf may have any."""
    names = {"core-capture-7": "leaf", "rack7": "leaf", "LEAF.dc1.example.com": "leaf"}
    ends = ((fabric.port_name(link.a), fabric.port_name(link.b)) for link in fabric.links)
    return {
        frozenset(f"{names.get(end.device, end.device)} {end.port}" for end in pair)
        for pair in ends
    }


def assert_whole(fabric: Fabric) -> None:
    """Fail unless there is one device for each, and every cable is reported by both ends."""
    assert len(fabric.devices) == 7
    assert {device.node for device in fabric.devices if device.node} == set(HOSTS)
    assert len(fabric.links) == len(CABLES)
    assert list(find_one_sided_links(fabric)) == []
    assert fabric.findings == ()


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(capture("leaf"), id="a capture without a chassis"),
        pytest.param(capture("leaf", "LEAF.dc1.example.com"), id="a file of the full name"),
        pytest.param(capture("leaf", "core-capture-7"), id="a file of any name"),
        pytest.param(capture("leaf", "other"), id="a file of another switch's name"),
        pytest.param(walk_without_chassis("leaf"), id="a walk without a chassis id"),
        pytest.param(walk_without_chassis("leaf", "rack7"), id="a walk with another name"),
    ],
)
@pytest.mark.parametrize("others", [(), ("top",), ("other", "top")], ids=str)
def test_it_joins_a_switch_with_what_its_neighbors_say(
    claim: Claim, others: tuple[str, ...]
) -> None:
    known = reports_without("leaf", *others)
    fabric, plain = build_fabric([*known, claim]), build_fabric([*known, own_claim("leaf")])
    assert links_of(fabric) == links_of(plain)
    assert len(fabric.devices) == 7
    assert len(list(find_one_sided_links(fabric))) == len(list(find_one_sided_links(plain)))
    assert fabric.findings == plain.findings


def test_it_joins_several_descriptions_with_the_switchs_own_report() -> None:
    more = [capture("leaf"), capture("leaf", "x"), walk_without_chassis("leaf")]
    assert_whole(build_fabric([*reports_without(), *more]))


def test_it_joins_two_readings_of_one_switch() -> None:
    again = own_claim("leaf")
    assert_whole(build_fabric([*reports_without(), again]))


def test_it_joins_a_capture_of_a_host_with_the_listed_node_of_its_name() -> None:
    nodes = [listed(host, Id(IdKind.NODE_GUID, f"{at:016x}")) for at, host in enumerate(HOSTS, 1)]
    captures = [capture(device) for device in ("leaf", "other", "top", *HOSTS)]
    assert_whole(build_fabric([*nodes, *captures]))


def test_it_keeps_the_name_of_the_switch_before_that_of_the_file() -> None:
    fabric = build_fabric([*reports_without("leaf"), capture("leaf", "core-capture-7")])
    assert "leaf" in names_of(fabric)
    assert "core-capture-7" not in names_of(fabric)


def test_it_joins_by_a_management_address() -> None:
    address = Id(IdKind.IP, "10.0.0.7")

    def sent(entry: Neighbor) -> Neighbor:
        is_leaf = entry.device_name == "leaf"
        return entry._replace(device_ids=(address,), device_name="") if is_leaf else entry

    spoken = [
        replace(
            claim,
            device=replace(
                claim.device,
                ports=tuple(
                    port._replace(neighbors=tuple(map(sent, port.neighbors)))
                    for port in claim.device.ports
                ),
            ),
        )
        for claim in reports_without("leaf")
    ]
    walk = walk_without_chassis("leaf", "rack7")
    walk = Claim(replace(walk.device, ids=(address, *walk.device.ids)), Origin.REPORT)
    assert_whole(build_fabric([*spoken, walk]))


def test_it_does_not_join_switches_with_one_name_and_other_chassis_ids() -> None:
    sonic = heard_from("leaf2", "to-h9", name="leaf")
    fabric = build_fabric([*reports_without(), report("h9", {"eth0": [sonic]})])
    assert len(fabric.devices) == 9


def test_it_does_not_join_what_one_port_hears_side_by_side() -> None:
    pair = [heard_from("h7", "eth0", name="same"), heard_from("h8", "eth0", name="same")]
    fabric = build_fabric([report("leaf", {"1": pair}), report("top", {"1": pair})])
    assert len(fabric.devices) == 4


def test_it_does_not_join_two_hosts_behind_an_unmanaged_switch() -> None:
    ends = [("h1", "eth0"), ("h2", "eth0"), ("leaf", "1")]
    heard = {end: [heard_from(*far) for far in ends if far != end] for end in ends}
    fabric = build_fabric([report(device, {port: far}) for (device, port), far in heard.items()])
    assert names_of(fabric) == ["h1", "h2", "leaf"]


def lie(name: str, mac: str) -> Neighbor:
    """Return what a port hears from a host that calls itself another device."""
    return Neighbor(
        (Id(IdKind.CHASSIS_ID, mac, "mac"),),
        name,
        port_ids("h9", "eth0"),
        "eth0",
        heard_from("a", "b").source,
    )


@pytest.mark.parametrize("victim", ["h1", "leaf"])
def test_it_does_not_join_a_frame_under_a_foreign_name(victim: str) -> None:
    """A host sends frames with the name of another device; the switch that hears it is honest."""
    honest = reports_without()
    liar = lie(victim, mac_of("nobody"))
    heard = Port("swp99", (Id(IdKind.IFNAME, "swp99"),), neighbors=(liar,))
    other = own_claim("other")
    other = Claim(replace(other.device, ports=(*other.device.ports, heard)), Origin.REPORT)
    fabric = build_fabric([*(claim for claim in honest if claim.name != "other"), other])
    peers = _peers_of(fabric, victim)
    assert peers == _peers_of(build_fabric(honest), victim)


@pytest.mark.parametrize("known_as", ["leaf", "other", "top", "h1"])
@pytest.mark.parametrize("silent", [(), ("leaf",), ("leaf", "other")], ids=str)
def test_it_joins_no_two_devices_by_one_lying_report(
    known_as: str, silent: tuple[str, ...]
) -> None:
    """One host reports the chassis id of each device under the name of another one."""
    lies = {
        f"eth{at}": [heard_from(device, f"port{at}", name=known_as)]
        for at, device in enumerate(("leaf", "other", "top"))
    }
    honest = reports_without(*silent)
    fabric = build_fabric([*honest, report("h9", lies)])
    assert {"leaf", "other", "top", *HOSTS} <= set(names_of(fabric))
    true_fabric = build_fabric(honest)
    for host in HOSTS:
        assert _peers_of(fabric, host) == _peers_of(true_fabric, host)


def _peers_of(fabric: Fabric, name: str) -> set[str]:
    """Return the names of the devices that a device is cabled to."""
    ends = ((fabric.port_name(link.a), fabric.port_name(link.b)) for link in fabric.links)
    return {far.device for pair in ends for near, far in (pair, pair[::-1]) if near.device == name}


def test_it_reports_hosts_that_share_a_name() -> None:
    captures = [capture("h1", "same"), capture("h3", "same")]
    fabric = build_fabric([*reports_without("h1", "h3"), *captures])
    assert not of_kind(fabric.findings, FindingKind.DUPLICATE_ID)
    assert_whole(fabric) if not fabric.findings else None
