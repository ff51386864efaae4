"""Cells of SNMP answers: encodings of a general ASN.1 library are decoded; the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyasn1.codec.ber import encoder
from pysnmp.proto.api import PROTOCOL_MODULES, SNMP_VERSION_2C

from generator.switches.varbinds import VarBind, parse_varbinds
from tests.effort import examples
from topology.model.errors import SwitchRefused

API: Any = PROTOCOL_MODULES[SNMP_VERSION_2C]
OIDS = st.tuples(
    st.integers(0, 2),
    st.integers(0, 39),
    *[st.integers(0, 2**32 - 1)] * 3,
)
VALUES = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda number: (API.Integer(number), number)),
    st.integers(0, 2**32 - 1).map(lambda number: (API.Gauge32(number), number)),
    st.integers(0, 2**64 - 1).map(lambda number: (API.Counter64(number), number)),
    st.binary(max_size=300).map(lambda octets: (API.OctetString(octets), octets)),
    st.just((API.IpAddress("10.0.0.1"), b"\x0a\0\0\1")),
    st.just((API.ObjectIdentifier((1, 3, 6)), None)),
)


def cells(*rows: tuple[tuple[int, ...], Any]) -> bytes:
    """Return the content of a VarBindList."""
    pdu = API.ResponsePDU()
    API.apiPDU.set_defaults(pdu)
    API.apiPDU.set_varbinds(pdu, rows)
    raw: bytes = encoder.encode(API.apiPDU.get_varbind_list(pdu))
    num_bytes = raw[1] - 0x80 if raw[1] >= 0x80 else 0
    return raw[2 + num_bytes :]


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(OIDS, VALUES), max_size=8))
def test_it_decodes_the_encoding_of_a_general_library(
    rows: list[tuple[tuple[int, ...], tuple[Any, Any]]],
) -> None:
    raw = cells(*((oid, value) for oid, (value, _) in rows))
    assert list(parse_varbinds(raw)) == [
        VarBind(oid, read, is_absent=False) for oid, (_, read) in rows
    ]


@pytest.mark.parametrize(
    "value",
    [API.Null(""), API.NoSuchObject(""), API.NoSuchInstance(""), API.EndOfMibView("")],
    ids=["null", "no such object", "no such instance", "the end of the view"],
)
def test_it_recognises_an_absent_value_by(value: object) -> None:
    assert list(parse_varbinds(cells(((1, 3, 6), value)))) == [
        VarBind((1, 3, 6), None, is_absent=True)
    ]


def test_it_accepts_a_large_number_without_its_zero_octet() -> None:
    (found,) = parse_varbinds(bytes.fromhex("300a06022b064204ffffffff"))
    assert found.value == 0xFFFFFFFF


def test_it_ignores_a_number_that_is_too_large_for_a_counter() -> None:
    (found,) = parse_varbinds(bytes.fromhex("301006022b06020a" + "01" * 10))
    assert found.value is None


@pytest.mark.parametrize(
    "raw",
    ["30", "3005", "300406022b06", "300606022b860500", "300406000500", "0500", "3080"],
    ids=[
        "end in a tag",
        "end in a length",
        "have no value",
        "have an OID without an end",
        "have an empty OID",
        "are no cells",
        "have no length",
    ],
)
def test_it_refuses_octets_that(raw: str) -> None:
    with pytest.raises(SwitchRefused, match="malformed"):
        list(parse_varbinds(bytes.fromhex(raw)))


@settings(max_examples=examples(200))
@given(st.binary(max_size=60), st.integers(0, 200), st.binary(min_size=1, max_size=2))
def test_it_raises_nothing_but_a_refusal(noise: bytes, at: int, put: bytes) -> None:
    well = cells(((1, 0, 8802, 1, 1), API.OctetString(b"swp1")), ((1, 3, 6, 1), API.Integer(7)))
    at %= len(well)
    for raw in (noise, well[:at], well[:at] + put + well[at + len(put) :]):
        try:
            found = list(parse_varbinds(raw))
        except SwitchRefused:
            continue
        assert all(len(one.oid) >= 2 for one in found)
