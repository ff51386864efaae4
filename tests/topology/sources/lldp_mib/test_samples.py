"""Walks of real switches: their deviations, and the neighbors that are found in spite of them."""

from pathlib import Path

import pytest

from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.plain import case_id
from topology.model.facts import Device, Neighbor, Source
from topology.model.ids import IdKind
from topology.reports.neighbor_report import build_report
from topology.sources.lldp.lldpcli import parse_neighbors
from topology.sources.lldp_mib.walk import parse_snmpwalk_text

pytestmark = needs_samples

# Neighbors, ports that hear any, and errors (besides unreadable lines) of each saved walk.
COUNTS = {
    "librenms_arista_eos.snmprec": (6, 6, 0),
    "librenms_arubaos-cx_10.07.snmprec": (
        34,
        34,
        1,
    ),  # 70 rows, each under two time marks; one identifies no device
    "librenms_ciscosb_sg350x-24p.snmprec": (5, 5, 0),  # three of them by CDP too
    "librenms_dell-sonic.snmprec": (23, 23, 0),
    "librenms_dnos_s4048.snmprec": (4, 4, 0),
    "librenms_fs-centec_s5850-48s2q4c.snmprec": (16, 16, 0),
    "librenms_jetstream_vlans.snmprec": (5, 1, 0),
    "librenms_junos_qfx5100.snmprec": (2, 2, 0),
    "librenms_nxos_n3k-3064pq.snmprec": (2, 2, 0),  # one by LLDP, one by CDP alone
    "librenms_panos_vsys.snmprec": (1, 1, 0),  # LLDP-V2-MIB
    "librenms_procurve_e2910.snmprec": (2, 2, 0),
    "librenms_routeros_crs317.snmprec": (0, 0, 1),  # the index names no local port
    "librenms_ruijie.snmprec": (0, 0, 1),  # subtypes alone
    "librenms_vrp_5720.snmprec": (5, 5, 0),
    "opennms_nms0002ciscojuniper__r-de-juet-luck-001.txt": (1, 1, 0),
    "opennms_nms0123__itpn0111.txt": (4, 4, 0),
    "opennms_nms0123__itpn0112.txt": (2, 2, 1),  # local port 0, which no table lists
    "opennms_nms0123__itpn0113.txt": (2, 2, 0),
    "opennms_nms0123__itpn0114.txt": (2, 2, 0),
    "opennms_nms0123__itpn0121.txt": (1, 1, 0),
    "opennms_nms0123__itpn0123.txt": (3, 3, 1),
    "opennms_nms0123__itpn0201.txt": (6, 6, 0),
    "opennms_nms0123__itpn0202.txt": (3, 2, 1),
    "opennms_nms10205b__Bagmane_10.205.56.20.txt": (3, 3, 0),
    "opennms_nms10205b__Delhi_10.205.56.7.txt": (2, 2, 0),
    "opennms_nms10205b__J6350-42_10.205.56.42.txt": (0, 0, 0),
    "opennms_nms10205b__SRX-100_10.205.56.23.txt": (0, 0, 0),
    "opennms_nms10205b__Space-EX-SW1_10.205.56.1.txt": (3, 3, 0),
    "opennms_nms10205b__Space-EX-SW2_10.205.56.2.txt": (2, 2, 0),
    "opennms_nms7563__cisco01-walk.txt": (1, 1, 0),
    "opennms_nms7563__homeserver-walk.txt": (1, 1, 0),
    "opennms_nms7777dw__dw-walk.txt": (1, 1, 0),
    "own_lldpd-snmpd_crafted.snmpwalk.txt": (23, 5, 0),
}


def walk(name: str) -> Device:
    device, _ = parse_snmpwalk_text((SAMPLES / "snmp" / name).read_bytes(), source=name)
    assert device is not None
    return device


def neighbors(device: Device) -> dict[str, tuple[Neighbor, ...]]:
    return {port.name: port.neighbors for port in device.ports if port.neighbors}


@pytest.mark.parametrize("name", COUNTS)
def test_it_finds_every_neighbor_of_a_saved_walk(name: str) -> None:
    device, errors = parse_snmpwalk_text((SAMPLES / "snmp" / name).read_bytes(), source=name)
    assert device is not None
    heard = neighbors(device)
    said = [error for error in errors if error.line is None]
    assert (sum(map(len, heard.values())), len(heard), len(said)) == COUNTS[name]
    assert build_report(device, name="switch-x").device is not None


def test_it_counts_every_saved_walk() -> None:
    assert {path.name for path in (SAMPLES / "snmp").iterdir()} == set(COUNTS)


@pytest.mark.parametrize("name", ["leaf01", "leaf02", "leaf03", "spine01"])
def test_it_finds_by_snmp_what_lldpcli_printed_for_the_same_switch(name: str) -> None:
    folder = SAMPLES / "fabric" / "own16"
    printed = parse_neighbors((folder / f"{name}.neighbors.json0").read_bytes())
    device, errors = parse_snmpwalk_text((folder / f"{name}.snmpwalk.txt").read_bytes())
    assert device is not None
    assert not errors
    assert neighbors(device) == {
        port: tuple(one._replace(ttl_s=None) for one in heard) for port, heard in printed.ports
    }


def test_it_keeps_the_newer_of_two_time_marks() -> None:
    device = walk("librenms_arubaos-cx_10.07.snmprec")
    assert all(len(heard) == 1 for heard in neighbors(device).values())
    # The addresses were made anonymous: all zeros, which is no id.
    assert not any(one.device_ids for heard in neighbors(device).values() for one in heard)


def test_it_accepts_macs_as_text() -> None:
    sonic = neighbors(walk("librenms_dell-sonic.snmprec"))
    ids = [found for heard in sonic.values() for one in heard for found in one.port_ids]
    assert sum(found.kind is IdKind.MAC for found in ids) == 20
    dell = neighbors(walk("librenms_dnos_s4048.snmprec"))
    assert {found.subtype for (one,) in dell.values() for found in one.device_ids} == {"mac"}


def test_it_resolves_local_ports_by_name_if_numbers_mislead() -> None:
    found = neighbors(walk("librenms_vrp_5720.snmprec"))
    assert sorted(found) == [
        "GigabitEthernet0/0/14",
        "MEth0/0/1",
        "XGigabitEthernet0/0/1",
        "XGigabitEthernet0/0/2",
        "XGigabitEthernet0/0/4",
    ]


def test_it_prefers_lldp_and_adds_neighbors_from_cdp() -> None:
    found = neighbors(walk("librenms_nxos_n3k-3064pq.snmprec"))
    assert {port: one.source for port, (one,) in found.items()} == {
        "Ethernet1/49": Source.LLDP,
        "mgmt0": Source.CDP,
    }


def test_it_joins_junipers_by_the_index_that_they_send_as_port_id() -> None:
    devices = [
        walk(path.name) for path in sorted((SAMPLES / "snmp").glob("opennms_nms0123__*.txt"))
    ]
    owners = {
        (found.value, port_id.value)
        for device in devices
        for found in device.ids
        if found.kind is IdKind.CHASSIS_ID
        for port in device.ports
        for port_id in port.ids
        if port_id.kind is IdKind.PORT_ID
    }
    chassis = {owner for owner, _ in owners}
    rows = [
        (one.device_ids[0].value, one.port_ids[0].value)
        for device in devices
        for heard in neighbors(device).values()
        for one in heard
        if one.device_ids and one.device_ids[0].value in chassis
    ]
    assert len(rows) >= 12
    assert [row for row in rows if row not in owners] == []


def case_paths() -> list[Path]:
    return sorted((SAMPLES / "snmp").glob("opennms_nms10205b__*.txt"))


@pytest.mark.parametrize("path", case_paths(), ids=lambda path: case_id(path) + path.stem[-8:])
def test_it_reads_macs_without_leading_zeros(path: Path) -> None:
    assert any(found.kind is IdKind.MAC for found in walk(path.name).ids)
