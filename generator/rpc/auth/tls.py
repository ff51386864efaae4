"""Certificates of the server, reloaded for a new connection after their files have changed.

If certificate and key do not match, as during a renewal, the last good pair stays in use. If client
authorities are set, a client without a certificate from one of them is not connected.

Replicas share one certificate, and by its key they recognize each other: a replica trusts the
certificates themselves, so another certificate of the same authority is not enough. The kubelets
deliver a renewed certificate to the replicas at different times, 30 to 100 s apart (reported in
cluster-api issue 10522). So a replica trusts a renewed certificate at once, and presents it only
after an overlap, when the other replicas have read it too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

import grpc
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import (
    Certificate,
    DNSName,
    ExtensionNotFound,
    IPAddress,
    SubjectAlternativeName,
    load_pem_x509_certificate,
    load_pem_x509_certificates,
)
from cryptography.x509.oid import NameOID

from generator.rpc.auth.key_files import read_key_file
from runtime.clock import Monotonic, utc_now
from topology.model.errors import ConfigError

log = logging.getLogger(__name__)

OVERLAP_S: Final = 120.0
"""The time from reading a renewed certificate to presenting it, among replicas."""
_MAX_TRUSTED: Final = 3
"""Certificates that a replica trusts: the presented, the renewed, and the one before them."""


class TlsFiles(NamedTuple):
    """PEM files; a renewal replaces them."""

    cert: Path
    """The server's certificate, and the intermediate certificates up to its authority."""
    key: Path
    client_ca: Path | None = None
    """Authorities of client certificates; None: no client certificate is required."""

    def read_versions(self) -> tuple[tuple[int, int, int], ...]:
        """Return values that change when a file is replaced, written or removed."""
        return tuple(_read_version(file) for file in self if file is not None)


def _read_version(file: Path) -> tuple[int, int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)


class PeerCredentials(NamedTuple):
    """How a replica connects to another replica."""

    trusted: bytes
    """PEM certificates, one of which the other replica must present."""
    server_name: str
    """A name that these certificates have; empty if they have none."""
    pair: tuple[bytes, bytes] | None
    """Key and certificate for a replica that requires a client certificate; else None."""


class _KeyPair(NamedTuple):
    """The files of a certificate as they were read."""

    key: bytes
    chain: bytes
    leaf: Certificate
    """The first certificate of the chain."""


class ServerCertificates:
    """The certificates in use; gRPC checks for new ones at every connection, in its own threads."""

    def __init__(
        self, files: TlsFiles, *, overlap_s: float = 0.0, clock: Monotonic = time.monotonic
    ) -> None:
        """Read the files.

        Args:
            files: the paths of the certificates.
            overlap_s: how long replicas trust a renewed certificate before they present it, unless
                the one before it has expired; 0 without replicas.
            clock: the clock that measures the overlap.

        Raises:
            ConfigError: a file cannot be read or is not PEM, or key and certificate do not match.
        """
        self._files = files
        self._overlap_s = overlap_s
        self._clock = clock
        self._lock = Lock()
        self._versions = self._files.read_versions()
        self._presented = _read_pair(files)
        self._trusted: tuple[_KeyPair, ...] = (self._presented,)
        """Oldest first."""
        self._present_at_s = 0.0
        """When the newest certificate is presented."""
        self._authorities = _read_authorities(files)
        self._configured = self._state
        """The certificate that gRPC has."""
        self.credentials = grpc.dynamic_ssl_server_credentials(
            self._build_configuration(),
            self._reload_if_changed,  # type: ignore[arg-type]  # the stubs forget that None means no change
            require_client_authentication=files.client_ca is not None,
        )
        """Credentials for a port to listen on."""

    def read_peer_credentials(self) -> PeerCredentials:
        """Return the credentials for a connection to another replica now; reads changed files."""
        with self._lock:
            self._refresh()
            leaves = [pair.leaf for pair in self._trusted]
            is_mutual = self._files.client_ca is not None
            presented = self._presented
            return PeerCredentials(
                b"".join(leaf.public_bytes(Encoding.PEM) for leaf in leaves),
                _find_common_name(leaves),
                (presented.key, presented.chain) if is_mutual else None,
            )

    def is_of_replica(self, pem: bytes) -> bool:
        """Return whether a certificate that a client has proved is one that replicas share."""
        try:
            leaf = load_pem_x509_certificate(pem)
        except ValueError:
            return False
        with self._lock:
            self._refresh()
            return any(pair.leaf == leaf for pair in self._trusted)

    def _reload_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return new certificates, None to keep the present ones."""
        with self._lock:
            self._refresh()
            if self._state == self._configured:
                return None
            self._configured = self._state
            return self._build_configuration()

    @property
    def _state(self) -> tuple[_KeyPair, tuple[_KeyPair, ...], bytes | None]:
        return self._presented, self._trusted, self._authorities

    def _build_configuration(self) -> grpc.ServerCertificateConfiguration:
        authorities = self._authorities
        if authorities is not None and self._overlap_s:
            leaves = (pair.leaf.public_bytes(Encoding.PEM) for pair in self._trusted)
            authorities = b"\n".join((authorities, *leaves))
        pair = self._presented
        return grpc.ssl_server_certificate_configuration([(pair.key, pair.chain)], authorities)

    def _refresh(self) -> None:
        """Read files that changed, and present the newest certificate once its time has come."""
        try:
            versions = self._files.read_versions()
            if versions != self._versions:
                self._versions = versions
                self._read_renewed()
        except ConfigError as error:
            log.warning(
                "new certificates not usable, previous ones kept", extra={"error": str(error)}
            )
        newest = self._trusted[-1]
        if newest is not self._presented and (
            self._clock() >= self._present_at_s
            or self._presented.leaf.not_valid_after_utc <= utc_now()
        ):
            self._presented = newest
            log.info("certificates renewed", extra={"file": str(self._files.cert)})

    def _read_renewed(self) -> None:
        pair, self._authorities = _read_pair(self._files), _read_authorities(self._files)
        if pair != self._trusted[-1]:
            self._present_at_s = self._clock() + self._overlap_s
            self._trusted = (*self._trusted, pair)[-_MAX_TRUSTED:]


def _read_pair(files: TlsFiles) -> _KeyPair:
    """Return the certificate and its key.

    Raises:
        ConfigError: a file cannot be read or is not PEM, or the key does not match, so that gRPC
            would refuse every connection.
    """
    chain, key = read_key_file(files.cert), read_key_file(files.key)
    leaf = _parse_first_certificate(files.cert, chain)
    try:
        public_key = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{files.key}: no private key in PEM") from error
    encoded = (
        key_of_pair.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        for key_of_pair in (public_key, leaf.public_key())
    )
    if len(set(encoded)) > 1:
        pair = f"{files.cert} and {files.key}"
        raise ConfigError(f"{pair}: the key does not match the certificate")
    return _KeyPair(key, chain, leaf)


def _read_authorities(files: TlsFiles) -> bytes | None:
    """Return the authorities of clients; None if no client certificate is required."""
    if files.client_ca is None:
        return None
    authorities = read_key_file(files.client_ca)
    _parse_first_certificate(files.client_ca, authorities)
    return authorities


def _parse_first_certificate(file: Path, raw: bytes) -> Certificate:
    try:
        first = load_pem_x509_certificates(raw)[0]
        first.public_key()
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{file}: no certificate in PEM") from error
    return first


def _find_common_name(leaves: Sequence[Certificate]) -> str:
    """Return a name that all certificates have, or else the newest one's first name."""
    names = [_list_names(leaf) for leaf in leaves]
    common = (name for name in names[-1] if all(name in others for others in names))
    return next(common, names[-1][0] if names[-1] else "")


def _list_names(leaf: Certificate) -> list[str]:
    """Return the names that a client may verify: alternative names, or else the common name."""
    try:
        alternatives = leaf.extensions.get_extension_for_class(SubjectAlternativeName).value
    except ExtensionNotFound:
        common = leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return [str(attribute.value) for attribute in common]
    addresses = map(str, alternatives.get_values_for_type(IPAddress))
    return [*alternatives.get_values_for_type(DNSName), *addresses]
