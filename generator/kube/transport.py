"""Sends one request to the API server, or opens one stream, over the official client's connections.

Bodies stay bytes: the client's own models cost much time and memory, and drop unknown fields. This
module retries only a 401: it reads the credentials again and repeats the request once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from threading import Lock
from types import TracebackType
from typing import Any, Final, Protocol, Self
from urllib.parse import urlencode

from kubernetes.client.api_client import ApiClient
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError
from urllib3.response import BaseHTTPResponse

from generator.kube.credentials import LoadConfiguration
from topology.model.errors import ConfigError, KubeUnavailable
from topology.model.kube_errors import error_of_no_answer, error_of_status

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
"""Server-side apply; JSON is YAML."""
MERGE: Final = "application/merge-patch+json"
MAX_ANSWER_BYTES: Final = 256 << 20  # a page of 500 objects of half a MiB
MAX_LINE_BYTES: Final = 8 << 20  # etcd takes objects of 1.5 MiB, and escaping makes them larger
CONNECT_TIMEOUT_S: Final = 10.0
_READ_BYTES: Final = 64 << 10
_UNAUTHORIZED: Final = 401
_OK: Final = range(200, 300)
_TOO_LARGE: Final = f"answered more than {MAX_ANSWER_BYTES} bytes"


@dataclass(frozen=True, slots=True)
class KubeRequest:
    """A request to the API server."""

    method: str
    path: str
    """The path from the root; the names in it are names of objects, so nothing needs escaping."""
    query: tuple[tuple[str, str], ...] = ()
    body: object = None
    """Sent as JSON; None sends no body."""
    content_type: str = JSON

    def __str__(self) -> str:
        """Return the request for errors and logs: method and path, without the query."""
        return f"{self.method} {self.path}"


class LineStream(Protocol):
    """The lines of an answer as they arrive. Leave the context to end the stream early."""

    def __enter__(self) -> Self:
        """Return itself."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Yield each complete line without its line end; drop an incomplete last line.

        Raises:
            KubeUnavailable: the connection broke, was silent for too long, or is malformed.
        """
        ...

    def cancel(self) -> None:
        """End the iteration from another thread; has no effect after the end."""
        ...


class Transport(Protocol):
    """Sends requests to the API server."""

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        """Send a request and return the body of the answer.

        Args:
            request: the request.
            timeout_s: the longest wait without a byte; a connection that falls silent after its
                first bytes takes twice as long.

        Raises:
            KubeError: the server refused the request, or did not answer.
        """
        ...

    def open_stream(self, request: KubeRequest, *, idle_timeout_s: float) -> LineStream:
        """Send a request and return the lines of an answer that stays open, such as a watch.

        Args:
            request: the request.
            idle_timeout_s: the longest silence of a healthy connection.

        Raises:
            KubeError: the server refused the request, or did not answer.
        """
        ...


OnAnswer = Callable[[int], None]
"""Takes the HTTP status of each answer, 0 if no answer came; any thread may call it."""


def ignore_answer(_status: int) -> None:
    """Do nothing with the status of an answer."""


class KubeTransport:
    """Sends requests to the API server of the credentials; several threads may use it at once."""

    def __init__(self, load: LoadConfiguration, on_answer: OnAnswer = ignore_answer) -> None:
        """Read the credentials; no connection is made yet.

        Args:
            load: the credentials.
            on_answer: records the status of each answer.

        Raises:
            ConfigError: the credentials cannot be loaded.
        """
        self._load = load
        self._on_answer = on_answer
        self._lock = Lock()
        self._client = ApiClient(load())
        self._agent = f"toponaut/{version('toponaut')}"

    def ask(self, request: KubeRequest, *, timeout_s: float) -> bytes:
        """Return the body, as `Transport` describes."""
        try:
            response = self._send(request, (min(timeout_s, CONNECT_TIMEOUT_S), timeout_s))
            body: bytes = response.read(MAX_ANSWER_BYTES + 1, decode_content=True)
            if len(body) > MAX_ANSWER_BYTES:
                response.close()
                raise KubeUnavailable(f"{request}: {_TOO_LARGE}")
            response.release_conn()
        except NO_ANSWER_ERRORS as error:
            raise error_of_no_answer(str(request), error) from error
        _raise_refusal(request, response, body)
        return body

    def open_stream(self, request: KubeRequest, *, idle_timeout_s: float) -> KubeLineStream:
        """Return the lines, as `Transport` describes."""
        try:
            response = self._send(request, (CONNECT_TIMEOUT_S, idle_timeout_s))
            if response.status not in _OK:
                with closing(response):  # the rest of a long refusal would hold the connection
                    body = response.read(_READ_BYTES, decode_content=True)
                _raise_refusal(request, response, body)
        except NO_ANSWER_ERRORS as error:
            raise error_of_no_answer(str(request), error) from error
        return KubeLineStream(str(request), response)

    def close(self) -> None:
        """Close the idle connections."""
        self._client.close()
        self._client.rest_client.pool_manager.clear()  # the library only closes its threads

    def _send(self, request: KubeRequest, timeouts_s: tuple[float, float]) -> BaseHTTPResponse:
        client = self._client
        response = self._send_by(client, request, timeouts_s)
        if response.status != _UNAUTHORIZED:
            return response
        fresh = self._renew(client)
        if fresh is client:
            return response
        response.close()
        return self._send_by(fresh, request, timeouts_s)

    def _send_by(
        self, client: ApiClient, request: KubeRequest, timeouts_s: tuple[float, float]
    ) -> BaseHTTPResponse:
        """Send a request once and return the answer, with its body unread."""
        headers = {"User-Agent": self._agent, "Accept": JSON, "Content-Type": request.content_type}
        client.update_params_for_auth(
            headers, [], ["BearerToken"], request.path, request.method, request.body
        )
        headers = {key: value.strip() for key, value in headers.items()}
        query = f"?{urlencode(request.query)}" if request.query else ""
        is_json = request.content_type in (JSON, MERGE) or request.body is None
        # The client encodes JSON itself, and passes bodies of other types unchanged.
        body = request.body if is_json else json.dumps(request.body).encode()
        status = 0
        try:
            answer = client.rest_client.request(
                request.method,
                f"{client.configuration.host}{request.path}{query}",
                headers=headers,
                body=body,
                _request_timeout=timeouts_s,
            )
            response: BaseHTTPResponse = answer.response
            status = response.status
        finally:
            self._on_answer(status)
        return response

    def _renew(self, refused: ApiClient) -> ApiClient:
        """Return a client with new credentials, or the same client if loading them fails.

        A token may be replaced before it expires, and a certificate may change in its file.
        """
        with self._lock:
            if self._client is not refused:
                return self._client  # another thread has already renewed it
            try:
                self._client = ApiClient(self._load())
            except ConfigError:
                return refused
            return self._client


class KubeLineStream:
    """The lines of one answer of the official client."""

    def __init__(self, what: str, response: BaseHTTPResponse) -> None:
        """Take over an answer with an unread body; `what` is the request, for errors."""
        self._what = what
        self._response = response

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection, because the unread rest of the answer prevents its reuse."""
        self._response.close()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the lines, as `LineStream` describes."""
        rest = b""
        try:
            for piece in self._response.stream(_READ_BYTES, decode_content=True):
                *lines, rest = (rest + piece).split(b"\n")
                yield from lines
                if len(rest) > MAX_LINE_BYTES:
                    raise KubeUnavailable(f"{self._what}: a line of more than {MAX_LINE_BYTES} B")
        except NO_ANSWER_ERRORS as error:
            raise error_of_no_answer(self._what, error) from error

    def cancel(self) -> None:
        """End the iteration, as `LineStream` describes."""
        try:
            self._response.shutdown()
        except (OSError, RuntimeError, ValueError):
            return  # the stream has already ended


def _raise_refusal(request: KubeRequest, response: BaseHTTPResponse, body: bytes) -> None:
    """Raise the error if the answer is a refusal."""
    if response.status not in _OK:
        retry_after = response.headers.get("Retry-After")
        raise error_of_status(str(request), response.status, body, retry_after=retry_after)


def decode_object(what: str, body: bytes) -> dict[str, Any]:
    """Return the object of an answer.

    Raises:
        KubeUnavailable: the body is not an object; probably a proxy before the server answered.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise error_of_no_answer(what, error) from error
    if not isinstance(answer, dict):
        raise KubeUnavailable(f"{what}: expected an object, got {type(answer).__name__}")
    return answer


NO_ANSWER_ERRORS: Final = (HTTPError, ApiException, ConfigException, OSError, ValueError)
"""Errors of connections, keys, tokens and TLS."""
