"""Addresses of servers: as long as callers cannot prove who they are, only this machine's."""

from __future__ import annotations

from ipaddress import ip_address

from topology.errors import ConfigError, show

MAX_PORT = 65535


def loopback_address(text: str) -> str:
    """Return `HOST:PORT` in the form that gRPC takes; `localhost` is 127.0.0.1.

    Raises:
        ConfigError: it is no such pair, or the host is not this machine.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > MAX_PORT:
        raise ConfigError(f"'{show(text)}' is no address such as 127.0.0.1:50051")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if bare == "localhost":
        return f"127.0.0.1:{int(port)}"
    try:
        found = ip_address(bare)
    except ValueError as error:
        problem = "expected 127.0.0.1, [::1] or localhost, and a port"
        raise ConfigError(f"'{show(text)}': {problem}") from error
    if not found.is_loopback:
        raise ConfigError(
            f"'{show(text)}' is not this machine: without authentication, which is not available "
            "yet, only loopback is served and asked"
        )
    return f"[{found}]:{int(port)}" if found.version == 6 else f"{found}:{int(port)}"  # noqa: PLR2004 - IPv6
