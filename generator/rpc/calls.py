"""The interceptor of every call: caller, deadline, shares, sizes, stalls, translated errors.

gRPC's synchronous server assigns a thread to each call before its request has arrived, and a client
can hold that thread as long as it likes; a stream holds a thread until it ends. So this module
reads requests itself, as streams of bytes: stalled calls are cancelled, malformed messages are
refused without a traceback, and streams run in a separate, bounded pool of threads. A call that has
a thread is not answered at once: it waits until its caller has a free slot.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import chain
from threading import Event, Lock, Thread
from typing import Any, Final, NamedTuple, TypeAlias, cast

import grpc
from google.protobuf.message import DecodeError

from generator.placement.budget import SearchCancelledError
from generator.rpc.auth.authentication import (
    HEALTH_PREFIX,
    TokenCheck,
    find_origin,
    get_caller,
    read_token,
    set_caller,
)
from generator.rpc.limits import (
    CROWDED_STALL_S,
    DEADLINE_ROUNDING_S,
    MAX_CALLER_OTHER_STREAMS,
    MAX_CALLER_STREAMS,
    MAX_CALLER_THREADS,
    MAX_CALLER_WAITING,
    MAX_DEADLINE_S,
    MAX_MESSAGE_BYTES,
    MAX_OTHER_STREAMS,
    MAX_STREAMS,
    MAX_UNREAD_BYTES,
    MAX_WAITING,
    NUM_THREADS,
    STALL_S,
)
from generator.rpc.messages.requests import check_fields
from generator.rpc.status_errors import (
    CallAbortedError,
    CallFailure,
    FailureKind,
    build_abort,
    encode_status,
)
from runtime.fair_share import FairShare
from topology.model.errors import InvariantError

log = logging.getLogger(__name__)

OWN_SERVICES_PREFIX: Final = "/toponaut.v1."
_SPARE_THREADS: Final = 8
"""Threads that refuse streams while all others are busy."""
_MAX_REMAINING_S: Final = MAX_DEADLINE_S + DEADLINE_ROUNDING_S
_CALL_BYTES: Final = 4096
"""Approximate memory that gRPC itself uses per call."""
_INTERNAL_FAILURE: Final = CallFailure(FailureKind.INTERNAL, "internal error; see the server's log")
_UNREADABLE_FAILURE: Final = CallFailure(
    FailureKind.INVALID_REQUEST, "the bytes sent are not a message of this method"
)
_CANCELLED_FAILURE: Final = CallFailure(FailureKind.STOPPING, "the call was cancelled")
_STREAMS_FAILURE: Final = CallFailure(
    FailureKind.OVERLOADED,
    f"{MAX_CALLER_STREAMS} streams of this caller, or {MAX_STREAMS} in all, are open already",
)
_UNREAD_FAILURE: Final = CallFailure(
    FailureKind.OVERLOADED, "too many answers wait to be read by clients"
)
RpcHandler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
CallDetails: TypeAlias = grpc.HandlerCallDetails


class _Caller(NamedTuple):
    """Who calls."""

    name: str
    """Proven by a token or a certificate; empty if callers are not authenticated."""
    share: str
    """The caller whose share the call takes."""


class _CallMethod(NamedTuple):
    """A method of a service, and how to call it."""

    name: str
    """Full name in gRPC: `/SERVICE/METHOD`."""
    behavior: Callable[[Any, Any], Any]
    parse: Callable[[bytes], Any]
    serialize: Callable[[Any], bytes]
    is_own_service: bool
    is_client_streaming: bool


def build_call_slots() -> FairShare:
    """Return the slots of calls that are answered at the same time."""
    return FairShare(
        NUM_THREADS,
        per_caller=MAX_CALLER_THREADS,
        max_waiting=MAX_WAITING,
        waiting_per_caller=MAX_CALLER_WAITING,
    )


class CallInterceptor(grpc.ServerInterceptor):
    """Wraps every method."""

    def __init__(
        self,
        on_refused: Callable[[float], None],
        call_slots: FairShare | None = None,
        tokens: TokenCheck | None = None,
        stall_watch: StallWatch | None = None,
    ) -> None:
        """Start no thread yet; the pool of streams starts its threads on demand.

        Args:
            on_refused: called with the seconds of a call that is not admitted, or that has a
                malformed message.
            call_slots: slots for calls that are answered at the same time, without streams.
            tokens: checks the token of each call except health checks, which reveal less than a
                connection does. It may wait for the API server, so it runs in the call's thread.
            stall_watch: cancels calls whose client stalls.
        """
        self._on_refused = on_refused
        self._stall_watch = stall_watch or StallWatch()
        self._tokens = tokens
        self._pool = ThreadPoolExecutor(
            MAX_STREAMS + MAX_OTHER_STREAMS + _SPARE_THREADS, thread_name_prefix="rpc-stream"
        )
        self._unread = _UnreadBytes(MAX_UNREAD_BYTES)
        self._calls = call_slots or build_call_slots()
        self._own_streams = FairShare(MAX_STREAMS, per_caller=MAX_CALLER_STREAMS)
        self._other_streams = FairShare(MAX_OTHER_STREAMS, per_caller=MAX_CALLER_OTHER_STREAMS)

    def stop(self) -> None:
        """Accept no further stream, and wait until the threads of streams have ended."""
        self._pool.shutdown()
        self._stall_watch.stop()

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
        handle_stream = partial(self._answer_stream, method)
        handle_stream.experimental_thread_pool = self._pool  # type: ignore[attr-defined]  # as gRPC's own health service has it
        return grpc.stream_stream_rpc_method_handler(handle_stream)

    def _answer_unary(
        self, method: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> bytes:
        """Answer a call of one request and one response."""
        with _abort_on_failure(method, context):
            caller = self._admit(method, context)
            answer = self._answer_in_turn(method, requests, context, caller)
            self._hold_unread(answer, context, caller)
            return answer

    def _answer_in_turn(
        self,
        method: _CallMethod,
        requests: Iterator[bytes],
        context: grpc.ServicerContext,
        caller: _Caller,
    ) -> bytes:
        """Answer a call once its caller has a free slot."""
        stall_s = self._stall_s
        with self._calls.hold(
            caller.share,
            timeout_s=context.time_remaining(),
            is_over=lambda: not context.is_active(),
        ) as has_slot:
            if not has_slot:
                problem = (
                    f"{MAX_CALLER_WAITING} calls of this caller, or {MAX_WAITING} in all, wait"
                )
                raise build_abort(FailureKind.OVERLOADED, problem)
            request = self._receive_request(method, requests, context, stall_s)
            with set_caller(caller.name):
                return _serialize(method, method.behavior(request, context))

    def _hold_unread(self, answer: bytes, context: grpc.ServicerContext, caller: _Caller) -> None:
        """Count an answer until the client has read it."""
        num_bytes = len(answer) + _CALL_BYTES
        if not self._unread.add(caller.share, num_bytes):
            raise CallAbortedError(_UNREAD_FAILURE)
        self._stall_watch.begin(context)

        def on_done() -> None:
            self._stall_watch.end(context)
            self._unread.remove(caller.share, num_bytes)

        if not context.add_callback(on_done):
            on_done()

    def _answer_stream(
        self, method: _CallMethod, requests: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        """Yield the answers of a stream if there is room for one more stream of its caller."""
        with _abort_on_failure(method, context):
            caller = self._admit(method, context)
            streams = self._own_streams if method.is_own_service else self._other_streams
            with streams.hold(caller.share, on_lost=context.cancel) as has_room:
                if not has_room:
                    raise CallAbortedError(_STREAMS_FAILURE)
                for answer in self._iterate_answers(method, requests, context, caller):
                    with (
                        self._stall_watch.watch(context),
                        self._unread.hold(caller.share, len(answer)) as has_bytes,
                    ):
                        if not has_bytes:
                            raise CallAbortedError(_UNREAD_FAILURE)
                        yield answer

    def _iterate_answers(
        self,
        method: _CallMethod,
        requests: Iterator[bytes],
        context: grpc.ServicerContext,
        caller: _Caller,
    ) -> Iterator[bytes]:
        request = self._receive_request(method, requests, context, self._stall_s)
        if method.is_client_streaming:
            request = chain([request], map(method.parse, requests))
        with set_caller(caller.name):
            answers: Iterable[object] = method.behavior(request, context)
        for answer in answers:
            yield _serialize(method, answer)

    def _admit(self, method: _CallMethod, context: grpc.ServicerContext) -> _Caller:
        """Return who calls, before the request is read.

        Raises:
            CallAbortedError: the caller is not authenticated, or has set no deadline.
        """
        started_s = time.monotonic()
        try:
            _check_deadline(method, context)
            name = self._authenticate(method, context)
        except Exception:
            self._on_refused(time.monotonic() - started_s)
            raise
        return _Caller(name, name or find_origin(context))

    def _authenticate(self, method: _CallMethod, context: grpc.ServicerContext) -> str:
        """Return the proven name of the caller; empty if callers are not authenticated."""
        if self._tokens is None or method.name.startswith(HEALTH_PREFIX):
            return get_caller(context)
        verdict = self._tokens.authenticate(
            read_token(context), peer=find_origin(context), timeout_s=context.time_remaining()
        )
        if isinstance(verdict, CallFailure):
            raise CallAbortedError(verdict)
        return verdict

    @property
    def _stall_s(self) -> float:
        """How long a client may take for its request: less if most slots are taken."""
        return CROWDED_STALL_S if self._calls.is_crowded else STALL_S

    def _receive_request(
        self,
        method: _CallMethod,
        requests: Iterator[bytes],
        context: grpc.ServicerContext,
        stall_s: float,
    ) -> Any:  # noqa: ANN401 - any message
        """Return the first message of a call."""
        with self._stall_watch.watch(context, max_s=stall_s):
            raw = next(requests, None)
        if raw is None:
            raise build_abort(FailureKind.INVALID_REQUEST, "expected a message")
        try:
            return method.parse(raw)
        except CallAbortedError:
            self._on_refused(0.0)
            raise


class StallWatch:
    """Cancels calls whose client does not finish its request, or does not read the answer.

    Each would hold a thread or memory until its deadline, which may be an hour away. One thread
    checks all calls; a call in time costs two dictionary accesses.
    """

    def __init__(self, *, stall_s: float = STALL_S, check_period_s: float = 1.0) -> None:
        """Start a thread that checks periodically; it ends with `stop`."""
        self._stall_s = stall_s
        self._check_period_s = check_period_s
        self._ends_at_s: dict[grpc.ServicerContext, float] = {}
        self._ended = Event()
        Thread(target=self._run, name="rpc-stalling", daemon=True).start()

    @contextmanager
    def watch(self, call: grpc.ServicerContext, *, max_s: float = math.inf) -> Iterator[None]:
        """Cancel the call if the body of the context takes too long, or longer than a time."""
        self.begin(call, max_s=max_s)
        try:
            yield
        finally:
            self.end(call)

    def begin(self, call: grpc.ServicerContext, *, max_s: float = math.inf) -> None:
        """Start the time limit of a call."""
        self._ends_at_s[call] = time.monotonic() + min(max_s, self._stall_s)

    def end(self, call: grpc.ServicerContext) -> None:
        """End the time limit of a call."""
        self._ends_at_s.pop(call, None)

    def stop(self) -> None:
        """Stop checking."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._check_period_s):
            now_s = time.monotonic()
            for call, ends_at_s in list(self._ends_at_s.items()):
                if ends_at_s <= now_s:
                    self.end(call)
                    call.cancel()


class _UnreadBytes:
    """Counts the bytes of answers that clients have not read yet; thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lock = Lock()
        self._num_bytes = 0
        self._by_caller = Counter[str]()

    def add(self, caller: str, num_bytes: int) -> bool:
        """Count bytes, unless there is no room for them; return whether they were counted."""
        with self._lock:
            is_full = self._num_bytes + num_bytes > self._max_bytes
            if is_full or self._by_caller[caller] + num_bytes > self._max_bytes // 2:
                return False
            self._num_bytes += num_bytes
            self._by_caller[caller] += num_bytes
            return True

    def remove(self, caller: str, num_bytes: int) -> None:
        """Count bytes as read, or as dropped."""
        with self._lock:
            self._num_bytes -= num_bytes
            self._by_caller[caller] -= num_bytes
            if not self._by_caller[caller]:
                del self._by_caller[caller]

    @contextmanager
    def hold(self, caller: str, num_bytes: int) -> Iterator[bool]:
        """Count bytes for the body of the context; yield whether there is room for them."""
        has_room = self.add(caller, num_bytes)
        try:
            yield has_room
        finally:
            if has_room:
                self.remove(caller, num_bytes)


def _build_call_method(name: str, handler: RpcHandler) -> _CallMethod:
    behavior = (
        handler.unary_unary or handler.unary_stream or handler.stream_unary or handler.stream_stream
    )
    parse, serialize = handler.request_deserializer, handler.response_serializer
    if behavior is None or parse is None or serialize is None:
        raise InvariantError("a method without behavior or messages")
    is_own_service = name.startswith(OWN_SERVICES_PREFIX)
    return _CallMethod(
        name,
        cast("Callable[[Any, Any], Any]", behavior),
        partial(_parse_message, parse, checks_fields=is_own_service),
        serialize,
        is_own_service=is_own_service,
        is_client_streaming=handler.request_streaming,
    )


def _parse_message(parse: Callable[[bytes], Any], raw: bytes, *, checks_fields: bool) -> Any:  # noqa: ANN401 - any message
    """Return a message of a client.

    Raises:
        CallAbortedError: the bytes are no message, or it has a field that this version ignores.
    """
    try:
        message = parse(raw)
    except DecodeError as error:
        raise CallAbortedError(_UNREADABLE_FAILURE) from error
    if checks_fields:
        check_fields(message)
    return message


def _check_deadline(method: _CallMethod, context: grpc.ServicerContext) -> None:
    if method.is_own_service and context.time_remaining() > _MAX_REMAINING_S:
        problem = "set a deadline of an hour at most: it limits the time of the search"
        raise build_abort(FailureKind.DEADLINE_MISSING, problem)


def _serialize(method: _CallMethod, answer: object) -> bytes:
    raw = method.serialize(answer)
    if len(raw) > MAX_MESSAGE_BYTES:
        problem = f"the answer has {len(raw)} bytes, more than {MAX_MESSAGE_BYTES}"
        raise build_abort(FailureKind.ANSWER_TOO_LARGE, problem)
    return raw


@contextmanager
def _abort_on_failure(method: _CallMethod, context: grpc.ServicerContext) -> Iterator[None]:
    """End the call if the body fails; log an unexpected exception and hide it from the client."""
    try:
        yield
    except grpc.RpcError:  # the client has disconnected
        raise
    except CallAbortedError as error:
        failure = error.failure
    except SearchCancelledError:
        failure = _CANCELLED_FAILURE
    except Exception:
        log.exception("call failed", extra={"method": method.name})
        failure = _INTERNAL_FAILURE
    else:
        return
    context.abort_with_status(encode_status(failure))
