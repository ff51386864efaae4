"""The certificates of the page, read again when their files change, as those of gRPC are."""

from __future__ import annotations

import logging
import ssl

from generator.rpc.auth.key_files import read_key_file
from generator.rpc.auth.tls import TlsFiles
from topology.model.errors import ConfigError, show

log = logging.getLogger(__name__)


def build_renewed_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a context whose connections use the files as they are when they begin.

    A file that cannot be used is logged once, and the last good files stay in use.

    Raises:
        ConfigError: a file cannot be used.
    """
    renewal = _Renewal(files)
    context = _read_context(files)
    context.sni_callback = renewal.choose  # in every handshake, also of a client that names no host
    return context


class _Renewal:
    """Gives each connection the context of the present files; all calls are in one thread."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._versions = self._files.read_versions()
        self._renewed: ssl.SSLContext | None = None

    def choose(
        self, connection: ssl.SSLObject, _name: str | None, _first: ssl.SSLContext
    ) -> int | None:
        """Replace the context of a connection that begins, if the files have changed."""
        versions = self._files.read_versions()
        if versions != self._versions:
            self._versions = versions
            try:
                self._renewed = _read_context(self._files)
            except ConfigError as error:
                log.warning(
                    "new certificates not usable, previous ones kept", extra={"error": str(error)}
                )
        if self._renewed is not None:
            connection.context = self._renewed
        return None


def _read_context(files: TlsFiles) -> ssl.SSLContext:
    for file in filter(None, files):
        read_key_file(file)  # the library reads a file to its end, whatever its size
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.cert, files.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{show(str(files.cert), 1024)}: {error}") from error
    if files.client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{show(str(files.client_ca), 1024)}: {error}") from error
    return context
