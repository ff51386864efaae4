"""Addresses to listen on or to ask, as people write them: `HOST:PORT`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from topology.model.errors import ConfigError, show

MAX_PORT: Final = 65535
_IPV6: Final = r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%\w+)?"
_ADDRESS = re.compile(rf"(?:\[({_IPV6})\]|({_IPV6}|[^\s:/\[\]]*)):([0-9]{{1,5}})\Z")


class Address(NamedTuple):
    """Where to listen, or whom to ask."""

    host: str
    """A name or an IP, IPv6 without brackets; empty for all addresses of the machine."""
    port: int

    def __str__(self) -> str:
        """Return `HOST:PORT`, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Return the parts of `HOST:PORT`, `[IPv6]:PORT` or `:PORT`; nothing is looked up.

    Raises:
        ConfigError: it is no such pair.
    """
    found = _ADDRESS.match(text)
    if found is None or int(found[3]) > MAX_PORT:
        raise ConfigError(f"'{show(text)}' is no address such as 127.0.0.1:50051 or [::1]:50051")
    return Address(found[1] or found[2], int(found[3]))
