"""Who may call: every method asks, but for health, before it looks at the request.

The check runs in the thread of its call, never in that which takes calls: it may have to ask the
API server.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

import grpc

from generator.rpc.status_errors import CallFailure, FailureKind, encode_status

log = logging.getLogger(__name__)

HEALTH_PREFIX: Final = "/grpc.health.v1.Health/"
"""Open to everybody: it says less than a connection does."""
AUTHORIZATION: Final = "authorization"
_SCHEME: Final = "bearer "
MAX_TOKEN_CHARS: Final = 16_384


class TokenCheck(Protocol):
    """Judges bearer tokens."""

    def authenticate(self, token: str, *, timeout_s: float) -> str | CallFailure:
        """Return who bears the token, or why they may not call; may take a while."""
        ...


class Authentication(grpc.ServerInterceptor):
    """Lets those calls through whose token passes a check."""

    def __init__(self, check: TokenCheck, *, on_refused: Callable[[float], None]) -> None:
        """Keep the check.

        Args:
            check: of tokens.
            on_refused: takes the seconds that a refused call took.
        """
        self._check = check
        self._on_refused = on_refused

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the method with the check before it; gRPC's name."""
        method = continuation(handler_call_details)
        if method is None or handler_call_details.method.startswith(HEALTH_PREFIX):
            return method
        return self._wrap_method(method)

    def _wrap_method(
        self, method: grpc.RpcMethodHandler[Any, Any]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        wrap, inner = _find_method_kind(method)

        def checked(request: Any, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - gRPC's
            started = time.monotonic()
            try:
                judged = self._authenticate(context)
            except Exception:  # what went wrong is ours to read; nobody gets in by it
                log.exception("call not judged")
                judged = CallFailure(
                    FailureKind.INTERNAL, "internal error; the server's log tells more"
                )
            if isinstance(judged, CallFailure):
                self._on_refused(time.monotonic() - started)
                context.abort_with_status(encode_status(judged))
            with set_caller(judged):
                return inner(request, context)

        if hasattr(inner, "experimental_thread_pool"):
            checked.experimental_thread_pool = inner.experimental_thread_pool  # type: ignore[attr-defined]  # the threads of streams

        made: grpc.RpcMethodHandler[Any, Any] = wrap(
            checked, method.request_deserializer, method.response_serializer
        )
        return made

    def _authenticate(self, context: grpc.ServicerContext) -> str | CallFailure:
        found = [value for key, value in context.invocation_metadata() if key == AUTHORIZATION]
        token = found[0][len(_SCHEME) :].strip() if len(found) == 1 else ""
        is_bearer = bool(token) and str(found[0])[: len(_SCHEME)].lower() == _SCHEME
        if not is_bearer or len(token) > MAX_TOKEN_CHARS:
            problem = "expected one bearer token in the metadata: authorization: Bearer TOKEN"
            return CallFailure(FailureKind.UNAUTHENTICATED, problem)
        return self._check.authenticate(str(token), timeout_s=context.time_remaining())


def _find_method_kind(method: grpc.RpcMethodHandler[Any, Any]) -> tuple[Any, Any]:
    """Return what makes a method of its form, and its behavior."""
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
    """Let what runs within know who called."""
    before = _CALLER.set(name)
    try:
        yield
    finally:
        _CALLER.reset(before)


def get_caller(context: grpc.ServicerContext) -> str:
    """Return the caller's name; empty where callers are not asked who they are.

    Of a certificate it is the first of its alternative names, else the common name of its subject.
    """
    proven = _CALLER.get()
    if proven:
        return proven
    names = context.peer_identities() or ()
    return next((name.decode("utf-8", "replace") for name in names), "")[:_MAX_CHARS]
