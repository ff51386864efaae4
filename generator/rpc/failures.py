"""Failed calls with google.rpc details: what a server sends, and what a client reads of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from google.rpc import (  # type: ignore[import-untyped]  # stubs, but no py.typed
    error_details_pb2,
    status_pb2,
)
from grpc_status import rpc_status

DOMAIN: Final = "toponaut.io"
_SPEC: Final = "spec."


class FailureKind(StrEnum):
    """Why a call fails: the `reason` of google.rpc.ErrorInfo."""

    INVALID_REQUEST = "INVALID_REQUEST"
    UNSUPPORTED_REQUEST = "UNSUPPORTED_REQUEST"
    DEADLINE_MISSING = "DEADLINE_MISSING"
    TREE_UNKNOWN = "TREE_UNKNOWN"
    ANSWER_TOO_LARGE = "ANSWER_TOO_LARGE"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    REVIEW_UNAVAILABLE = "REVIEW_UNAVAILABLE"
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
    FailureKind.INTERNAL: grpc.StatusCode.INTERNAL,
}


class Failure(NamedTuple):
    """Why a call has no answer."""

    kind: FailureKind
    problem: str
    """One line for people."""
    field: str = ""
    """Path of the field that is wrong, relative to `spec`."""


def status_of(failure: Failure) -> grpc.Status:
    """Return what ends the call: code, message, ErrorInfo, and BadRequest for a wrong field."""
    details: list[any_pb2.Any] = [
        _packed(error_details_pb2.ErrorInfo(reason=failure.kind, domain=DOMAIN))
    ]
    if failure.field:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=_SPEC + failure.field, description=failure.problem
        )
        details.append(_packed(error_details_pb2.BadRequest(field_violations=[violation])))
    message = f"{failure.field}: {failure.problem}" if failure.field else failure.problem
    code: int = _CODES[failure.kind].value[0]
    return rpc_status.to_status(status_pb2.Status(code=code, message=message, details=details))


def failure_of(call: grpc.Call) -> Failure | None:
    """Return the failure that a server of ours sent, None where it is someone else's."""
    try:
        status = rpc_status.from_call(call)
    except (ValueError, DecodeError):
        return None
    if status is None:
        return None
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(bad)
    if info.domain != DOMAIN or info.reason not in set(FailureKind):
        return None
    for violation in bad.field_violations:
        field = violation.field.removeprefix(_SPEC)
        return Failure(FailureKind(info.reason), violation.description, field)
    return Failure(FailureKind(info.reason), status.message)


def _packed(detail: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(detail)
    return packed
