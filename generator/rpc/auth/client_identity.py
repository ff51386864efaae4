"""What a caller knows a server by, and proves itself with; apart from what loads gRPC."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple


class Proof(NamedTuple):
    """How the server is known, and how we prove who we are; any of it asks for TLS."""

    ca: Path | None = None
    """Authorities that the server's certificate is of; None: those of gRPC."""
    token: Path | None = None
    """File with a bearer token, read for each call: whoever renews it replaces it."""
    cert: Path | None = None
    key: Path | None = None
    server_name: str | None = None
    """Name in the server's certificate, where it is not the address that is asked."""


PLAIN: Final = Proof()
