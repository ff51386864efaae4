"""The keyvalue form: lines to neighbors, as far as its lines have the facts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.sources.lldp.lldpcli import LldpNeighbors, parse_neighbors

ONE = "lldp.{0}.via=LLDP\nlldp.{0}.chassis.mac=02:aa:00:00:00:{1}\nlldp.{0}.port.ifname=swp1\n"


def read(text: str) -> LldpNeighbors:
    return parse_neighbors(text.encode())


def heard(found: LldpNeighbors) -> list[tuple[str, int]]:
    return [(port, len(neighbors)) for port, neighbors in found.ports]


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        pytest.param(ONE.format("eth0", 11), [("eth0", 1)], id="one neighbor"),
        pytest.param(
            ONE.format("eth0.5", 11) + ONE.format("eth0", 12),
            [("eth0", 1), ("eth0.5", 1)],
            id="a port with a dot in its name",
        ),
        pytest.param(
            ONE.format("eth0", 11) + ONE.format("eth0", 12),
            [("eth0", 2)],
            id="two on one port, separated by via only",
        ),
        pytest.param(
            "# a comment\n" + ONE.format("eth0", 11).replace("\n", "\r\n"),
            [("eth0", 1)],
            id="a comment first and CRLF",
        ),
        pytest.param("lldp.eth0.vlan.vlan-id=300\nlldp.eth0.vlan=VLAN300\n", [], id="VLANs only"),
    ],
)
def test_it_reads(text: str, ports: list[tuple[str, int]]) -> None:
    found = read(text)
    assert (found.form, heard(found), found.errors) == ("keyvalue", ports, ())


def test_it_reads_a_description_over_several_lines() -> None:
    text = ONE.format("eth0", 11)
    spread = "lldp.eth0.chassis.descr=Cisco IOS\nVersion 15\nlldp.eth0.chassis.name=leaf1\n"
    found = read(text + spread)
    assert not found.errors
    assert found.ports[0][1][0].device_name == "leaf1"


def test_it_reports_the_line_that_it_cannot_parse() -> None:
    found = read(ONE.format("eth0", 11) + "what is this\n")
    (error,) = found.errors
    assert (error.line, error.excerpt) == (4, "what is this")
    assert heard(found) == [("eth0", 1)]


def test_it_refuses_the_keyvalue_of_a_chassis_by_name() -> None:
    (error,) = read("local-chassis.chassis.mac=02:aa:00:00:00:11\n").errors
    assert "keyvalue of `show chassis`" in error.problem


@given(st.text())
def test_it_never_raises(text: str) -> None:
    assert read(f"lldp.eth0.via=LLDP\nlldp.{text}").form == "keyvalue"
