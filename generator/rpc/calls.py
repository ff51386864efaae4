"""The interceptor of every call: deadline, first message, threads of streams, translated errors.

gRPC's synchronous server assigns a thread to each call before its request has arrived, and a client
can hold that thread as long as it likes; a stream holds a thread until it ends. So this module
reads requests itself, as streams of bytes: stalled calls are cancelled, malformed messages are
refused without a traceback, and streams run in a separate, bounded pool of threads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias, cast

import grpc
from google.protobuf.message import DecodeError

from generator.rpc.limits import (
    MAX_DEADLINE_S,
    MAX_MESSAGE_BYTES,
    MAX_OTHER_STREAMS,
    MAX_STREAMS,
    MAX_UNREAD_BYTES,
)
from generator.rpc.stalled_calls import StallWatch
from generator.rpc.status_errors import CallAbortedError, CallFailure, FailureKind, encode_status
from topology.model.errors import InvariantError

log = logging.getLogger(__name__)

OWN_SERVICES_PREFIX: Final = "/toponaut.v1."
_SPARE_THREADS: Final = 8
"""Threads that refuse streams while all others are busy."""
_CALL_BYTES: Final = 4096
"""Approximate memory that gRPC itself uses per call."""
_INTERNAL_FAILURE: Final = CallFailure(FailureKind.INTERNAL, "internal error; see the server's log")
_UNREADABLE_FAILURE: Final = CallFailure(
    FailureKind.INVALID_REQUEST, "the bytes sent are not a message of this method"
)
RpcHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
CallDetails: TypeAlias = grpc.HandlerCallDetails


class _CallMethod(NamedTuple):
    """A method of a service, and how to call it."""

    name: str
    """Full name in gRPC: `/SERVICE/METHOD`."""
    behavior: Callable[[Any, Any], Any]
    parse: Callable[[bytes], Any]
    serialize: Callable[[Any], bytes]
    is_own_service: bool
    is_client_streaming: bool


class CallInterceptor(grpc.ServerInterceptor):
    """Wraps every method; the innermost interceptor."""

    def __init__(self, on_refused: Callable[[str], None], stall_watch: StallWatch) -> None:
        """Start no thread yet; the pool of streams starts its threads on demand.

        Args:
            on_refused: called with the method name of a call without a deadline, or with a
                malformed message.
            stall_watch: cancels calls whose client stalls.
        """
        self._on_refused = on_refused
        self._stall_watch = stall_watch
        self._pool = ThreadPoolExecutor(
            MAX_STREAMS + MAX_OTHER_STREAMS + _SPARE_THREADS, thread_name_prefix="rpc-stream"
        )
        self._lock = Lock()
        self._unread_bytes = 0
        self._num_streams = {True: 0, False: 0}

    def stop(self) -> None:
        """Accept no further stream."""
        self._pool.shutdown(wait=False)

    def intercept_service(
        self,
        continuation: Callable[[CallDetails], RpcHandler | None],
        handler_call_details: CallDetails,
    ) -> RpcHandler | None:
        """Return the wrapped method; the name is gRPC's."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        method = _build_call_method(handler_call_details.method, handler)
        if not handler.request_streaming and not handler.response_streaming:
            return grpc.stream_unary_rpc_method_handler(partial(self._answer_unary, method))
        handle_stream = partial(self._admit_stream, method)
        handle_stream.experimental_thread_pool = self._pool  # type: ignore[attr-defined]  # as gRPC's own health service has it
        return grpc.stream_stream_rpc_method_handler(handle_stream)

    def _answer_unary(
        self, method: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> bytes:
        """Answer a call of one request and one response."""
        answer = self._receive_request(method, requests, context)
        if not isinstance(answer, CallFailure):
            answer = _call_unary(method, answer, context)
        if not isinstance(answer, CallFailure):
            answer = self._serialize_if_allowed(answer, context)
        if isinstance(answer, CallFailure):
            context.abort_with_status(encode_status(answer))
        return answer

    def _receive_request(
        self, method: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Any | CallFailure:  # noqa: ANN401 - any message
        """Return the request message of a call, or why the call fails."""
        if method.is_own_service and context.time_remaining() > MAX_DEADLINE_S:
            self._on_refused(method.name)
            problem = "set a deadline of an hour at most: it limits the time of the search"
            return CallFailure(FailureKind.DEADLINE_MISSING, problem)
        with self._stall_watch.watch(context):
            message = next(requests, None)
        if message is None:
            return CallFailure(FailureKind.INVALID_REQUEST, "expected a message")
        try:
            return method.parse(message)
        except DecodeError:
            self._on_refused(method.name)
            return _UNREADABLE_FAILURE

    def _serialize_if_allowed(
        self, answer: bytes, context: grpc.ServicerContext
    ) -> bytes | CallFailure:
        """Return an answer if there is room to hold it until the client reads it."""
        if len(answer) > MAX_MESSAGE_BYTES:
            return _build_size_failure(answer)
        num_bytes = len(answer) + _CALL_BYTES
        with self._lock:
            self._unread_bytes += num_bytes
            is_full = self._unread_bytes > MAX_UNREAD_BYTES
        self._stall_watch.begin(context)

        def on_done() -> None:
            self._stall_watch.end(context)
            with self._lock:
                self._unread_bytes -= num_bytes

        if not context.add_callback(on_done):
            on_done()
        if is_full:
            return CallFailure(
                FailureKind.OVERLOADED, "too many answers wait to be read by clients"
            )
        return answer

    def _admit_stream(
        self, method: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Yield the answers of a stream if there is room for one more stream."""
        limit = MAX_STREAMS if method.is_own_service else MAX_OTHER_STREAMS
        with self._lock:
            has_room = self._num_streams[method.is_own_service] < limit
            self._num_streams[method.is_own_service] += has_room
        if not has_room:
            failure = CallFailure(FailureKind.OVERLOADED, f"{limit} streams are open already")
            context.abort_with_status(encode_status(failure))
        try:
            yield from self._answer_stream(method, requests, context)
        finally:
            with self._lock:
                self._num_streams[method.is_own_service] -= 1

    def _answer_stream(
        self, method: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        first = self._receive_request(method, requests, context)
        failure = first if isinstance(first, CallFailure) else None
        if failure is None:
            request = (
                _RequestIterator(first, requests, method.parse)
                if method.is_client_streaming
                else first
            )
            for answer in _call_stream(method, request, context):
                if isinstance(answer, CallFailure):
                    failure = answer
                    break
                with self._stall_watch.watch(context):
                    yield answer
        if failure is not None:
            context.abort_with_status(encode_status(failure))


class _RequestIterator(Iterator[object]):
    """The request messages of a client; the first is read already."""

    def __init__(
        self, first: object, rest: Iterator[bytes], parse: Callable[[bytes], object]
    ) -> None:
        self._first: object | None = first
        self._rest = rest
        self._parse = parse

    def __next__(self) -> object:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return self._parse(next(self._rest))


def _build_call_method(name: str, handler: RpcHandler) -> _CallMethod:
    behavior = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    parse, serialize = handler.request_deserializer, handler.response_serializer
    if behavior is None or parse is None or serialize is None:
        raise InvariantError("a method without behavior or messages")
    return _CallMethod(
        name,
        cast("Callable[[Any, Any], Any]", behavior),
        parse,
        serialize,
        is_own_service=name.startswith(OWN_SERVICES_PREFIX),
        is_client_streaming=handler.request_streaming,
    )


def _call_unary(
    method: _CallMethod, request: object, context: grpc.ServicerContext
) -> bytes | CallFailure:
    """Return the answer of a method; log an unexpected exception and hide it from the client."""
    try:
        return method.serialize(method.behavior(request, context))
    except CallAbortedError as error:
        return error.failure
    except Exception:
        log.exception("call failed", extra={"method": method.name})
        return _INTERNAL_FAILURE


def _call_stream(
    method: _CallMethod, request: object, context: grpc.ServicerContext
) -> Iterator[bytes | CallFailure]:
    """Yield the answers of a method, and a failure at the end if there is one."""
    try:
        answers: Iterable[object] = method.behavior(request, context)
        for answer in answers:
            serialized = method.serialize(answer)
            yield (
                _build_size_failure(serialized)
                if len(serialized) > MAX_MESSAGE_BYTES
                else serialized
            )
    except grpc.RpcError:  # the client has disconnected
        raise
    except CallAbortedError as error:
        yield error.failure
    except DecodeError:
        yield _UNREADABLE_FAILURE
    except Exception:
        log.exception("call failed", extra={"method": method.name})
        yield _INTERNAL_FAILURE


def _build_size_failure(answer: bytes) -> CallFailure:
    problem = f"the answer has {len(answer)} bytes, more than {MAX_MESSAGE_BYTES}"
    return CallFailure(FailureKind.ANSWER_TOO_LARGE, problem)
