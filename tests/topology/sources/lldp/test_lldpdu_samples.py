"""Frames of real devices, and crafted frames for which the output of lldpcli is known."""

from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from tests.shared_samples import SAMPLES, needs_samples
from topology.model.facts import Neighbor
from topology.model.ids import IdKind
from topology.sources.lldp.lldpcli import parse_neighbors
from topology.sources.lldp.lldpdu import ETHERTYPE, Aggregation, Frame, parse_frame

pytestmark = needs_samples

PCAP = SAMPLES / "pcap"
RECEIVER = bytes.fromhex("2eb2142e78fa")  # of the crafted frames; the capture holds its own too
# file: (chassis, system name, port name) of every LLDP frame in it
DEVICES = {
    "LLDP_and_CDP.pcap": {
        ("00:19:2f:a7:b2:8d", "S2.cisco.com", "Uplink to S1"),
        ("00:18:ba:98:68:8f", "S1.cisco.com", "Fa0/13"),
    },
    "lldp-app-priority.pcap": {("00:00:00:02:00:02", "leaf0b", "leaf0b-eth10")},
    "lldp_mudurl.pcap": {("00:23:54:c2:57:02", "upstairs.ofcourseimright.com", "eth0")},
    "own_real-lldpd_veth.pcap": {
        ("72:ff:f4:0c:f7:06", "node01", "eth0"),
        ("d2:cb:55:31:6a:e7", "leaf01.dc1.example.net", "swp1"),
    },
}


def frames_of(name: str) -> list[bytes]:
    with RawPcapReader(str(PCAP / name)) as reader:
        return [raw for raw, _ in reader]


def lldp_of(name: str) -> list[Frame]:
    kind = ETHERTYPE.to_bytes(2, "big")
    return [parse_frame(raw) for raw in frames_of(name) if raw[12:14] == kind]


def told_by_lldpcli(port: str) -> set[Neighbor]:
    raw = (SAMPLES / "lldpcli" / "own_oddities_64neigh.json0").read_bytes()
    return {one for name, found in parse_neighbors(raw).ports if name == port for one in found}


def without_chassis_facts(neighbor: Neighbor) -> Neighbor:
    ids = tuple(found for found in neighbor.device_ids if found.kind is not IdKind.IP)
    return neighbor._replace(device_ids=ids, capabilities=())


@pytest.mark.parametrize("name", DEVICES)
def test_it_reads_a_real_capture(name: str) -> None:
    found = set()
    for frame in lldp_of(name):
        assert not frame.errors
        assert frame.pdu is not None
        heard = frame.pdu.neighbor
        found.add((heard.device_ids[0].value, heard.device_name, heard.port_name))
    assert found == DEVICES[name]


def test_it_returns_for_crafted_frames_what_lldpcli_printed() -> None:
    frames = [raw for raw in frames_of("own_crafted_neighbours.pcap") if raw[6:12] != RECEIVER]
    pdus = [parse_frame(raw).pdu for raw in frames]
    heard = {pdu.neighbor for pdu in pdus if pdu is not None}
    assert len(heard) == len(frames) == 11
    # lldpd gives all ports of a chassis the addresses and capabilities of the last one it heard.
    assert set(map(without_chassis_facts, heard)) == set(
        map(without_chassis_facts, told_by_lldpcli("eth1"))
    )


def test_it_accepts_the_same_groups_as_lldpd() -> None:
    pdus = [frame.pdu for frame in lldp_of("own_crafted_dst-macs.pcap")]
    assert len(pdus) == 4
    assert {pdu.neighbor for pdu in pdus if pdu is not None} == told_by_lldpcli("eth7")


def test_it_drops_other_protocols() -> None:
    frames = [parse_frame(raw) for raw in frames_of("3560_CDP.pcap")]
    assert frames
    assert [frame.pdu for frame in frames] == [None] * len(frames)


@pytest.mark.parametrize("path", sorted(PCAP.glob("*.raw")), ids=lambda path: path.name)
def test_it_reads_a_raw_frame(path: Path) -> None:
    frame = parse_frame(path.read_bytes())
    assert frame.pdu is not None
    assert not frame.errors


def test_it_reads_every_tlv_of_a_long_list() -> None:
    lines = (PCAP / "ironic_tlvs_juniper-like.hex").read_text().splitlines()
    tlvs = [(int(line.split()[0]), bytes.fromhex(line.partition(" ")[2])) for line in lines]
    body = b"".join((kind << 9 | len(value)).to_bytes(2, "big") + value for kind, value in tlvs)
    frame = parse_frame(bytes.fromhex("0180c200000e02aa0000001188cc") + body)
    assert not frame.errors
    pdu = frame.pdu
    assert pdu is not None
    assert (pdu.system_name, pdu.port_description) == (
        "sw01-dist-1b-b12",
        "host02.lab.eng port 3 (Bond)",
    )
    assert pdu.addresses == ("192.0.2.15", "2001:db8:85a3::8a2e:370:7334")
    assert (pdu.pvid, pdu.max_frame_bytes) == (102, 1514)
    assert pdu.aggregation == Aggregation(is_capable=True, is_in_use=True, port_id=2)
