"""Small files that prove who one is: keys, certificates, tokens. Read anew, since they change."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from topology.model.errors import ConfigError, show

MAX_BYTES: Final = 1 << 20


def read_key_file(file: Path) -> bytes:
    """Return what is in it.

    Raises:
        ConfigError: it cannot be read, is empty, or too large to be one.
    """
    name = show(str(file), 1024)
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}") from error
    if not raw.strip():
        raise ConfigError(f"{name}: it is empty")
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{name}: larger than {MAX_BYTES} bytes")
    return raw


class ClientIdentity(NamedTuple):
    """How the server is known, and how we prove who we are; any of it asks for TLS."""

    ca: Path | None = None
    """Authorities that the server's certificate is of; None: those of gRPC."""
    token: Path | None = None
    """File with a bearer token, read for each call: whoever renews it replaces it."""
    cert: Path | None = None
    key: Path | None = None
    server_name: str | None = None
    """Name in the server's certificate, where it is not the address that is asked."""


NO_TLS: Final = ClientIdentity()
