"""`ethtool --show-priv-flags`: whether a card's own LLDP agent hides frames from the host.

Intel's cards run an LLDP agent in their firmware. Its flag was renamed twice. Without such a flag,
the state of the agent is unknown.

Sources: i40e_ethtool.c and ice_ethtool.c of Linux (`disable-fw-lldp` of i40e and of ice before
5.2, `enable-fw-lldp` of ice in 5.2, `fw-lldp-agent` of ice since 5.4); dump_strings of ethtool.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_CONSUMES_LLDP_WHEN: Final[Mapping[str, str]] = MappingProxyType(
    {"fw-lldp-agent": "on", "enable-fw-lldp": "on", "disable-fw-lldp": "off"}
)
"""By flag, the value with which the agent runs."""
_VALUES: Final = frozenset({"on", "off"})


def parse_firmware_lldp(text: str) -> bool | None:
    """Return whether the card consumes LLDP frames; None if the text has no such flag."""
    for line in text.splitlines():
        name, _, value = (part.strip() for part in line.rpartition(":"))
        if name in _CONSUMES_LLDP_WHEN and value in _VALUES:
            return value == _CONSUMES_LLDP_WHEN[name]
    return None
