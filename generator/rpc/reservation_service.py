"""Reserve, Confirm and Release: decode messages, call the ledger, encode answers and failures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import grpc
from google.protobuf import timestamp_pb2
from google.protobuf.message import Message

from generator.objects.reservation import ReservationPhase
from generator.reservations.ledger import ReservationLedger
from generator.reservations.phases import DEFAULT_TTL_S
from generator.reservations.records import (
    LOCAL_HOLDER,
    Refusal,
    RefusalKind,
    Reservation,
    ReservationRequest,
    ReservationResult,
)
from generator.rpc.auth.authentication import get_caller, identify_caller
from generator.rpc.limits import MAX_DEADLINE_S
from generator.rpc.messages.answers import encode_placement
from generator.rpc.placement_service import CallSearch, build_request_abort, decode_request_at
from generator.rpc.status_errors import CallAbortedError, CallFailure, FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import InvariantError, PlacementRequestError

_KINDS: Final = {
    RefusalKind.MALFORMED: FailureKind.INVALID_REQUEST,
    RefusalKind.REUSED: FailureKind.REQUEST_ID_REUSED,
    RefusalKind.UNKNOWN: FailureKind.RESERVATION_UNKNOWN,
    RefusalKind.ENDED: FailureKind.RESERVATION_ENDED,
    RefusalKind.NOT_HOLDER: FailureKind.NOT_HOLDER,
    RefusalKind.NOT_LEADER: FailureKind.NOT_LEADER,
    RefusalKind.NO_LEADER: FailureKind.NO_LEADER,
    RefusalKind.NO_TREE: FailureKind.TREE_UNKNOWN,
    RefusalKind.FULL: FailureKind.RESERVATIONS_FULL,
    RefusalKind.CHANGED: FailureKind.CHANGED_MEANWHILE,
    RefusalKind.STORE: FailureKind.STORE_UNAVAILABLE,
}
_PHASES: Final = {
    phase: pb.ReservationPhase.Value(f"RESERVATION_PHASE_{phase.name}")
    for phase in ReservationPhase
}
_OUTSIDE_SPEC: Final = frozenset({"request_id", "ttl_s"})
"""Fields of a request outside its `spec`."""
_MAX_ID: Final = 64
"""Characters of an id that an error repeats."""


class ReservationServicer:
    """Answers the calls about reservations; thread-safe."""

    def __init__(self, reservations: ReservationLedger) -> None:
        """Store the ledger."""
        self._reservations = reservations

    def answer(self, method: str, request: Any, context: grpc.ServicerContext) -> Message:  # noqa: ANN401 - any message
        """Answer the call `Reserve`, `Confirm` or `Release`, by the name in `method`.

        Raises:
            CallAbortedError: the call fails.
        """
        match method:
            case "Reserve":
                return self._reserve(request, context)
            case "Confirm":
                change = _change(self._reservations.confirm, request, context)
                return pb.ConfirmResponse(reservation=change)
            case "Release":
                change = _change(self._reservations.release, request, context)
                return pb.ReleaseResponse(reservation=change)
            case _:
                raise InvariantError(f"{method} is no call about reservations")

    def _reserve(
        self, request: pb.ReserveRequest, context: grpc.ServicerContext
    ) -> pb.ReserveResponse:
        """Place a gang and reserve its nodes; infeasible is an answer."""
        reservation_request = ReservationRequest(
            id=request.request_id,
            holder=_find_holder(context),
            placement_request=decode_request_at(request.spec),
            ttl_s=request.ttl_s or DEFAULT_TTL_S,
            is_trial=request.validate_only,
        )
        search = CallSearch(context, time.monotonic)
        search.begin(MAX_DEADLINE_S)
        try:
            answer = self._reservations.reserve(
                reservation_request,
                budget_s=search.remaining_s,
                caller=identify_caller(context),
                is_cancelled=search.is_cancelled,
            )
        except PlacementRequestError as error:
            raise build_request_abort(error, "spec") from error
        if isinstance(answer, Refusal):
            raise _build_abort(answer, reservation_request.id)
        return _encode_response(answer)


def _change(
    change: Callable[..., Reservation | Refusal],
    request: pb.ConfirmRequest | pb.ReleaseRequest,
    context: grpc.ServicerContext,
) -> pb.Reservation:
    answer = change(request.id, holder=_find_holder(context), min_epoch=request.epoch)
    if isinstance(answer, Refusal):
        raise _build_abort(answer, request.id)
    return _encode_reservation(answer)


def _find_holder(context: grpc.ServicerContext) -> str:
    return get_caller(context) or LOCAL_HOLDER


def _encode_response(answer: ReservationResult) -> pb.ReserveResponse:
    response = pb.ReserveResponse(placement=encode_placement(answer.placement))
    if answer.reservation is not None:
        response.reservation.CopyFrom(_encode_reservation(answer.reservation))
    return response


def _encode_reservation(reservation: Reservation) -> pb.Reservation:
    message = pb.Reservation(
        id=reservation.id, epoch=reservation.epoch, phase=_PHASES[reservation.phase]
    )
    if reservation.expires_at is not None:
        expires_at = timestamp_pb2.Timestamp()
        expires_at.FromDatetime(reservation.expires_at)
        message.expires_at.CopyFrom(expires_at)
    return message


def _build_abort(refusal: Refusal, id_: str) -> CallAbortedError:
    field = refusal.field
    if field and field not in _OUTSIDE_SPEC:
        field = f"spec.{field}"
    names_reservation = refusal.kind in {
        RefusalKind.REUSED,
        RefusalKind.UNKNOWN,
        RefusalKind.ENDED,
        RefusalKind.NOT_HOLDER,
    }
    failure = CallFailure(
        _KINDS[refusal.kind],
        refusal.problem,
        field,
        leader=refusal.leader,
        reservation=id_[:_MAX_ID] if names_reservation else "",
    )
    return CallAbortedError(failure)
