"""Servers that ask who calls, and callers with every kind of proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc

from generator.reconcile.result import QueryResult
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.tls import ServerCertificates, TlsFiles
from generator.rpc.published import PublishedState
from generator.rpc.server import PlacementServer, ServerSecurity
from generator.rpc.status_errors import CallFailure, FailureKind
from tests.generator.rpc.clusters import snapshot_of
from tests.lab.certificates import Authority

ANY_PORT = "127.0.0.1:0"
SOON_S = 30.0
SNAPSHOT = snapshot_of(("a1", "a2"), ("b1", "b2", "b3"))


class Pki:
    """Certificates in files, as a cluster mounts and replaces them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority("ca")
        self.renew()

    @property
    def ca(self) -> Path:
        return self.write("ca.crt", self.authority.pem)

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(self.folder / "tls.crt", self.folder / "tls.key")

    def renew(self) -> None:
        """Give the server another certificate of the authority."""
        self.put(*self.authority.issue("server"))

    def put(self, cert: bytes, key: bytes) -> None:
        self.write("tls.key", key)
        self.write("tls.crt", cert)

    def client(self, name: str = "client") -> tuple[Path, Path]:
        """Return files with a certificate and its key."""
        cert, key = self.authority.issue(name)
        return self.write(f"{name}.crt", cert), self.write(f"{name}.key", key)

    def write(self, name: str, content: bytes) -> Path:
        """Write a file whole, by another inode, as those who renew certificates do."""
        file = self.folder / name
        fresh = self.folder / f".{name}"
        fresh.write_bytes(content)
        return fresh.replace(file)


class Tokens:
    """Judges by a list, and counts how often it is asked."""

    def __init__(self, verdicts: Mapping[str, CallFailure | None]) -> None:
        self._verdicts = verdicts
        self.num_asked = 0

    def authenticate(self, token: str, *, timeout_s: float) -> str | CallFailure:
        assert timeout_s <= SOON_S + 1
        self.num_asked += 1
        unknown = CallFailure(FailureKind.UNAUTHENTICATED, "the token is not valid here")
        return self._verdicts.get(token, unknown) or token


class Served:
    """A running server, and how calls to it ended."""

    def __init__(self, files: TlsFiles, tokens: TokenCheck | None) -> None:
        self.results: list[QueryResult] = []
        security = ServerSecurity(ServerCertificates(files).credentials, tokens)
        self.server = PlacementServer(
            ANY_PORT,
            PublishedState(SNAPSHOT),
            security=security,
            on_query=lambda result, _: self.results.append(result),
        )

    @property
    def address(self) -> str:
        return self.server.address


@contextmanager
def served(files: TlsFiles, tokens: TokenCheck | None = None) -> Iterator[Served]:
    running = Served(files, tokens)
    try:
        yield running
    finally:
        running.server.stop(deadline_s=0)


def trusting(pki: Pki, address: str) -> grpc.Channel:
    """Return a channel to a server of this authority, with no proof of its own."""
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(pki.ca.read_bytes()))
