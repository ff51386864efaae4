"""Certificates of the server, reloaded for a new connection after their files have changed.

If certificate and key do not match, as during a renewal, the last good pair stays in use. If client
authorities are set, a client without a certificate from one of them is not connected.
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
    """PEM files; a renewal replaces them."""

    cert: Path
    """The server's certificate, and the intermediate certificates up to its authority."""
    key: Path
    client_ca: Path | None = None
    """Authorities of client certificates; None: no client certificate is required."""


class _FileVersion(NamedTuple):
    """Values that change when a file is replaced or written."""

    inode: int
    mtime_ns: int
    size: int


class ServerCertificates:
    """The certificates in use; gRPC checks for new ones at every connection, in its own threads."""

    def __init__(self, files: TlsFiles) -> None:
        """Read the files.

        Raises:
            ConfigError: a file cannot be read or is not PEM, or key and certificate do not match.
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
        """Credentials for a port to listen on."""

    def _reload_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Return new certificates, None to keep the present ones."""
        with self._lock:
            try:
                versions = self._read_versions()
                if versions == self._versions:
                    return None
                self._versions = versions
                configuration = _read_configuration(self._files)
            except ConfigError as error:
                log.warning(
                    "new certificates not usable, previous ones kept", extra={"error": str(error)}
                )
                return None
        log.info("certificates renewed", extra={"file": str(self._files.cert)})
        return configuration

    def _read_versions(self) -> tuple[_FileVersion, ...]:
        return tuple(_read_version(file) for file in self._files if file is not None)


def _read_version(file: Path) -> _FileVersion:
    try:
        status = file.stat()
    except OSError as error:
        raise ConfigError(f"{show(str(file), 1024)}: {error.strerror}") from error
    return _FileVersion(status.st_ino, status.st_mtime_ns, status.st_size)


def _read_configuration(files: TlsFiles) -> grpc.ServerCertificateConfiguration:
    cert, key = read_key_file(files.cert), read_key_file(files.key)
    _check_pair(files, cert, key)
    authorities = None
    if files.client_ca is not None:
        authorities = read_key_file(files.client_ca)
        _read_public_key(files.client_ca, authorities)
    return grpc.ssl_server_certificate_configuration([(key, cert)], authorities)


def _check_pair(files: TlsFiles, cert: bytes, key: bytes) -> None:
    """Raise if a key does not match its certificate: gRPC would refuse every connection instead."""
    certificate_key = _read_public_key(files.cert, cert)
    try:
        private_public_key = load_pem_private_key(key, password=None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{show(str(files.key), 1024)}: no private key in PEM") from error
    if (
        private_public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        != certificate_key
    ):
        pair = f"{show(str(files.cert), 1024)} and {show(str(files.key), 1024)}"
        raise ConfigError(f"{pair}: the key does not match the certificate")


def _read_public_key(file: Path, raw: bytes) -> bytes:
    """Return the public key of the first certificate in a file."""
    try:
        first = load_pem_x509_certificates(raw)[0]
        return first.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ConfigError(f"{show(str(file), 1024)}: no certificate in PEM") from error
