"""The private flags of Intel's drivers about LLDP frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.sources.host.linux_nics import parse_firmware_lldp


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
def test_it_reads(flag: str, *, is_eaten: bool | None) -> None:
    assert parse_firmware_lldp(listed(flag)) is is_eaten


@given(st.text())
def test_it_never_raises_on_any_text(text: str) -> None:
    assert parse_firmware_lldp(text) in {True, False, None}
