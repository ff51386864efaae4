"""Authenticates every call except health checks, before its request is read.

The check runs in the thread of the call, never in the thread that accepts calls, because it may
have to wait for the API server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol
from urllib.parse import unquote

import grpc

from generator.rpc.status_errors import CallFailure, FailureKind, encode_status
from runtime.listener import find_peer

log = logging.getLogger(__name__)

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


class Authentication(grpc.ServerInterceptor):
    """Lets a call through if its token passes a check."""

    def __init__(self, check: TokenCheck, *, on_refused: Callable[[float], None]) -> None:
        """Store the check.

        Args:
            check: of tokens.
            on_refused: called with the duration of a refused call in seconds.
        """
        self._check = check
        self._on_refused = on_refused

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the method with the check before it; the name is gRPC's."""
        method = continuation(handler_call_details)
        if method is None or handler_call_details.method.startswith(HEALTH_PREFIX):
            return method
        return self._wrap_method(method)

    def _wrap_method(
        self, method: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        wrap, behavior = _find_method_kind(method)

        def checked(request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - gRPC's
            started = time.monotonic()
            try:
                caller = self._authenticate(context)
            except Exception:  # details go to the log only, and the call is refused
                log.exception("call not authenticated")
                caller = CallFailure(FailureKind.INTERNAL, "internal error; see the server's log")
            if isinstance(caller, CallFailure):
                self._on_refused(time.monotonic() - started)
                context.abort_with_status(encode_status(caller))
            with set_caller(caller):
                return behavior(request, context)

        if hasattr(behavior, "experimental_thread_pool"):
            checked.experimental_thread_pool = behavior.experimental_thread_pool  # type: ignore[attr-defined]  # the threads of streams

        handler: grpc.RpcMethodHandler[Any, Any] = wrap(
            checked, method.request_deserializer, method.response_serializer
        )
        return handler

    def _authenticate(self, context: grpc.ServicerContext) -> str | CallFailure:
        values = [value for key, value in context.invocation_metadata() if key == AUTHORIZATION]
        token = values[0][len(_SCHEME) :].strip() if len(values) == 1 else ""
        is_bearer = bool(token) and str(values[0])[: len(_SCHEME)].lower() == _SCHEME
        if not is_bearer or len(token) > MAX_TOKEN_CHARS:
            problem = "expected one bearer token in the metadata: authorization: Bearer TOKEN"
            return CallFailure(FailureKind.UNAUTHENTICATED, problem)
        return self._check.authenticate(
            str(token), peer=identify_caller(context, ""), timeout_s=context.time_remaining()
        )


def _find_method_kind(method: grpc.RpcMethodHandler[Any, Any]) -> tuple[Any, Any]:
    """Return the constructor for a handler of the method's kind, and the method's behavior."""
    forms = {
        (False, False): (grpc.unary_unary_rpc_method_handler, method.unary_unary),
        (False, True): (grpc.unary_stream_rpc_method_handler, method.unary_stream),
        (True, False): (grpc.stream_unary_rpc_method_handler, method.stream_unary),
        (True, True): (grpc.stream_stream_rpc_method_handler, method.stream_stream),
    }
    return forms[method.request_streaming, method.response_streaming]


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


def identify_caller(context: grpc.ServicerContext, name: str) -> str:
    """Return whose share a call takes: the caller's name, or else where its connection is from.

    Args:
        context: of the call.
        name: of the caller, empty if callers are not authenticated.
    """
    return name or find_peer(*_parse_peer(context.peer()))


def _parse_peer(peer: str) -> tuple[str, int]:
    """Return host and port of a peer as gRPC writes it: `ipv4:1.2.3.4:5` or `ipv6:%5B::1%5D:5`."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0
