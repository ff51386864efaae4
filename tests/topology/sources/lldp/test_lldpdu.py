"""The content of a frame: unusual ones are under fixtures/, well-formed ones come from scapy."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.contrib import lldp
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet

from tests.effort import examples
from tests.golden import Golden
from tests.topology.sources.lldp.frames import CASES, read_frame
from tests.topology.sources.plain import case_id, expected_text
from topology.model.facts import Capability, Neighbor, Source
from topology.model.ids import Id, IdKind
from topology.sources.lldp.lldpdu import (
    ETHERTYPE,
    GROUPS,
    MAX_FRAME_BYTES,
    Aggregation,
    Frame,
    Lldpdu,
    parse_frame,
)

MAC = "02:aa:00:00:00:11"
HEAD = GROUPS[0] + bytes.fromhex("02aa00000011") + ETHERTYPE.to_bytes(2, "big")
MANDATORY = bytes.fromhex("02070402aa00000011 0405 05737770 31 0602 0078")


def tlv(kind: int, value: bytes) -> bytes:
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def pdu_of(raw: bytes) -> Lldpdu:
    frame = parse_frame(raw)
    assert frame.pdu is not None, frame.errors
    return frame.pdu


def shown(frame: Frame) -> dict[str, object]:
    """Return a frame as in its expected file: the neighbor, and the fields outside of it."""
    pdu = frame.pdu
    if pdu is None:
        return {"errors": frame.errors}
    own = {"vlan": pdu.vlan, "pvid": pdu.pvid, "mfs": pdu.max_frame_bytes, "lag": pdu.aggregation}
    other_fields = {name: value for name, value in own.items() if value is not None}
    return {"neighbor": pdu.neighbor, **other_fields, "errors": frame.errors}


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_it_reads_a_frame_as_expected(path: Path, golden: Golden) -> None:
    frame = parse_frame(read_frame(path), source="eth0")
    golden.check(path.with_name("expected.json"), expected_text(shown(frame)))


def test_it_keeps_the_fields_outside_of_the_neighbor() -> None:
    (path,) = (path for path in CASES if case_id(path) == "well-formed")
    pdu = pdu_of(read_frame(path))
    assert (pdu.pvid, pdu.aggregation) == (
        100,
        Aggregation(is_capable=True, is_in_use=True, port_id=42),
    )
    assert (pdu.max_frame_bytes, pdu.ttl_s, pdu.vlan) == (9200, 121, None)
    assert pdu.addresses == ("10.0.0.1", "2001:db8::1")


@pytest.mark.parametrize("path", CASES, ids=case_id)
def test_a_truncated_frame_has_no_more_facts_than_the_whole(path: Path) -> None:
    raw = read_frame(path)
    whole = parse_frame(raw).pdu
    for end in range(len(raw)):
        frame = parse_frame(raw[:end])
        assert frame.errors, end
        if frame.pdu is not None and whole is not None:
            assert frame.pdu.chassis_id == whole.chassis_id
            assert set(frame.pdu.addresses) <= set(whole.addresses)


def test_it_refuses_an_overlong_frame() -> None:
    longest = (HEAD + MANDATORY).ljust(MAX_FRAME_BYTES, b"\0")
    assert parse_frame(longest).pdu is not None
    (error,) = parse_frame(longest + b"\0").errors
    assert str(error) == "longer than any frame: 65536 bytes"


@pytest.mark.parametrize(
    ("value", "capabilities"),
    [
        pytest.param("00140014", (Capability.BRIDGE, Capability.ROUTER), id="a switch"),
        pytest.param("00940080", (Capability.STATION,), id="a host that could be a bridge"),
        pytest.param("00140000", (), id="nothing enabled"),
        pytest.param("ffffffff", tuple(Capability), id="all, and bits of later standards"),
        pytest.param("0014001400", (Capability.BRIDGE, Capability.ROUTER), id="a byte more"),
    ],
)
def test_it_reads_the_enabled_capabilities(
    value: str, capabilities: tuple[Capability, ...]
) -> None:
    frame = parse_frame(HEAD + MANDATORY + tlv(7, bytes.fromhex(value)) + b"\0\0")
    assert frame.pdu is not None
    assert frame.pdu.neighbor.capabilities == capabilities
    assert not frame.errors


def test_capabilities_that_are_too_short_cost_only_themselves() -> None:
    frame = parse_frame(HEAD + MANDATORY + tlv(7, b"\0\x14\0") + tlv(5, b"leaf1") + b"\0\0")
    assert frame.pdu is not None
    assert (frame.pdu.neighbor.capabilities, frame.pdu.system_name) == ((), "leaf1")
    assert [error.problem for error in frame.errors] == ["TLV of type 7 at byte 20 is too short"]


def test_it_keeps_a_frame_cut_after_its_mandatory_tlvs() -> None:
    raw = HEAD + MANDATORY + tlv(5, b"leaf1")
    kept = [end for end in range(len(raw)) if parse_frame(raw[:end]).pdu is not None]
    assert kept == list(range(len(HEAD + MANDATORY), len(raw)))


@settings(max_examples=examples(300))
@given(st.one_of(st.binary(max_size=80), st.binary(max_size=80).map(lambda more: HEAD + more)))
def test_it_never_raises_on_any_input(raw: bytes) -> None:
    frame = parse_frame(raw, source="eth0")
    assert frame.pdu or frame.errors
    assert all(str(error).startswith("eth0: ") for error in frame.errors)


@settings(max_examples=examples(300))
@given(st.lists(st.tuples(st.integers(0, 127), st.binary(max_size=40)), max_size=8))
def test_it_never_raises_on_any_tlvs(tlvs: list[tuple[int, bytes]]) -> None:
    body = b"".join(tlv(kind, value) for kind, value in tlvs)
    neighbor = None
    frame = parse_frame(HEAD + MANDATORY + body)
    if frame.pdu is not None:
        neighbor = frame.pdu.neighbor
        assert neighbor.device_ids == tuple(sorted(set(neighbor.device_ids)))
        f"{neighbor}".encode()
    is_repeated = any(kind in (1, 2, 3) for kind, _ in _before_end(tlvs))
    assert (neighbor is None) == is_repeated


def _before_end(tlvs: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    kinds = [kind for kind, _ in tlvs]
    return tlvs[: kinds.index(0)] if 0 in kinds else tlvs


@given(
    st.lists(st.tuples(st.integers(9, 126), st.binary(max_size=20)), max_size=4),
    st.integers(0, 60),
)
def test_reserved_tlvs_and_padding_change_nothing(
    reserved: list[tuple[int, bytes]], padding: int
) -> None:
    plain = parse_frame(HEAD + MANDATORY + tlv(5, b"leaf1") + b"\0\0")
    extra = b"".join(tlv(kind, value) for kind, value in reserved)
    assert parse_frame(HEAD + MANDATORY + extra + tlv(5, b"leaf1") + bytes(2 + padding)) == plain
    assert not plain.errors


@pytest.mark.parametrize("group", GROUPS, ids=["nearest bridge", "non-TPMR", "customer bridge"])
def test_it_accepts_all_groups(group: bytes) -> None:
    assert pdu_of(group + HEAD[6:] + MANDATORY + b"\0\0").ttl_s == 120


@pytest.mark.parametrize(
    ("length", "is_id"), [(0, False), (1, True), (255, True), (256, False)], ids=str
)
def test_an_id_has_up_to_255_bytes(length: int, *, is_id: bool) -> None:
    chassis = tlv(1, b"\x07" + b"x" * length)
    frame = parse_frame(HEAD + chassis + MANDATORY[9:] + b"\0\0")
    assert (frame.pdu is not None) is is_id


# --- scapy as a referee -------------------------------------------------------------------------

_MACS = st.binary(min_size=5, max_size=5).map(lambda tail: f"02:{tail.hex(':')}")
_TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)
_V4 = st.ip_addresses(v=4).map(str)
_CHASSIS_IDS = st.one_of(
    st.tuples(st.just(4), _MACS),
    st.tuples(st.just(5), _V4),
    st.tuples(st.sampled_from((2, 6, 7)), _TEXTS),
)
_PORT_IDS = st.one_of(
    st.tuples(st.just(3), _MACS),
    st.tuples(st.just(4), _V4),
    st.tuples(st.sampled_from((1, 5, 7)), _TEXTS),
)


def crafted(chassis: tuple[int, str], port: tuple[int, str], ttl_s: int, *more: Packet) -> bytes:
    """Return a frame as scapy makes it."""
    packet: Packet = Ether(dst="01:80:c2:00:00:0e", src=MAC)
    packet = packet / _id_of(lldp.LLDPDUChassisID, chassis, is_address=chassis[0] == 5)
    packet = packet / _id_of(lldp.LLDPDUPortID, port, is_address=port[0] == 4)
    packet = packet / lldp.LLDPDUTimeToLive(ttl=ttl_s)
    for layer in more:
        packet = packet / layer
    return bytes(packet / lldp.LLDPDUEndOfLLDPDU())


def _id_of(layer: type[Packet], sent: tuple[int, str], *, is_address: bool) -> Packet:
    subtype, value = sent
    if is_address:
        return layer(subtype=subtype, family=1, id=value)
    return layer(subtype=subtype, id=value)


@settings(max_examples=examples(60))
@given(_CHASSIS_IDS, _PORT_IDS, st.integers(1, 65535), _TEXTS, _TEXTS)
def test_it_reads_what_scapy_writes(
    chassis: tuple[int, str], port: tuple[int, str], ttl_s: int, name: str, description: str
) -> None:
    raw = crafted(
        chassis,
        port,
        ttl_s,
        lldp.LLDPDUPortDescription(description=description),
        lldp.LLDPDUSystemName(system_name=name),
    )
    frame = parse_frame(raw)
    assert not frame.errors
    assert frame.pdu is not None
    heard = Ether(raw)
    assert frame.pdu.ttl_s == heard[lldp.LLDPDUTimeToLive].ttl == ttl_s
    assert frame.pdu.chassis_id[0] == heard[lldp.LLDPDUChassisID].subtype
    assert frame.pdu.port_id[0] == heard[lldp.LLDPDUPortID].subtype
    assert frame.pdu.system_name == heard[lldp.LLDPDUSystemName].system_name.decode() == name
    assert frame.pdu.port_description == description


def test_it_returns_a_neighbor_that_scapy_made() -> None:
    raw = crafted((4, MAC), (5, "swp1"), 121, lldp.LLDPDUSystemName(system_name="leaf1"))
    assert pdu_of(raw).neighbor == Neighbor(
        (Id(IdKind.CHASSIS_ID, MAC, "mac"),),
        "leaf1",
        (Id(IdKind.IFNAME, "swp1"), Id(IdKind.PORT_ID, "swp1", "ifname")),
        "swp1",
        Source.LLDP,
        ttl_s=121,
    )


def test_it_reads_through_the_tags_of_scapy() -> None:
    body = lldp.LLDPDUChassisID(subtype=4, id=MAC) / lldp.LLDPDUPortID(subtype=5, id="swp1")
    body = body / lldp.LLDPDUTimeToLive(ttl=120) / lldp.LLDPDUEndOfLLDPDU()
    ether = Ether(dst="01:80:c2:00:00:03", src=MAC)
    assert pdu_of(bytes(ether / Dot1Q(prio=7, vlan=0) / body)).vlan == 0
    assert pdu_of(bytes(ether / Dot1Q(vlan=10) / body)).vlan == 10
