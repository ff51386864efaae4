"""Parsers of option values that both programs take: numbers, durations and `HOST:PORT`.

They raise `ConfigError`, which a command line turns into a usage error. No name is resolved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from topology.model.errors import ConfigError, show

MAX_PORT: Final = 65535
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m|h)\Z", re.ASCII)
_MAX_DURATION_S: Final = 8760 * 3600.0
"""A year: longer waits overflow the clocks of some libraries."""
_WHOLE = re.compile(r"[+-]?\d{1,20}\Z", re.ASCII)
_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BARE_IPV6: Final = r"[0-9A-Fa-f]*:[0-9A-Fa-f:.]*(?:%\w+)?"


_ALL_ADDRESSES: Final = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared, not bound


class Address(NamedTuple):
    """A host and a TCP port."""

    host: str
    """A name or an IP address, IPv6 without brackets; empty for all addresses of the machine."""
    port: int
    """Listening on port 0 takes a free port."""

    def __str__(self) -> str:
        """Return `HOST:PORT`, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def url(self, path: str = "/", *, is_tls: bool = False) -> str:
        """Return the URL for a browser on this machine; localhost stands for all addresses."""
        reached = self._replace(host="localhost") if self.host in _ALL_ADDRESSES else self
        return f"{'https' if is_tls else 'http'}://{reached}{path}"


class AddressForm(NamedTuple):
    """A notation of addresses."""

    pattern: re.Pattern[str]
    """Groups: an IPv6 address in brackets, or another host; then the port."""
    examples: str
    """For the error message."""


ANY_ADDRESS: Final = AddressForm(
    re.compile(rf"(?:\[({_BARE_IPV6})\]|({_BARE_IPV6}|[^\s:/\[\]]*)):([0-9]{{1,5}})\Z"),
    "127.0.0.1:50051 or [::1]:50051",
)
"""The brackets of IPv6 may be missing."""
LISTEN_ADDRESS: Final = AddressForm(
    re.compile(r"(?:\[([0-9A-Fa-f:.]+(?:%\w+)?)\]|([A-Za-z0-9.-]*)):([0-9]{1,5})\Z"),
    "127.0.0.1:8080, [::1]:80 or :8080",
)
"""IPv6 is in brackets, and a host name has no other characters than DNS allows."""


def parse_address(text: str, form: AddressForm = ANY_ADDRESS) -> Address:
    """Return the address of `HOST:PORT`, `[IPV6]:PORT` or `:PORT`.

    Raises:
        ConfigError: the text does not have the form, or the port is above 65535.
    """
    match = form.pattern.match(text)
    if match is None or int(match[3]) > MAX_PORT:
        raise ConfigError(f"'{show(text)}' is not an address such as {form.examples}")
    return Address(match[1] or match[2], int(match[3]))


def parse_whole_number(text: str, minimum: int, maximum: int) -> int:
    """Return a whole number between two bounds, both included.

    Raises:
        ConfigError: the text has another form, or the number is out of bounds.
    """
    number = int(text) if _WHOLE.match(text) else None
    if number is None or not minimum <= number <= maximum:
        raise ConfigError(f"'{show(text)}' is not a whole number from {minimum} to {maximum}")
    return number


def parse_delay(text: str) -> float:
    """Return the seconds of `0s`, `500ms`, `30s`, `5m` or `1h`; a bare number is refused.

    Raises:
        ConfigError: the text has another form.
    """
    match = _DURATION.match(text)
    if match is None:
        raise ConfigError(f"'{show(text)}' is not a duration such as 500ms, 30s, 5m or 1h")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > _MAX_DURATION_S:
        raise ConfigError(f"'{show(text)}' is too long: expected at most a year, 8760h")
    return seconds


def parse_duration(text: str) -> float:
    """Return seconds as `parse_delay` does, but never 0.

    Raises:
        ConfigError: the text has another form, or means 0.
    """
    seconds = parse_delay(text)
    if not seconds:
        raise ConfigError(f"'{show(text)}' is too short: expected a duration above 0")
    return seconds
