"""Addresses of servers: without TLS and authentication only loopback is allowed."""

from __future__ import annotations

from ipaddress import ip_address

from runtime.values import Address, parse_address
from topology.model.errors import ConfigError, show


def parse_loopback_address(text: str) -> str:
    """Return `HOST:PORT` in the form that gRPC takes; `localhost` is 127.0.0.1.

    Raises:
        ConfigError: it is not `HOST:PORT`, or the host is not this machine.
    """
    host, port = parse_address(text)
    if host == "localhost":
        return f"127.0.0.1:{port}"
    try:
        ip = ip_address(host)
    except ValueError as error:
        problem = "is not 127.0.0.1, [::1] or localhost: without TLS only loopback is allowed"
        raise ConfigError(f"'{show(text)}' {problem}") from error
    if not ip.is_loopback:
        raise ConfigError(
            f"'{show(text)}' is not a loopback address: without TLS, only these are allowed"
        )
    return str(Address(str(ip), port))


def parse_listen_address(text: str) -> str:
    """Return any `HOST:PORT` in the form that gRPC takes; an empty host means all addresses.

    Raises:
        ConfigError: it is not `HOST:PORT`.
    """
    host, port = parse_address(text)
    return str(Address(host or "::", port))
