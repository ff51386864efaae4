"""PlacementService: each call is answered from the snapshot that it began with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import grpc

from generator.placement.answer import Placement
from generator.placement.batch.joint import BatchPlacement, place_batch
from generator.placement.cluster.slot_cache import SlotCache
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest
from generator.reconcile.result import OnQuery, QueryResult
from generator.rpc.capacity_counts import (
    find_height,
    count_domains,
    count_pod_capacity,
    count_tier_capacities,
    count_domain_capacities,
)
from generator.rpc.interfaces import ReservationCalls
from generator.rpc.messages.answers import (
    encode_assignments,
    encode_brief_placement,
    encode_objective,
    encode_placement,
)
from generator.rpc.messages.pages import (
    fill_page,
    parse_token,
    render_token,
    parse_page_size,
    split_pages,
)
from generator.rpc.messages.parsed_requests import RequestCache
from generator.rpc.messages.requests import decode_request
from generator.rpc.published import PublishedState
from generator.rpc.running_pods import with_running_pods
from generator.rpc.status_errors import CallFailure, FailureKind, CallAbortedError, build_abort
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from topology.model.errors import PlacementRequestError, show

REPLY_SHARE: Final = 0.1
"""Part of a call's remaining time that is kept for sending the answer."""
DEFAULT_CANDIDATES: Final = 8
"""Where the caller names no number."""
MAX_CANDIDATES: Final = 64
MAX_BATCH_SPECS: Final = 1024
"""Gangs of one message."""
MAX_STREAM_GANGS: Final = 100_000
"""Gangs of one stream, all of which it remembers."""
_RESULT_BY_FAILURE: Final = {
    FailureKind.TREE_UNKNOWN: QueryResult.UNAVAILABLE,
    FailureKind.INTERNAL: QueryResult.FAILED,
}
AnswerT = TypeVar("AnswerT")


class PlacementServicer(placement_pb2_grpc.PlacementServiceServicer):
    """Answers calls from the published snapshot."""

    def __init__(
        self,
        published: PublishedState,
        clock: Callable[[], float],
        on_query: OnQuery,
        reserving: ReservationCalls | None = None,
    ) -> None:
        """Keep what answers are made of.

        Args:
            published: where the snapshot is.
            clock: seconds, to keep the deadlines of searches.
            on_query: told how each search for a placement ended.
            reserving: keeps nodes; None: nobody does, and its calls are unimplemented.
        """
        self._published = published
        self._clock = clock
        self._on_query = on_query
        self._reservation_calls = reserving
        self._parse_request = RequestCache().parse_request

    def Place(self, request: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:  # noqa: N802 - gRPC's
        """Place one gang."""
        started = self._clock()
        try:
            asked = decode_request_at(request.spec, parse_request=self._parse_request)
            snapshot = with_running_pods(require_snapshot(self._published), asked, request)
            placement = self._place_with_deadline(snapshot, asked, context)
        except BaseException as error:
            self._on_query(_classify_failure(error), self._clock() - started)
            raise
        self._on_query(_classify_placement(placement), self._clock() - started)
        return pb.PlaceResponse(placement=encode_placement(placement))

    def PlaceBatch(  # noqa: N802 - gRPC's
        self, request_iterator: Iterator[pb.PlaceBatchRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.PlaceBatchResponse]:
        """Plan the gangs of each message together, in what those before it have left."""
        snapshot = require_snapshot(self._published)
        names: set[str] = set()
        found: BatchPlacement | None = None
        for message in request_iterator:
            if found is not None:
                snapshot = found.snapshot
            found = self._plan_batch(snapshot, self._decode_batch(message, names), context)
            render = encode_placement if message.explain else encode_brief_placement
            yield from _split_batch_response([render(one) for one in found.placements])

    def Candidates(  # noqa: N802 - gRPC's
        self, request: pb.CandidatesRequest, context: grpc.ServicerContext
    ) -> pb.CandidatesResponse:
        """List sets of nodes, none of which share one, best first."""
        if not 0 <= request.max_candidates <= MAX_CANDIDATES:
            problem = f"expected 0 to {MAX_CANDIDATES}, got {request.max_candidates}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "max_candidates")
        asked = decode_request_at(request.spec, parse_request=self._parse_request)
        snapshot = with_running_pods(require_snapshot(self._published), asked, request)
        response = pb.CandidatesResponse()
        for _ in range(request.max_candidates or DEFAULT_CANDIDATES):
            found = self._place_with_deadline(snapshot, asked, context)
            if not found.is_feasible:
                if not response.candidates:
                    response.infeasible.CopyFrom(encode_placement(found))
                return response
            columns = _find_columns(snapshot, found)
            response.candidates.append(_encode_candidate(snapshot, found, columns))
            snapshot = _exclude_nodes(snapshot, columns)
        response.has_more = True
        return response

    def Capacity(  # noqa: N802 - gRPC's
        self, request: pb.CapacityRequest, context: grpc.ServicerContext
    ) -> pb.CapacityResponse:
        """Count the pods that fit."""
        del context
        size, snapshot = parse_page_size(request), require_snapshot(self._published)
        revision = self._published.get_revision(snapshot.tree).revision
        start = _decode_start(request, revision) if request.page_token else 0
        tier = request.tier if request.HasField("tier") else snapshot.levels.tiers[1]
        height = find_height(snapshot, tier)
        if height is None:
            problem = f"the tree has no tier {show(tier)}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "tier")
        room = count_pod_capacity(snapshot, _decode_pod(request), priority=request.priority)
        page = fill_page(
            (
                pb.DomainCapacity(
                    domain=one.name, nodes=one.num_nodes, usable_nodes=one.num_usable, pods=one.pods
                )
                for one in count_domain_capacities(room, height, start=start, max_count=size)
            ),
            size,
        )
        stop = start + len(page)
        has_more = stop < count_domains(snapshot, height)
        return pb.CapacityResponse(
            revision=revision,
            domains=page,
            tiers=[
                pb.TierCapacity(
                    tier=row.name, domains=row.num_domains, pods=row.pods, most_pods=row.max_pods
                )
                for row in count_tier_capacities(room)
            ],
            next_page_token=render_token(request, [revision, stop]) if has_more else "",
        )

    def Reserve(  # noqa: N802 - gRPC's
        self, request: pb.ReserveRequest, context: grpc.ServicerContext
    ) -> pb.ReserveResponse:
        """Keep the nodes of a gang for a while."""
        return _raise_failure(self._require_reservation_calls.reserve(request, context))

    def Confirm(  # noqa: N802 - gRPC's
        self, request: pb.ConfirmRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmResponse:
        """Let a reservation last."""
        return _raise_failure(self._require_reservation_calls.confirm(request, context))

    def Release(  # noqa: N802 - gRPC's
        self, request: pb.ReleaseRequest, context: grpc.ServicerContext
    ) -> pb.ReleaseResponse:
        """Give nodes back."""
        return _raise_failure(self._require_reservation_calls.release(request, context))

    @property
    def _require_reservation_calls(self) -> ReservationCalls:
        if self._reservation_calls is None:
            raise build_abort(FailureKind.UNSUPPORTED_REQUEST, "this server keeps no reservations")
        return self._reservation_calls

    def _decode_batch(
        self, message: pb.PlaceBatchRequest, names: set[str]
    ) -> list[PlacementRequest]:
        """Return the gangs of a message, whose names no other one of the stream has."""
        if len(message.specs) > MAX_BATCH_SPECS:
            problem = f"expected at most {MAX_BATCH_SPECS}, got {len(message.specs)}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "specs")
        found = []
        for at, spec in enumerate(message.specs):
            asked = decode_request_at(spec, f"specs[{at}]", parse_request=self._parse_request)
            if asked.gang in names:
                problem = f"two gangs of this stream are named {show(asked.gang)}"
                raise build_abort(FailureKind.INVALID_REQUEST, problem, f"specs[{at}].gang")
            names.add(asked.gang)
            found.append(asked)
        if len(names) > MAX_STREAM_GANGS:
            problem = f"expected at most {MAX_STREAM_GANGS} gangs on one stream: open another one"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "specs")
        return found

    def _plan_batch(
        self,
        snapshot: Snapshot,
        requests: Sequence[PlacementRequest],
        context: grpc.ServicerContext,
    ) -> BatchPlacement:
        """Plan gangs together in most of the time that remains."""
        started = self._clock()
        budget_s = context.time_remaining() * (1 - REPLY_SHARE)
        found = place_batch(snapshot, requests, clock=self._clock, deadline_s=budget_s)
        took_s = (self._clock() - started) / max(len(requests), 1)
        for one in found.placements:
            self._on_query(_classify_placement(one), took_s)
        return found

    def _place_with_deadline(
        self, snapshot: Snapshot, asked: PlacementRequest, context: grpc.ServicerContext
    ) -> Placement:
        return place_within(snapshot, asked, context.time_remaining(), clock=self._clock)


def require_snapshot(published: PublishedState) -> Snapshot:
    """Return the newest snapshot.

    Raises:
        RefusedError: there is none yet.
    """
    snapshot = published.snapshot
    if snapshot is None:
        raise build_abort(FailureKind.TREE_UNKNOWN, "the tree is not known yet; try again")
    return snapshot


def decode_request_at(
    spec: pb.PlacementSpec,
    path: str = "spec",
    *,
    parse_request: Callable[[pb.PlacementSpec], PlacementRequest] = decode_request,
) -> PlacementRequest:
    """Return the request of a message.

    Args:
        spec: the message.
        path: of it in the call's message.
        parse: makes one of the other.

    Raises:
        RefusedError: it is malformed.
    """
    try:
        return parse_request(spec)
    except PlacementRequestError as error:
        raise build_request_abort(error, path) from error


def place_within(
    snapshot: Snapshot, asked: PlacementRequest, remaining_s: float, *, clock: Callable[[], float]
) -> Placement:
    """Return the best placement that is found in most of the time that remains."""
    budget_s = max(remaining_s * (1 - REPLY_SHARE), 0.0)
    return place(snapshot, asked.with_deadline(budget_s), clock=clock)


def build_request_abort(error: PlacementRequestError, path: str) -> CallAbortedError:
    """Return what ends a call whose request is wrong."""
    return build_abort(FailureKind.INVALID_REQUEST, error.problem, f"{path}.{error.field}")


def _classify_placement(placement: Placement) -> QueryResult:
    return QueryResult.PLACED if placement.is_feasible else QueryResult.INFEASIBLE


def _classify_failure(error: BaseException) -> QueryResult:
    if not isinstance(error, CallAbortedError):
        return QueryResult.FAILED
    return _RESULT_BY_FAILURE.get(error.failure.kind, QueryResult.REFUSED)


def _split_batch_response(placements: Sequence[pb.Placement]) -> Iterator[pb.PlaceBatchResponse]:
    pages = list(split_pages(placements, MAX_BATCH_SPECS)) or [[]]
    for at, page in enumerate(pages, 1):
        yield pb.PlaceBatchResponse(placements=page, is_last=at == len(pages))


def _find_columns(snapshot: Snapshot, found: Placement) -> list[int]:
    """Return the nodes of a placement, in tree order."""
    nodes = {node for row in found.assignment.values() for node in row if node is not None}
    return sorted(snapshot.position_of[node] for node in nodes)


def _exclude_nodes(snapshot: Snapshot, columns: Sequence[int]) -> Snapshot:
    """Return the snapshot as if some nodes took no more pods."""
    schedulable = snapshot.schedulable.copy()
    schedulable[list(columns)] = False
    return replace(snapshot, schedulable=schedulable, slot_cache=SlotCache())


def _encode_candidate(snapshot: Snapshot, found: Placement, columns: Sequence[int]) -> pb.Candidate:
    return pb.Candidate(
        nodes=[snapshot.specs[at].name for at in columns],
        assignment=encode_assignments(found),
        tier=found.tier or "",
        objective=encode_objective(found),
        proved=found.is_proved,
    )


def _decode_start(request: pb.CapacityRequest, revision: str) -> int:
    """Return the first row of a page of the tree that is known now."""
    begun, start = parse_token(request, request.page_token, (str, int))
    if begun != revision:
        problem = "the tree is another one by now: begin anew"
        raise build_abort(FailureKind.PAGE_TOKEN_STALE, problem, "page_token")
    return int(start)


def _decode_pod(request: pb.CapacityRequest) -> GangGroup:
    """Return what is asked for as a group of one pod, judged as any other."""
    group = pb.Group(
        name="pod", count=1, node_selector=request.node_selector, tolerations=request.tolerations
    )
    if request.HasField("request"):
        group.request.CopyFrom(request.request)
    try:
        (pod,) = decode_request(pb.PlacementSpec(groups=[group])).groups
    except PlacementRequestError as error:
        field = error.field.removeprefix("groups[0].")
        raise build_abort(FailureKind.INVALID_REQUEST, error.problem, field) from error
    if not any(quantity for _, quantity in pod.request):
        problem = "expected a quantity above 0: of pods that take nothing any number fits"
        raise build_abort(FailureKind.INVALID_REQUEST, problem, "request")
    return pod


def _raise_failure(answer: AnswerT | CallFailure) -> AnswerT:
    if isinstance(answer, CallFailure):
        raise CallAbortedError(answer)
    return answer
