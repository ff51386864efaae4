"""What Linux says about a network card: the slaves of a bond, and private flags of its driver."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from topology.model.ids import parse_mac

_SLAVE = "Slave Interface"
_PERMANENT = "Permanent HW addr"


def parse_permanent_macs(text: str) -> dict[str, str]:
    """Return MAC addresses by slave, which sysfs may hide, from `/proc/net/bonding/BOND`.

    Skips slaves without a usable address and other lines. Source: bond_info_seq_show of
    drivers/net/bonding/bond_procfs.c, Linux 2.6 to 6.
    """
    macs: dict[str, str] = {}
    slave = ""
    for line in text.splitlines():
        key, _, value = line.partition(": ")
        if key == _SLAVE:
            slave = value.strip()
        elif key == _PERMANENT and slave:
            mac = parse_mac(value)
            if mac:
                macs[slave] = mac
    return macs


_CONSUMES_LLDP_WHEN: Final[Mapping[str, str]] = MappingProxyType(
    {"fw-lldp-agent": "on", "enable-fw-lldp": "on", "disable-fw-lldp": "off"}
)
"""By flag, the value with which the agent runs."""
_VALUES: Final = frozenset({"on", "off"})


def parse_firmware_lldp(text: str) -> bool | None:
    """Return whether the card consumes LLDP frames; None if the text has no such flag.

    The text is that of `ethtool --show-priv-flags`. Intel's cards run an LLDP agent in their
    firmware, whose flag was renamed twice. Sources: i40e_ethtool.c and ice_ethtool.c of Linux
    (`disable-fw-lldp` of i40e and of ice before 5.2, `enable-fw-lldp` of ice in 5.2,
    `fw-lldp-agent` of ice since 5.4); dump_strings of ethtool.
    """
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.rpartition(":"))
        if name in _CONSUMES_LLDP_WHEN and value in _VALUES:
            return value == _CONSUMES_LLDP_WHEN[name]
    return None
