"""Who a caller is: the bearer token of a call, the proven name, and whose share the call takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol
from urllib.parse import unquote

import grpc

from generator.rpc.status_errors import CallFailure, FailureKind, build_abort
from runtime.listener import find_peer

HEALTH_PREFIX: Final = "/grpc.health.v1.Health/"
"""Open without a token: it reveals less than a connection does."""
AUTHORIZATION: Final = "authorization"
_SCHEME: Final = "bearer "
MAX_TOKEN_CHARS: Final = 16_384


class TokenCheck(Protocol):
    """Checks bearer tokens."""

    def authenticate(self, token: str, *, peer: str, timeout_s: float) -> str | CallFailure:
        """Return the user of the token that a peer sent, or why the call is refused.

        May take a while.
        """
        ...


def parse_bearer(header: str) -> str:
    """Return the token of an `Authorization` header; empty if it is of another scheme."""
    is_bearer = header[: len(_SCHEME)].lower() == _SCHEME
    return header[len(_SCHEME) :].strip() if is_bearer else ""


def read_token(context: grpc.ServicerContext) -> str:
    """Return the bearer token of a call.

    Raises:
        CallAbortedError: there is none, or several.
    """
    values = [value for key, value in context.invocation_metadata() if key == AUTHORIZATION]
    token = parse_bearer(str(values[0])) if len(values) == 1 else ""
    if not 0 < len(token) <= MAX_TOKEN_CHARS:
        problem = "expected one bearer token in the metadata: authorization: Bearer TOKEN"
        raise build_abort(FailureKind.UNAUTHENTICATED, problem)
    return token


_CALLER: ContextVar[str] = ContextVar("proven caller", default="")
_MAX_CHARS: Final = 253


@contextmanager
def set_caller(name: str) -> Iterator[None]:
    """Set the name of the caller for the body of the context."""
    before = _CALLER.set(name)
    try:
        yield
    finally:
        _CALLER.reset(before)


def get_caller(context: grpc.ServicerContext) -> str:
    """Return the caller's name; empty if callers are not authenticated.

    For a client certificate, it is the first alternative name, or else the subject's common name.
    """
    proven = _CALLER.get()
    if proven:
        return proven
    names = context.peer_identities() or ()
    return next((name.decode("utf-8", "replace") for name in names), "")[:_MAX_CHARS]


def identify_caller(context: grpc.ServicerContext) -> str:
    """Return the caller whose share a call takes: its name, or else the peer's address."""
    return get_caller(context) or find_origin(context)


def find_origin(context: grpc.ServicerContext) -> str:
    """Return where the connection of a call is from."""
    return find_peer(*_parse_peer(context.peer()))


def _parse_peer(peer: str) -> tuple[str, int]:
    """Return host and port of a peer as gRPC writes it: `ipv4:1.2.3.4:5` or `ipv6:%5B::1%5D:5`."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0
