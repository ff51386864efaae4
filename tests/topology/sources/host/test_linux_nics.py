"""The permanent addresses of a bond's slaves, and cards that keep LLDP frames to themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.model.ids import parse_mac
from topology.sources.host.linux_nics import parse_firmware_lldp, parse_permanent_macs

BOND = """Ethernet Channel Bonding Driver: v5.15.0-91-generic

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up

802.3ad info
LACP active: on
System MAC address: b8:ce:f6:00:00:01

Slave Interface: ens1f0np0
MII Status: up
Speed: 100000 Mbps
Permanent HW addr: b8:ce:f6:00:00:01
Slave queue ID: 0
details actor lacp pdu:
    system mac address: b8:ce:f6:00:00:01

Slave Interface: ens1f1np1
MII Status: up
Permanent HW addr: B8:CE:F6:00:00:02

Slave Interface: tap0
Permanent HW addr: 00:00:00:00:00:00
"""


def test_it_returns_the_address_of_each_slave_that_has_one() -> None:
    assert parse_permanent_macs(BOND) == {
        "ens1f0np0": "b8:ce:f6:00:00:01",
        "ens1f1np1": "b8:ce:f6:00:00:02",
    }


def test_it_reads_a_truncated_file_to_its_end() -> None:
    assert list(parse_permanent_macs(BOND[: BOND.index("Permanent HW addr: B8") + 25])) == [
        "ens1f0np0"
    ]


@given(st.text())
def test_it_returns_usable_addresses_only(text: str) -> None:
    found = parse_permanent_macs(f"Slave Interface: a\nPermanent HW addr: {text}")
    assert all(parse_mac(mac) == mac for mac in found.values())


def listed(*flags: str) -> str:
    return "\n".join(("Private flags for ens1f0:", "LinkPolling           : off", *flags, ""))


@pytest.mark.parametrize(
    ("flag", "is_eaten"),
    [
        pytest.param("disable-fw-lldp       : off", True, id="i40e, left alone"),
        pytest.param("disable-fw-lldp       : on", False, id="i40e, switched off"),
        pytest.param("enable-fw-lldp        : on", True, id="ice of Linux 5.2, left alone"),
        pytest.param("enable-fw-lldp        : off", False, id="ice of Linux 5.2, switched off"),
        pytest.param("fw-lldp-agent : on", True, id="ice, left alone"),
        pytest.param("fw-lldp-agent         : off", False, id="ice, switched off"),
        pytest.param("fw-lldp-agent         : maybe", None, id="an invalid value"),
        pytest.param("vf-vlan-pruning       : on", None, id="no such flag"),
        pytest.param("not-fw-lldp-agent     : on", None, id="a flag with the same ending"),
    ],
)
def test_it_reads_whether_a_card_consumes_lldp_frames(flag: str, *, is_eaten: bool | None) -> None:
    assert parse_firmware_lldp(listed(flag)) is is_eaten


@given(st.text())
def test_it_never_raises_on_any_text(text: str) -> None:
    assert parse_firmware_lldp(text) in {True, False, None}
