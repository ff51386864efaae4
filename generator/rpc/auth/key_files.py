"""Reads keys, certificates and tokens from small files; every use reads the file again."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from runtime.small_files import read_small_file
from topology.model.errors import ConfigError

MAX_BYTES: Final = 1 << 20


def read_key_file(file: Path) -> bytes:
    """Return the contents of a key, certificate or token file.

    Raises:
        ConfigError: it cannot be read, is empty, or is larger than `MAX_BYTES`.
    """
    raw = read_small_file(file, MAX_BYTES)
    if not raw.strip():
        raise ConfigError(f"{file}: it is empty")
    return raw


class ClientIdentity(NamedTuple):
    """How a client verifies the server and proves its own identity; any field enables TLS."""

    ca: Path | None = None
    """Authorities that may have signed the server's certificate; None: gRPC's defaults."""
    token: Path | None = None
    """File with a bearer token, read for each call, so that it can be renewed."""
    cert: Path | None = None
    key: Path | None = None
    server_name: str | None = None
    """Name in the server's certificate, if it differs from the address."""


NO_TLS: Final = ClientIdentity()
