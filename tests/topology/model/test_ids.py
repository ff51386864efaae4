"""Canonical forms of ids, and the natural order of names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from topology.model.ids import (
    is_canonical_guid,
    is_canonical_mac,
    is_shared_mac,
    natural_key,
    parse_guid,
    parse_mac,
    parse_node_name,
    short_name,
)

NAMES = st.text(alphabet=st.characters() | st.sampled_from("0123456789-."), max_size=12)


@pytest.mark.parametrize(
    ("text", "guid"),
    [
        pytest.param("0x2c9030078b7", "000002c9030078b7", id="hex without leading zeros"),
        pytest.param("0002:c903:007b:78B0", "0002c903007b78b0", id="the sysfs form"),
        pytest.param(" 4444444444444444 ", "4" * 16, id="surrounding blanks"),
        pytest.param("0" * 16, None, id="all zeros"),
        pytest.param("f" * 16, None, id="all ones"),
        pytest.param("9c05<redacted>", None, id="redacted"),
        pytest.param("", None, id="empty"),
        pytest.param("1" * 17, None, id="a digit too many"),
    ],
)
def test_it_parses_guids(text: str, guid: str | None) -> None:
    assert parse_guid(text) == guid


@pytest.mark.parametrize(
    ("text", "mac"),
    [
        pytest.param("AA:bb:cc:dd:ee:0F", "aa:bb:cc:dd:ee:0f", id="upper case"),
        pytest.param("aa-bb-cc-dd-ee-0f", "aa:bb:cc:dd:ee:0f", id="hyphens"),
        pytest.param("aabb.ccdd.ee0f", "aa:bb:cc:dd:ee:0f", id="Cisco's dots"),
        pytest.param("aa bb cc dd ee 0f", "aa:bb:cc:dd:ee:0f", id="blanks"),
        pytest.param("00:00:00:00:00:00", None, id="all zeros"),
        pytest.param("ff:ff:ff:ff:ff:ff", None, id="broadcast"),
        pytest.param("01:80:c2:00:00:0e", None, id="a group address"),
        pytest.param("aa:bb-cc:dd:ee:0f", None, id="mixed separators"),
        pytest.param("xx:xx:xx:xx:xx:xx", None, id="masked"),
    ],
)
def test_it_parses_macs(text: str, mac: str | None) -> None:
    assert parse_mac(text) == mac


@pytest.mark.parametrize(
    ("text", "is_name"),
    [
        pytest.param("node-1.example", True, id="a domain name"),
        pytest.param("Node-1", False, id="upper case"),
        pytest.param("-node", False, id="a hyphen first"),
        pytest.param("node\n", False, id="a newline last"),
        pytest.param("n" * 254, False, id="too long"),
        pytest.param("", False, id="empty"),
    ],
)
def test_it_recognizes_node_names(text: str, is_name: bool) -> None:  # noqa: FBT001 - a table's column
    assert parse_node_name(text) == (text if is_name else None)


@pytest.mark.parametrize(
    ("name", "short"),
    [("N1.Example.org", "n1"), (" n1 ", "n1"), ("10.0.0.7", "10.0.0.7"), ("", "")],
    ids=["a domain is cut", "blanks are cut", "an address stays whole", "nothing stays nothing"],
)
def test_it_shortens_names_for_comparing(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["n2", "n10"], id="numbers by value"),
        pytest.param(["n1", "n1-a", "n2"], id="a prefix first"),
        pytest.param(["n01", "n1", "n2"], id="equal numbers by their text"),
        pytest.param(["n" + "9" * 5000, "n1" + "0" * 5000], id="numbers that int refuses"),
    ],
)
def test_it_sorts_naturally(names: list[str]) -> None:
    assert sorted(sorted(names, reverse=True), key=natural_key) == names


@given(NAMES, NAMES, NAMES)
def test_it_orders_any_names_consistently(one: str, two: str, three: str) -> None:
    a, b, c = map(natural_key, (one, two, three))
    assert (a == b) == (one == two)
    assert (a < b) + (b < a) + (a == b) == 1
    assert not (a < b < c) or a < c


@pytest.mark.parametrize(
    ("mac", "is_shared"),
    [
        ("00:00:5e:00:01:0a", True),
        ("00:00:5e:00:02:ff", True),
        ("0000.0c07.ac01", True),
        ("0000.0c9f.f001", True),
        ("00:05:73:a0:00:01", True),
        ("00:07:b4:03:ff:02", True),
        ("00:07:b4:10:00:02", False),
        ("44:38:39:ff:00:01", True),
        ("44:38:39:00:00:01", False),
        ("02:42:ac:11:00:02", True),
        ("00:1A:CA:FF:FF:02", True),
        ("be-3a-f2-b6-05-9f", True),
        ("ee:ee:ee:ee:ee:ee", True),
        ("00:00:0c:9f:e0:01", False),
        ("00:00:5e:00:53:01", False),
        ("00:1a:ca:00:00:02", False),
        ("b8:ce:f6:00:00:01", False),
    ],
)
def test_it_knows_addresses_that_are_shared_by_design(mac: str, *, is_shared: bool) -> None:
    assert is_shared_mac(parse_mac(mac) or "") is is_shared


@pytest.mark.parametrize(
    "text", ["0" * 16, "f" * 16, "00:00:00:00:00:00", "03:00:00:00:00:01", "02004c0000000000\n"]
)
def test_an_unusable_text_is_not_canonical(text: str) -> None:
    assert not is_canonical_guid(text)
    assert not is_canonical_mac(text)


@given(
    st.from_regex(r"[0-9a-f]{16}", fullmatch=True)
    | st.from_regex(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", fullmatch=True)
    | st.sampled_from(["0x02", "02:4C:00:00:00:00"])
)
@settings(max_examples=examples(300))
def test_a_canonical_text_is_parsed_as_it_is(text: str) -> None:
    assert not is_canonical_guid(text) or parse_guid(text) == text
    assert not is_canonical_mac(text) or parse_mac(text) == text
