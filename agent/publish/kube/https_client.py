"""Sends requests to the API server, one at a time, over HTTPS of the standard library.

Each request has its own connection. Requests are rare, hours apart while nothing changes, and a
new connection uses the rotated token, the renewed authority and the current servers. A request
without an answer starts a cooldown, during which no request is sent.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

from agent.publish.kube.credentials import ApiCredentials, TokenNode, parse_token_node
from runtime.retry import Cooldown
from topology.model.errors import KubeError, KubeForbidden, KubeUnavailable
from topology.model.kube_errors import error_of_no_answer, error_of_status

APPLY: Final = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML."""
MERGE: Final = "application/merge-patch+json"
JSON: Final = "application/json"
DEADLINE_S: Final = 10.0
"""The time from connecting to the last byte of the answer."""
MAX_ANSWER_BYTES: Final = 4 << 20
"""etcd takes objects of 1.5 MiB."""
_UNAUTHORIZED: Final = 401
_OK: Final = range(200, 300)
_PERMANENT_REFUSALS: Final = (
    "field not declared in schema",
    "request is too large",
    "message larger than max",
)
"""Messages of the server with a 500 where the same request will never work."""

OnAnswer = Callable[[str], None]
"""Takes the status code of each answer, or `none` if no answer came."""


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the API server."""

    method: str
    path: str
    """The path with its query; the names in it are names of objects, so nothing needs escaping."""
    body: object = None
    """Sent as JSON; None sends no body."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the request for errors and logs: method and path, without the query."""
        return f"{self.method} {self.path.partition('?')[0]}"


class ApiClient:
    """Sends requests to the API server that the credentials are for."""

    def __init__(
        self,
        credentials: ApiCredentials,
        cooldown: Cooldown,
        *,
        deadline_s: float = DEADLINE_S,
        on_answer: OnAnswer | None = None,
    ) -> None:
        """Keep the credentials; sends no request yet.

        Args:
            credentials: the address, the token and the authority.
            cooldown: limits requests after a failure.
            deadline_s: the limit of one request, from connecting to the last byte of the answer.
            on_answer: records the status code of each answer.
        """
        self.credentials = credentials
        self._cooldown = cooldown
        self._deadline_s = deadline_s
        self._on_answer = on_answer
        self._user_agent = f"toponaut-agent/{version('toponaut')}"

    @property
    def blocking_error(self) -> KubeError | None:
        """The failure that started the current cooldown; None if a request may be sent."""
        return self._cooldown.error

    def call(self, request: ApiRequest) -> dict[str, Any]:
        """Send a request and return the object in the answer.

        After a 401 the token is read again, and the request is repeated if the token changed.

        Raises:
            KubeUnavailable: no answer came, the server cannot answer now, or a cooldown runs.
            KubeError: the server refused the request.
        """
        if (blocking := self._cooldown.error) is not None:
            raise blocking
        try:
            answer = self._call_with_fresh_token(request)
        except KubeUnavailable as error:
            self._cooldown.fail(error)
            raise
        except KubeError:
            self._cooldown.succeed()  # a refusal is an answer
            raise
        self._cooldown.succeed()
        return answer

    def own_node(self) -> TokenNode | None:
        """Return the Node that the token is bound to; None also if the token cannot be read."""
        try:
            return parse_token_node(self.credentials.read_token())
        except KubeForbidden:
            return None

    def _call_with_fresh_token(self, request: ApiRequest) -> dict[str, Any]:
        token = self.credentials.read_token()
        try:
            return self._exchange(request, token)
        except KubeForbidden as error:
            fresh = self.credentials.read_token()
            if error.status != _UNAUTHORIZED or fresh == token:
                raise
        return self._exchange(request, fresh)

    def _exchange(self, request: ApiRequest, token: str) -> dict[str, Any]:
        """Send a request once and return the object in the answer."""
        code = "none"
        try:
            with self._connected() as connection:
                status, retry_after, body = self._send(connection, request, token)
            code = str(status)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise error_of_no_answer(str(request), error) from error
        finally:
            if self._on_answer is not None:
                self._on_answer(code)
        if status not in _OK:
            raise _refusal(error_of_status(str(request), status, body, retry_after=retry_after))
        return _decode(str(request), body)

    def _send(
        self, connection: http.client.HTTPConnection, request: ApiRequest, token: str
    ) -> tuple[int, str | None, bytes]:
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": JSON,
            "User-Agent": self._user_agent,
            **request.headers,
        }
        raw = None if request.body is None else json.dumps(request.body).encode()
        connection.request(request.method, request.path, raw, headers)
        with connection.getresponse() as answer:
            body = answer.read(MAX_ANSWER_BYTES + 1)
            if len(body) > MAX_ANSWER_BYTES:
                raise OSError(f"answered more than {MAX_ANSWER_BYTES} bytes")
            return answer.status, answer.headers.get("Retry-After"), body

    @contextmanager
    def _connected(self) -> Iterator[http.client.HTTPConnection]:
        """Yield a connection that is cut at the deadline, even while bytes still arrive slowly."""
        host, port = self.credentials.address
        context = self.credentials.open_tls()
        try:
            plain = socket.create_connection((host, port), timeout=self._deadline_s)
        except TimeoutError as error:
            raise self._timeout_error() from error
        try:
            tls = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        except (OSError, ValueError):
            plain.close()
            raise
        is_late = threading.Event()
        guard = threading.Timer(self._deadline_s, _break, [tls, is_late])
        guard.daemon = True
        guard.start()
        try:
            tls.do_handshake()
            connection = http.client.HTTPConnection(host, port)
            connection.sock = tls
            yield connection
        except (OSError, http.client.HTTPException) as error:
            if not is_late.is_set() and not isinstance(error, TimeoutError):
                raise
            raise self._timeout_error() from error
        else:
            if is_late.is_set():
                raise self._timeout_error()  # the answer may be incomplete
        finally:
            guard.cancel()
            tls.close()

    def _timeout_error(self) -> OSError:
        return OSError(f"no complete answer within {self._deadline_s:g} s")


def _break(tls: ssl.SSLSocket, is_late: threading.Event) -> None:
    """Set the flag, then end the wait of another thread on this connection."""
    is_late.set()
    with suppress(OSError):
        # Not `SSLSocket.shutdown`: it changes the TLS state that the other thread is using.
        socket.socket.shutdown(tls, socket.SHUT_RDWR)


def _refusal(error: KubeError) -> KubeError:
    """Return the error of a refusal; a 500 that will never succeed becomes a lasting error."""
    text = str(error)
    if isinstance(error, KubeUnavailable) and any(phrase in text for phrase in _PERMANENT_REFUSALS):
        return KubeError(text, status=error.status, reason=error.reason)
    return error


def _decode(what: str, body: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise error_of_no_answer(what, error) from error
    if not isinstance(answer, dict):
        raise KubeUnavailable(f"{what}: expected an object, got {type(answer).__name__}")
    return answer
