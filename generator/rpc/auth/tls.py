"""Certificates of the server, read again for a new connection when their files have changed.

A pair that does not fit, which is what a renewal looks like half way, leaves the last good one in
use. Where an authority for clients is named, who cannot show a certificate of it is not connected.
"""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import grpc
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509 import load_pem_x509_certificates

from generator.rpc.auth.key_files import read_key_file
from topology.model.errors import ConfigError, show

log = logging.getLogger(__name__)


class TlsFiles(NamedTuple):
    """Files in PEM; whoever renews them replaces them."""

    cert: Path
    """The server's certificate, and those between it and its authority."""
    key: Path
    client_ca: Path | None = None
    """Authorities whose certificates callers must show; None: they need not show any."""


class _FileVersion(NamedTuple):
    """What differs when a file was replaced or written."""

    inode: int
    mtime_ns: int
    size: int


class ServerCertificates:
    """The certificates in use; gRPC asks at every new connection, from threads of its own."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files.

        Raises:
            ConfigError: one cannot be read or is no PEM, or key and certificate do not fit.
        """
        self._files = files
        self._lock = Lock()
        self._versions = self._read_versions()
        self._initial_configuration = _read_configuration(files)
        self.credentials = grpc.dynamic_ssl_server_credentials(
            self._initial_configuration,
            self._reload_if_changed,  # type: ignore[arg-type]  # the stubs forget that None means no change
            require_client_authentication=files.client_ca is not None,
        )
        """For a port to listen on."""

    def _reload_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return new certificates, None where those in use stay."""
        with self._lock:
            try:
                stamps = self._read_versions()
                if stamps == self._versions:
                    return None
                self._versions = stamps
                found = _read_configuration(self._files)
            except ConfigError as error:
                log.warning("certificates kept", extra={"error": str(error)})
                return None
        log.info("certificates renewed", extra={"file": str(self._files.cert)})
        return found

    def _read_versions(self) -> tuple[_FileVersion, ...]:
        return tuple(_read_version(file) for file in self._files if file is not None)


def _read_version(file: Path) -> _FileVersion:
    try:
        found = file.stat()
    except OSError as error:
        raise ConfigError(f"{show(str(file), 1024)}: {error.strerror}") from error
    return _FileVersion(found.st_ino, found.st_mtime_ns, found.st_size)


def _read_configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    cert, key = read_key_file(files.cert), read_key_file(files.key)
    _check_pair(files, cert, key)
    authorities = None
    if files.client_ca is not None:
        authorities = read_key_file(files.client_ca)
        _read_public_key(files.client_ca, authorities)
    return grpc.ssl_server_certificate_configuration([(key, cert)], authorities)


def _check_pair(files: TlsFiles, cert: bytes, key: bytes) -> None:
    """Refuse a key that is not the certificate's: gRPC would refuse every connection instead."""
    certified = _read_public_key(files.cert, cert)
    try:
        own = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{show(str(files.key), 1024)}: no private key in PEM") from error
    if own.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != certified:
        pair = f"{show(str(files.cert), 1024)} and {show(str(files.key), 1024)}"
        raise ConfigError(f"{pair}: the key is not the certificate's")


def _read_public_key(file: Path, raw: bytes) -> bytes:
    """Return the public key of the first certificate."""
    try:
        first = load_pem_x509_certificates(raw)[0]
        return first.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{show(str(file), 1024)}: no certificate in PEM") from error
