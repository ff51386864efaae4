"""Servers with authentication, and clients with every kind of credential."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import grpc

from generator.reconcile.round_results import QueryResult
from generator.rpc.auth.authentication import TokenCheck
from generator.rpc.auth.tls import ServerCertificates, TlsFiles
from generator.rpc.published_state import PublishedState
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
        """Replace the server's certificate by another of the same authority."""
        self.put(*self.authority.issue("server"))

    def put(self, cert: bytes, key: bytes) -> None:
        self.write("tls.key", key)
        self.write("tls.crt", cert)

    def client(self, name: str = "client") -> tuple[Path, Path]:
        """Return files with a certificate and its key."""
        cert, key = self.authority.issue(name)
        return self.write(f"{name}.crt", cert), self.write(f"{name}.key", key)

    def write(self, name: str, content: bytes) -> Path:
        """Write a file completely, with a new inode, as a certificate renewal does."""
        file = self.folder / name
        fresh = self.folder / f".{name}"
        fresh.write_bytes(content)
        return fresh.replace(file)


class Tokens:
    """Checks tokens against a list, and counts the checks."""

    def __init__(self, verdicts: Mapping[str, CallFailure | None]) -> None:
        self._verdicts = verdicts
        self.num_asked = 0

    def authenticate(self, token: str, *, peer: str, timeout_s: float) -> str | CallFailure:
        assert peer.startswith("127.0.0.1:")
        assert timeout_s <= SOON_S + 1
        self.num_asked += 1
        unknown = CallFailure(FailureKind.UNAUTHENTICATED, "the token is not valid here")
        return self._verdicts.get(token, unknown) or token


class Served:
    """A running server, and the results of the calls to it."""

    def __init__(self, files: TlsFiles, tokens: TokenCheck | None) -> None:
        self.results: list[QueryResult] = []
        security = ServerSecurity(ServerCertificates(files), tokens)
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
    """Return a channel that trusts this authority, without a client identity."""
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(pki.ca.read_bytes()))
