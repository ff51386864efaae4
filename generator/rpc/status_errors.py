"""Failures of calls and their google.rpc details: encoded by the server, decoded by the client."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple, Self

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import (  # type: ignore[import-untyped]  # stubs, but no py.typed
    error_details_pb2,
    status_pb2,
)
from grpc_status import rpc_status

Code = grpc.StatusCode
ERROR_DOMAIN: Final = "toponaut.io"
RESERVATION_TYPE: Final = "toponaut.v1.Reservation"
RETRY_DELAY_S: Final = 1
"""Delay after which a call to an overloaded or unready server may be retried."""


_TRANSIENT: Final = True


class FailureKind(StrEnum):
    """Why a call failed: the `reason` of google.rpc.ErrorInfo."""

    _value_: str
    code: Code
    is_transient: bool
    """Whether it may not occur if the same call is repeated a little later."""

    def __new__(cls, reason: str, code: Code, is_transient: bool = False) -> Self:  # noqa: FBT001, FBT002 - a column of the rows below
        """Return a kind with the status code of its calls."""
        kind = str.__new__(cls, reason)
        kind._value_, kind.code, kind.is_transient = reason, code, is_transient
        return kind

    INVALID_REQUEST = "INVALID_REQUEST", Code.INVALID_ARGUMENT
    UNSUPPORTED_REQUEST = "UNSUPPORTED_REQUEST", Code.UNIMPLEMENTED
    DEADLINE_MISSING = "DEADLINE_MISSING", Code.INVALID_ARGUMENT
    TREE_UNKNOWN = "TREE_UNKNOWN", Code.UNAVAILABLE, _TRANSIENT
    ANSWER_TOO_LARGE = "ANSWER_TOO_LARGE", Code.RESOURCE_EXHAUSTED
    UNAUTHENTICATED = "UNAUTHENTICATED", Code.UNAUTHENTICATED
    FORBIDDEN = "FORBIDDEN", Code.PERMISSION_DENIED
    REVIEW_UNAVAILABLE = "REVIEW_UNAVAILABLE", Code.UNAVAILABLE, _TRANSIENT
    OVERLOADED = "OVERLOADED", Code.RESOURCE_EXHAUSTED, _TRANSIENT
    REVISION_COMPACTED = "REVISION_COMPACTED", Code.OUT_OF_RANGE
    PAGE_TOKEN_STALE = "PAGE_TOKEN_STALE", Code.ABORTED
    STOPPING = "STOPPING", Code.UNAVAILABLE, _TRANSIENT
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED", Code.ALREADY_EXISTS
    RESERVATION_UNKNOWN = "RESERVATION_UNKNOWN", Code.NOT_FOUND
    RESERVATION_ENDED = "RESERVATION_ENDED", Code.FAILED_PRECONDITION
    NOT_HOLDER = "NOT_HOLDER", Code.PERMISSION_DENIED
    NOT_LEADER = "NOT_LEADER", Code.FAILED_PRECONDITION
    NO_LEADER = "NO_LEADER", Code.UNAVAILABLE, _TRANSIENT
    LEADER_UNREACHABLE = "LEADER_UNREACHABLE", Code.UNAVAILABLE, _TRANSIENT
    LEADER_DIFFERS = "LEADER_DIFFERS", Code.UNAVAILABLE, _TRANSIENT
    RESERVATIONS_FULL = "RESERVATIONS_FULL", Code.RESOURCE_EXHAUSTED, _TRANSIENT
    CHANGED_MEANWHILE = "CHANGED_MEANWHILE", Code.ABORTED, _TRANSIENT
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE", Code.UNAVAILABLE, _TRANSIENT
    INTERNAL = "INTERNAL", Code.INTERNAL


class CallFailure(NamedTuple):
    """The failure of a call."""

    kind: FailureKind
    problem: str
    """One line for people."""
    field: str = ""
    """Path of the invalid field, such as `spec.groups[0].count`."""
    leader: str = ""
    """`HOST:PORT` of the leader, if other machines can reach it; in the metadata of ErrorInfo."""
    reservation: str = ""
    """Id of the reservation concerned, in ResourceInfo."""


class CallAbortedError(Exception):
    """Ends a call with a failure, from any depth of the code that answers it."""

    def __init__(self, failure: CallFailure) -> None:
        """Store the failure."""
        super().__init__(failure)
        self.failure = failure


def build_abort(kind: FailureKind, problem: str, field: str = "") -> CallAbortedError:
    """Return the exception that ends a call."""
    return CallAbortedError(CallFailure(kind, problem, field))


def encode_status(failure: CallFailure) -> grpc.Status:
    """Return the status of a failed call: code, message, ErrorInfo and further google.rpc details.

    BadRequest names the invalid field, RetryInfo the retry delay, ResourceInfo the reservation.
    """
    metadata = {"leader": failure.leader} if failure.leader else {}
    details: list[any_pb2.Any] = [
        _pack_detail(
            error_details_pb2.ErrorInfo(reason=failure.kind, domain=ERROR_DOMAIN, metadata=metadata)
        )
    ]
    if failure.reservation:
        resource = error_details_pb2.ResourceInfo(
            resource_type=RESERVATION_TYPE, resource_name=failure.reservation
        )
        details.append(_pack_detail(resource))
    if failure.field:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=failure.field, description=failure.problem
        )
        details.append(_pack_detail(error_details_pb2.BadRequest(field_violations=[violation])))
    if failure.kind.is_transient:
        delay = duration_pb2.Duration(seconds=RETRY_DELAY_S)
        details.append(_pack_detail(error_details_pb2.RetryInfo(retry_delay=delay)))
    message = f"{failure.field}: {failure.problem}" if failure.field else failure.problem
    code: int = failure.kind.code.value[0]
    return rpc_status.to_status(status_pb2.Status(code=code, message=message, details=details))


def decode_failure(call: grpc.Call) -> CallFailure | None:
    """Return the failure that a toponaut server sent, None for any other error."""
    try:
        status = rpc_status.from_call(call)
    except (ValueError, DecodeError):
        return None
    if status is None:
        return None
    info, bad_request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    resource = error_details_pb2.ResourceInfo()
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(bad_request) or detail.Unpack(resource)
    if info.domain != ERROR_DOMAIN or info.reason not in FailureKind.__members__:
        return None
    field, problem = "", status.message
    for violation in bad_request.field_violations[:1]:
        field, problem = violation.field, violation.description
    return CallFailure(
        FailureKind[info.reason],
        problem,
        field,
        leader=info.metadata.get("leader", ""),
        reservation=resource.resource_name,
    )


def _pack_detail(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
