"""Failures of calls and their google.rpc details: encoded by the server, decoded by the client."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import (  # type: ignore[import-untyped]  # stubs, but no py.typed
    error_details_pb2,
    status_pb2,
)
from grpc_status import rpc_status

ERROR_DOMAIN: Final = "toponaut.io"
RESERVATION_TYPE: Final = "toponaut.v1.Reservation"
RETRY_DELAY_S: Final = 1
"""Delay after which a call to an overloaded or unready server may be retried."""


class FailureKind(StrEnum):
    """Why a call failed: the `reason` of google.rpc.ErrorInfo."""

    INVALID_REQUEST = "INVALID_REQUEST"
    UNSUPPORTED_REQUEST = "UNSUPPORTED_REQUEST"
    DEADLINE_MISSING = "DEADLINE_MISSING"
    TREE_UNKNOWN = "TREE_UNKNOWN"
    ANSWER_TOO_LARGE = "ANSWER_TOO_LARGE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    REVIEW_UNAVAILABLE = "REVIEW_UNAVAILABLE"
    OVERLOADED = "OVERLOADED"
    REVISION_COMPACTED = "REVISION_COMPACTED"
    PAGE_TOKEN_STALE = "PAGE_TOKEN_STALE"  # noqa: S105 - no secret
    STOPPING = "STOPPING"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    RESERVATION_UNKNOWN = "RESERVATION_UNKNOWN"
    RESERVATION_ENDED = "RESERVATION_ENDED"
    NOT_HOLDER = "NOT_HOLDER"
    NOT_LEADER = "NOT_LEADER"
    NO_LEADER = "NO_LEADER"
    LEADER_UNREACHABLE = "LEADER_UNREACHABLE"
    RESERVATIONS_FULL = "RESERVATIONS_FULL"
    CHANGED_MEANWHILE = "CHANGED_MEANWHILE"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    INTERNAL = "INTERNAL"


_CODES: Final = {
    FailureKind.INVALID_REQUEST: grpc.StatusCode.INVALID_ARGUMENT,
    FailureKind.UNSUPPORTED_REQUEST: grpc.StatusCode.UNIMPLEMENTED,
    FailureKind.DEADLINE_MISSING: grpc.StatusCode.INVALID_ARGUMENT,
    FailureKind.TREE_UNKNOWN: grpc.StatusCode.UNAVAILABLE,
    FailureKind.ANSWER_TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    FailureKind.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    FailureKind.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED,
    FailureKind.REVIEW_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    FailureKind.OVERLOADED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    FailureKind.REVISION_COMPACTED: grpc.StatusCode.OUT_OF_RANGE,
    FailureKind.PAGE_TOKEN_STALE: grpc.StatusCode.ABORTED,
    FailureKind.STOPPING: grpc.StatusCode.UNAVAILABLE,
    FailureKind.REQUEST_ID_REUSED: grpc.StatusCode.ALREADY_EXISTS,
    FailureKind.RESERVATION_UNKNOWN: grpc.StatusCode.NOT_FOUND,
    FailureKind.RESERVATION_ENDED: grpc.StatusCode.FAILED_PRECONDITION,
    FailureKind.NOT_HOLDER: grpc.StatusCode.PERMISSION_DENIED,
    FailureKind.NOT_LEADER: grpc.StatusCode.FAILED_PRECONDITION,
    FailureKind.NO_LEADER: grpc.StatusCode.UNAVAILABLE,
    FailureKind.LEADER_UNREACHABLE: grpc.StatusCode.UNAVAILABLE,
    FailureKind.RESERVATIONS_FULL: grpc.StatusCode.RESOURCE_EXHAUSTED,
    FailureKind.CHANGED_MEANWHILE: grpc.StatusCode.ABORTED,
    FailureKind.STORE_UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    FailureKind.INTERNAL: grpc.StatusCode.INTERNAL,
}
TRANSIENT_KINDS: Final = frozenset(
    {
        FailureKind.TREE_UNKNOWN,
        FailureKind.REVIEW_UNAVAILABLE,
        FailureKind.OVERLOADED,
        FailureKind.STOPPING,
        FailureKind.NO_LEADER,
        FailureKind.LEADER_UNREACHABLE,
        FailureKind.RESERVATIONS_FULL,
        FailureKind.CHANGED_MEANWHILE,
        FailureKind.STORE_UNAVAILABLE,
    }
)
"""Failures that may not occur if the same call is repeated a little later."""


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
    if failure.kind in TRANSIENT_KINDS:
        delay = duration_pb2.Duration(seconds=RETRY_DELAY_S)
        details.append(_pack_detail(error_details_pb2.RetryInfo(retry_delay=delay)))
    message = f"{failure.field}: {failure.problem}" if failure.field else failure.problem
    code: int = _CODES[failure.kind].value[0]
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
    if info.domain != ERROR_DOMAIN or info.reason not in set(FailureKind):
        return None
    field, problem = "", status.message
    for violation in bad_request.field_violations[:1]:
        field, problem = violation.field, violation.description
    return CallFailure(
        FailureKind(info.reason),
        problem,
        field,
        leader=info.metadata.get("leader", ""),
        reservation=resource.resource_name,
    )


def _pack_detail(detail: Message) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
