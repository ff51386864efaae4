"""`/proc/net/bonding/BOND`: permanent MAC addresses of a bond's slaves, which sysfs may hide.

Source: bond_info_seq_show of drivers/net/bonding/bond_procfs.c, Linux 2.6 to 6.
"""

from __future__ import annotations

from topology.model.ids import parse_mac

_SLAVE = "Slave Interface"
_PERMANENT = "Permanent HW addr"


def parse_permanent_macs(text: str) -> dict[str, str]:
    """Return MAC addresses by slave. Skips slaves without a usable address and other lines."""
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
