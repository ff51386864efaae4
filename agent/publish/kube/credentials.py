"""The address of the API server, and the agent's credentials: a token and the server's authority.

Token and authority are files that are replaced while the agent runs, so they are read for each
request. A token is never logged. Its claims are used only to find the agent's own Node object.
"""

from __future__ import annotations

import base64
import binascii
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from runtime.small_files import read_small_file
from runtime.values import Address
from topology.model.errors import ConfigError, KubeForbidden, KubeUnavailable, show

SERVICE_ACCOUNT_DIR: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which a pod finds its own token and the authority."""
_MAX_TOKEN_CHARS: Final = 64 << 10
_MAX_CA_BYTES: Final = 1 << 20
_HTTPS_PORT: Final = 443


class TokenNode(NamedTuple):
    """The Node object that the token is bound to."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class ApiCredentials:
    """The API server's address, and the files of the token and the authority."""

    address: Address
    token_file: Path
    ca_file: Path

    def read_token(self) -> str:
        """Return the current token in the file.

        Raises:
            KubeForbidden: the file cannot be read, or does not hold a token.
        """
        try:
            with self.token_file.open(encoding="ascii") as file:
                token = file.read(_MAX_TOKEN_CHARS + 1).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise KubeForbidden(f"token {self.token_file}: {_reason(error)}") from error
        if not token or len(token) > _MAX_TOKEN_CHARS or not token.isprintable() or " " in token:
            raise KubeForbidden(f"token {self.token_file}: the file holds no token")
        return token

    def open_tls(self) -> ssl.SSLContext:
        """Return a TLS context that trusts only the authority in the file.

        Raises:
            KubeUnavailable: the file cannot be read, or does not hold a certificate.
        """
        try:
            read_small_file(self.ca_file, _MAX_CA_BYTES)  # the library reads it to its end
            return ssl.create_default_context(cafile=str(self.ca_file))
        except (ConfigError, OSError) as error:
            raise KubeUnavailable(f"authority {self.ca_file}: {_reason(error)}") from error


def read_cluster_address(environ: Mapping[str, str]) -> Address:
    """Return the address at which pods reach the API server.

    Raises:
        ConfigError: the agent does not run in a pod.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host:
        raise ConfigError("not in a pod (KUBERNETES_SERVICE_HOST is not set): set --api-server")
    if not port.isascii() or not port.isdecimal():
        raise ConfigError(f"KUBERNETES_SERVICE_PORT is not a port: '{show(port)}'")
    return Address(host, int(port))


def parse_api_url(url: str) -> Address:
    """Return the address of `https://HOST[:PORT]`; an IPv6 address is in brackets.

    Raises:
        ConfigError: the text has another form; a token is only sent over TLS.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"'{show(url)}' is not an address: {error}") from error
    if parts.scheme != "https" or not host or parts.path.strip("/") or parts.query or "@" in url:
        raise ConfigError(f"'{show(url)}' is not an address such as https://10.0.0.1:6443")
    return Address(host, port or _HTTPS_PORT)


def parse_token_node(token: str) -> TokenNode | None:
    """Return the Node in the claims of a pod's service account token.

    Return None for a token without a Node: a token made by hand, or another kind of token. The
    signature is not checked; the server does that.

    Source: Kubernetes 1.30, ServiceAccountTokenPodNodeInfo.
    """
    try:
        payload = token.split(".")[1]
        padded = payload + "=" * (-len(payload) % 4)
        claims = json.loads(base64.urlsafe_b64decode(padded))
        node: Any = claims["kubernetes.io"]["node"]
        name, uid = node["name"], node["uid"]
    except (IndexError, KeyError, TypeError, ValueError, RecursionError, binascii.Error):
        return None
    is_known = isinstance(name, str) and isinstance(uid, str) and name and uid
    return TokenNode(name, uid) if is_known else None


def _reason(error: Exception) -> str:
    strerror = getattr(error, "strerror", None)
    return show(str(strerror or error))
