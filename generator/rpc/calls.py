"""What every call goes through: a deadline, its first message, room for streams, our own errors.

gRPC's synchronous server gives each call a thread before its request is there, and keeps it as
long as the caller likes; a stream keeps one to its end. So requests are read here, as streams of
octets: who stalls is cut, what is no message is refused without a traceback, and streams have
threads of their own, of which there are so many and no more.
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
from generator.rpc.status_errors import CallFailure, FailureKind, CallAbortedError, encode_status
from topology.model.errors import InvariantError

log = logging.getLogger(__name__)

OWN_SERVICES_PREFIX: Final = "/toponaut.v1."
_SPARE_THREADS: Final = 8
"""They refuse streams while all others are busy."""
_CALL_BYTES: Final = 4096
"""What gRPC itself keeps of a call, about."""
_INTERNAL_FAILURE: Final = CallFailure(
    FailureKind.INTERNAL, "internal error; the server's log tells more"
)
_UNREADABLE_FAILURE: Final = CallFailure(
    FailureKind.INVALID_REQUEST, "what was sent is no such message"
)
RpcHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
CallDetails: TypeAlias = grpc.HandlerCallDetails


class _CallMethod(NamedTuple):
    """How a method is called."""

    name: str
    """gRPC's, with that of its service."""
    behavior: Callable[[Any, Any], Any]
    parse: Callable[[bytes], Any]
    serialize: Callable[[Any], bytes]
    is_own_service: bool
    is_client_streaming: bool


class CallInterceptor(grpc.ServerInterceptor):
    """Stands before every method; the innermost interceptor."""

    def __init__(self, on_refused: Callable[[str], None], stalling: StallWatch) -> None:
        """Start the threads of streams as they are needed.

        Args:
            on_refused: takes the names of methods of calls that came without a deadline, or with
                octets that are no message.
            stalling: cuts who stalls.
        """
        self._on_refused = on_refused
        self._stall_watch = stalling
        self._pool = ThreadPoolExecutor(
            MAX_STREAMS + MAX_OTHER_STREAMS + _SPARE_THREADS, thread_name_prefix="rpc-stream"
        )
        self._lock = Lock()
        self._unread_bytes = 0
        self._num_streams = {True: 0, False: 0}

    def stop(self) -> None:
        """Begin no further stream."""
        self._pool.shutdown(wait=False)

    def intercept_service(
        self,
        continuation: Callable[[CallDetails], RpcHandler | None],
        handler_call_details: CallDetails,
    ) -> RpcHandler | None:
        """Return the method in our form; gRPC's name."""
        found = continuation(handler_call_details)
        if found is None:
            return None
        form = _build_call_method(handler_call_details.method, found)
        if not found.request_streaming and not found.response_streaming:
            return grpc.stream_unary_rpc_method_handler(partial(self._answer_unary, form))
        streamed = partial(self._admit_stream, form)
        streamed.experimental_thread_pool = self._pool  # type: ignore[attr-defined]  # as gRPC's own health service has it
        return grpc.stream_stream_rpc_method_handler(streamed)

    def _answer_unary(
        self, form: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> bytes:
        """Answer a call of one message by another."""
        answer = self._receive_request(form, requests, context)
        if not isinstance(answer, CallFailure):
            answer = _call_unary(form, answer, context)
        if not isinstance(answer, CallFailure):
            answer = self._serialize_if_allowed(answer, context)
        if isinstance(answer, CallFailure):
            context.abort_with_status(encode_status(answer))
        return answer

    def _receive_request(
        self, form: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Any | CallFailure:  # noqa: ANN401 - any message
        """Return the message of a call, or why it gets no answer."""
        if form.is_own_service and context.time_remaining() > MAX_DEADLINE_S:
            self._on_refused(form.name)
            problem = "set a deadline of an hour at most: it is the time that the search may take"
            return CallFailure(FailureKind.DEADLINE_MISSING, problem)
        with self._stall_watch.watch(context):
            raw = next(requests, None)
        if raw is None:
            return CallFailure(FailureKind.INVALID_REQUEST, "expected a message")
        try:
            return form.parse(raw)
        except DecodeError:
            self._on_refused(form.name)
            return _UNREADABLE_FAILURE

    def _serialize_if_allowed(
        self, answer: bytes, context: grpc.ServicerContext
    ) -> bytes | CallFailure:
        """Return an answer that the caller will take soon, or there is room to wait for that."""
        if len(answer) > MAX_MESSAGE_BYTES:
            return _build_size_failure(answer)
        num_bytes = len(answer) + _CALL_BYTES
        with self._lock:
            self._unread_bytes += num_bytes
            is_full = self._unread_bytes > MAX_UNREAD_BYTES
        self._stall_watch.begin(context)

        def taken() -> None:
            self._stall_watch.end(context)
            with self._lock:
                self._unread_bytes -= num_bytes

        if not context.add_callback(taken):
            taken()
        if is_full:
            return CallFailure(FailureKind.OVERLOADED, "too many answers wait for their callers")
        return answer

    def _admit_stream(
        self, form: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Yield the answers of a stream, where there is room for one more."""
        most = MAX_STREAMS if form.is_own_service else MAX_OTHER_STREAMS
        with self._lock:
            has_room = self._num_streams[form.is_own_service] < most
            self._num_streams[form.is_own_service] += has_room
        if not has_room:
            failure = CallFailure(FailureKind.OVERLOADED, f"{most} streams are open already")
            context.abort_with_status(encode_status(failure))
        try:
            yield from self._answer_stream(form, requests, context)
        finally:
            with self._lock:
                self._num_streams[form.is_own_service] -= 1

    def _answer_stream(
        self, form: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        first = self._receive_request(form, requests, context)
        failure = first if isinstance(first, CallFailure) else None
        if failure is None:
            argument = (
                _RequestIterator(first, requests, form.parse) if form.is_client_streaming else first
            )
            for answer in _call_stream(form, argument, context):
                if isinstance(answer, CallFailure):
                    failure = answer
                    break
                with self._stall_watch.watch(context):
                    yield answer
        if failure is not None:
            context.abort_with_status(encode_status(failure))


class _RequestIterator(Iterator[object]):
    """The messages of a caller, of which the first is there already."""

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


def _build_call_method(name: str, method: RpcHandler) -> _CallMethod:
    behavior = (
        method.unary_unary or method.unary_stream or method.stream_unary or method.stream_stream
    )
    parse, serialize = method.request_deserializer, method.response_serializer
    if behavior is None or parse is None or serialize is None:
        raise InvariantError("a method without behavior or messages")
    return _CallMethod(
        name,
        cast("Callable[[Any, Any], Any]", behavior),
        parse,
        serialize,
        is_own_service=name.startswith(OWN_SERVICES_PREFIX),
        is_client_streaming=method.request_streaming,
    )


def _call_unary(
    form: _CallMethod, request: object, context: grpc.ServicerContext
) -> bytes | CallFailure:
    """Return what a method answers; what goes wrong inside is ours to read, not the caller's."""
    try:
        return form.serialize(form.behavior(request, context))
    except CallAbortedError as error:
        return error.failure
    except Exception:  # see above
        log.exception("call failed", extra={"method": form.name})
        return _INTERNAL_FAILURE


def _call_stream(
    form: _CallMethod, argument: object, context: grpc.ServicerContext
) -> Iterator[bytes | CallFailure]:
    """Yield what a method answers, at the end perhaps why it answers no more."""
    try:
        answers: Iterable[object] = form.behavior(argument, context)
        for answer in answers:
            raw = form.serialize(answer)
            yield _build_size_failure(raw) if len(raw) > MAX_MESSAGE_BYTES else raw
    except grpc.RpcError:  # the caller is gone
        raise
    except CallAbortedError as error:
        yield error.failure
    except DecodeError:
        yield _UNREADABLE_FAILURE
    except Exception:  # see above
        log.exception("call failed", extra={"method": form.name})
        yield _INTERNAL_FAILURE


def _build_size_failure(answer: bytes) -> CallFailure:
    problem = f"the answer has {len(answer)} bytes, more than {MAX_MESSAGE_BYTES}"
    return CallFailure(FailureKind.ANSWER_TOO_LARGE, problem)
