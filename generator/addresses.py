"""Addresses to listen on or to ask, as people write them: `HOST:PORT`."""

from __future__ import annotations

from typing import Final, NamedTuple

from topology.errors import ConfigError, show

MAX_PORT: Final = 65535


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
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > MAX_PORT:
        raise ConfigError(f"'{show(text)}' is no address such as 127.0.0.1:50051")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    return Address(bare, int(port))
