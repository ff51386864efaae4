"""PlacementService: each call uses one snapshot from its start to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Any, Final, NoReturn, TypeAlias, cast

import grpc

from generator.placement.answer import Placement
from generator.placement.batch.joint import BatchOptions, BatchPlacement, place_batch
from generator.placement.budget import SearchCancelledError
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.placement.groups import GangGroup
from generator.placement.request import PlacementRequest
from generator.reconcile.round_results import OnQuery, QueryResult
from generator.rpc.auth.authentication import identify_caller
from generator.rpc.capacity_counts import (
    count_domain_capacities,
    count_domains,
    count_pod_capacity,
    count_tier_capacities,
    find_height,
)
from generator.rpc.limits import (
    CROWDED_BATCH_SEARCH_S,
    CROWDED_SEARCH_S,
    MAX_BATCH_SEARCH_S,
    MAX_SEARCH_S,
    MAX_STREAM_SEARCH_S,
    MAX_STREAM_SEARCHES,
    MAX_STREAMS,
)
from generator.rpc.messages.answers import (
    encode_assignments,
    encode_brief_placement,
    encode_objective,
    encode_placement,
)
from generator.rpc.messages.pages import (
    STREAM_PART_BYTES,
    fill_page,
    parse_page_size,
    parse_token,
    render_token,
    split_pages,
)
from generator.rpc.messages.requests import decode_request
from generator.rpc.published_state import PublishedState
from generator.rpc.reported_pods import with_running_pods
from generator.rpc.status_errors import CallAbortedError, FailureKind, build_abort
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from runtime.fair_share import FairShare
from topology.model.errors import PlacementRequestError, show

REPLY_SHARE: Final = 0.1
"""Share of a call's remaining time that is reserved for sending the answer."""
_MIN_PART_S: Final = 0.01
"""Less time is left for no search of several."""
DEFAULT_CANDIDATES: Final = 8
"""If the caller sets no number."""
MAX_CANDIDATES: Final = 64
MAX_BATCH_SPECS: Final = 1024
"""Gangs per message."""
MAX_STREAM_GANGS: Final = 100_000
"""Gangs per stream; the stream stores the name of each."""
_RESULT_BY_FEASIBILITY: Final = {True: QueryResult.PLACED, False: QueryResult.INFEASIBLE}
_RESULT_BY_FAILURE: Final = {
    FailureKind.TREE_UNKNOWN: QueryResult.UNAVAILABLE,
    FailureKind.INTERNAL: QueryResult.FAILED,
}


ReservationCall: TypeAlias = Callable[[str, Any, grpc.ServicerContext], Any]
"""Answers Reserve, Confirm or Release, by the name of the method; thread-safe. A failure is a
CallAbortedError."""


def refuse_reservation(_method: str, _request: object, _context: grpc.ServicerContext) -> NoReturn:
    """Refuse the calls about reservations."""
    raise build_abort(FailureKind.UNSUPPORTED_REQUEST, "this server has no reservations")


class CallSearch:
    """The searches of one call: how long they may take, and whether the call has ended."""

    def __init__(self, context: grpc.ServicerContext, clock: Callable[[], float]) -> None:
        """Allow no time yet.

        Args:
            context: gRPC's context of the call.
            clock: seconds of a monotonic clock.
        """
        self._context = context
        self.clock = clock
        self._ends_at_s = 0.0
        ended = Event()
        self.is_cancelled = ended.is_set
        """Returns whether the call has ended."""
        if not context.add_callback(ended.set):
            ended.set()

    def begin(self, max_s: float) -> None:
        """Allow most of the time that the call has left, and not more than the limit."""
        remaining_s = self._context.time_remaining() * (1 - REPLY_SHARE)
        self._ends_at_s = self.clock() + min(remaining_s, max_s)

    @property
    def remaining_s(self) -> float:
        """The time that is left."""
        return max(self._ends_at_s - self.clock(), 0.0)

    def place(
        self, snapshot: Snapshot, request: PlacementRequest, *, share: float = 1.0
    ) -> Placement:
        """Search for a share of the remaining time; return the best placement found."""
        bounded = request.with_deadline(self.remaining_s * share)
        return place(snapshot, bounded, clock=self.clock, is_cancelled=self.is_cancelled)


class PlacementServicer(placement_pb2_grpc.PlacementServiceServicer):
    """Answers calls from the published snapshot."""

    def __init__(
        self,
        published: PublishedState,
        clock: Callable[[], float],
        on_query: OnQuery,
        call_slots: FairShare,
        call_reservation: ReservationCall = refuse_reservation,
    ) -> None:
        """Store the sources of answers.

        Args:
            published: holds the snapshot.
            clock: seconds, for the deadlines of searches.
            on_query: called with the result of each search for a placement.
            call_slots: the slots that calls hold while they are answered.
            call_reservation: answers the calls about reservations.
        """
        self._published = published
        self._clock = clock
        self._on_query = on_query
        self._call_slots = call_slots
        self._call_reservation = call_reservation
        self._stream_searches = FairShare(
            MAX_STREAM_SEARCHES,
            per_caller=MAX_STREAM_SEARCHES // 2,
            max_waiting=MAX_STREAMS,
            waiting_per_caller=MAX_STREAMS,
        )
        """Streams have threads of their own, which must not take the processor from calls."""

    def Place(self, request: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:  # noqa: N802 - gRPC's
        """Place one gang."""
        started = self._clock()
        try:
            placement_request = decode_request_at(request.spec)
            snapshot = with_running_pods(
                self._published.require_snapshot(), placement_request, request
            )
            search = self._begin_search(context)
            placement = search.place(snapshot, placement_request)
        except BaseException as error:
            self._on_query(_classify_failure(error), self._clock() - started)
            raise
        self._on_query(_RESULT_BY_FEASIBILITY[placement.is_feasible], self._clock() - started)
        return pb.PlaceResponse(placement=encode_placement(placement))

    def PlaceBatch(  # noqa: N802 - gRPC's
        self, request_iterator: Iterator[pb.PlaceBatchRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.PlaceBatchResponse]:
        """Plan the gangs of each message together, in the capacity left by earlier messages."""
        caller = identify_caller(context)
        return self._answer_batches(request_iterator, context, caller)

    def _answer_batches(
        self,
        request_iterator: Iterator[pb.PlaceBatchRequest],
        context: grpc.ServicerContext,
        caller: str,
    ) -> Iterator[pb.PlaceBatchResponse]:
        snapshot = self._published.require_snapshot()
        names: set[str] = set()
        batch: BatchPlacement | None = None
        search, left_s = CallSearch(context, self._clock), MAX_STREAM_SEARCH_S
        for message in request_iterator:
            requests = self._decode_batch(message, names)
            with self._stream_searches.hold(
                caller, timeout_s=context.time_remaining(), is_over=search.is_cancelled
            ) as has_slot:
                if not has_slot or left_s <= 0:
                    problem = "the searches of this stream, or of all, take too long: open another"
                    raise build_abort(FailureKind.OVERLOADED, problem)
                is_crowded = self._stream_searches.is_crowded
                search.begin(
                    min(left_s, CROWDED_BATCH_SEARCH_S if is_crowded else MAX_BATCH_SEARCH_S)
                )
                started_s = self._clock()
                if batch is not None:
                    snapshot = batch.snapshot
                batch = self._plan_batch(
                    snapshot, requests, search, BatchOptions(explains=message.explain)
                )
                left_s -= self._clock() - started_s
            render = encode_placement if message.explain else encode_brief_placement
            yield from _split_batch_response(map(render, batch.placements))

    def Candidates(  # noqa: N802 - gRPC's
        self, request: pb.CandidatesRequest, context: grpc.ServicerContext
    ) -> pb.CandidatesResponse:
        """List disjoint sets of nodes, best first."""
        if not 0 <= request.max_candidates <= MAX_CANDIDATES:
            problem = f"expected 0 to {MAX_CANDIDATES}, got {request.max_candidates}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "max_candidates")
        placement_request = decode_request_at(request.spec)
        snapshot = with_running_pods(self._published.require_snapshot(), placement_request, request)
        response = pb.CandidatesResponse()
        search = self._begin_search(context)
        for _ in range(request.max_candidates or DEFAULT_CANDIDATES):
            if response.candidates and search.remaining_s < _MIN_PART_S:
                break
            placement = search.place(snapshot, placement_request, share=0.5)
            if not placement.is_feasible:
                if not response.candidates:
                    response.infeasible.CopyFrom(encode_placement(placement))
                    return response
                response.has_more = not placement.is_proved
                return response
            columns = _find_columns(snapshot, placement)
            response.candidates.append(_encode_candidate(snapshot, placement, columns))
            snapshot = _exclude_nodes(snapshot, columns)
        response.has_more = True
        return response

    def Capacity(  # noqa: N802 - gRPC's
        self, request: pb.CapacityRequest, context: grpc.ServicerContext
    ) -> pb.CapacityResponse:
        """Count the pods that fit."""
        del context
        size, snapshot = parse_page_size(request), self._published.require_snapshot()
        revision = self._published.get_revision(snapshot.tree).revision
        start = _decode_start(request, revision) if request.page_token else 0
        tier = request.tier if request.HasField("tier") else snapshot.levels.tiers[1]
        height = find_height(snapshot, tier)
        if height is None:
            problem = f"the tree has no tier {show(tier)}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "tier")
        capacity = count_pod_capacity(snapshot, _decode_pod(request), priority=request.priority)
        page = fill_page(
            count_domain_capacities(capacity, height, start=start, max_count=size), size
        )
        stop = start + len(page)
        has_more = stop < count_domains(snapshot, height)
        return pb.CapacityResponse(
            revision=revision,
            domains=page,
            tiers=count_tier_capacities(capacity),
            next_page_token=render_token(request, [revision, stop]) if has_more else "",
        )

    def Reserve(  # noqa: N802 - gRPC's
        self, request: pb.ReserveRequest, context: grpc.ServicerContext
    ) -> pb.ReserveResponse:
        """Reserve the nodes of a gang for a time."""
        return cast("pb.ReserveResponse", self._call_reservation("Reserve", request, context))

    def Confirm(  # noqa: N802 - gRPC's
        self, request: pb.ConfirmRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmResponse:
        """Confirm a reservation, so that it lasts until it is released."""
        return cast("pb.ConfirmResponse", self._call_reservation("Confirm", request, context))

    def Release(  # noqa: N802 - gRPC's
        self, request: pb.ReleaseRequest, context: grpc.ServicerContext
    ) -> pb.ReleaseResponse:
        """Release the nodes of a reservation."""
        return cast("pb.ReleaseResponse", self._call_reservation("Release", request, context))

    def _begin_search(self, context: grpc.ServicerContext) -> CallSearch:
        search = CallSearch(context, self._clock)
        search.begin(CROWDED_SEARCH_S if self._call_slots.is_crowded else MAX_SEARCH_S)
        return search

    def _decode_batch(
        self, message: pb.PlaceBatchRequest, names: set[str]
    ) -> list[PlacementRequest]:
        """Return the gangs of a message; each name must be unique within the stream."""
        if len(message.specs) > MAX_BATCH_SPECS:
            problem = f"expected at most {MAX_BATCH_SPECS}, got {len(message.specs)}"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "specs")
        requests = []
        for spec_index, spec in enumerate(message.specs):
            request = decode_request_at(spec, f"specs[{spec_index}]")
            if request.gang in names:
                problem = f"two gangs of this stream have the name {show(request.gang)}"
                raise build_abort(FailureKind.INVALID_REQUEST, problem, f"specs[{spec_index}].gang")
            names.add(request.gang)
            requests.append(request)
        if len(names) > MAX_STREAM_GANGS:
            problem = f"expected at most {MAX_STREAM_GANGS} gangs per stream: open another stream"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, "specs")
        return requests

    def _plan_batch(
        self,
        snapshot: Snapshot,
        requests: Sequence[PlacementRequest],
        search: CallSearch,
        options: BatchOptions,
    ) -> BatchPlacement:
        """Plan gangs together in the time that is left."""
        started = self._clock()
        batch = place_batch(
            snapshot,
            requests,
            clock=self._clock,
            deadline_s=search.remaining_s,
            options=options,
            is_cancelled=search.is_cancelled,
        )
        took_s = (self._clock() - started) / max(len(requests), 1)
        for placement in batch.placements:
            self._on_query(_RESULT_BY_FEASIBILITY[placement.is_feasible], took_s)
        return batch


def decode_request_at(spec: pb.PlacementSpec, path: str = "spec") -> PlacementRequest:
    """Return the placement request of a message, which has this path in the message of the call.

    Raises:
        CallAbortedError: the request is malformed.
    """
    try:
        return decode_request(spec)
    except PlacementRequestError as error:
        raise build_request_abort(error, path) from error


def build_request_abort(error: PlacementRequestError, path: str) -> CallAbortedError:
    """Return the exception that ends a call with a malformed request."""
    return build_abort(FailureKind.INVALID_REQUEST, error.problem, f"{path}.{error.field}")


def _classify_failure(error: BaseException) -> QueryResult:
    if isinstance(error, SearchCancelledError):
        return QueryResult.REFUSED
    if not isinstance(error, CallAbortedError):
        return QueryResult.FAILED
    return _RESULT_BY_FAILURE.get(error.failure.kind, QueryResult.REFUSED)


def _split_batch_response(placements: Iterable[pb.Placement]) -> Iterator[pb.PlaceBatchResponse]:
    pages = split_pages(placements, MAX_BATCH_SPECS, max_bytes=STREAM_PART_BYTES)
    page = next(pages, [])
    for following in pages:
        yield pb.PlaceBatchResponse(placements=page)
        page = following
    yield pb.PlaceBatchResponse(placements=page, is_last=True)


def _find_columns(snapshot: Snapshot, placement: Placement) -> list[int]:
    """Return the columns of a placement's nodes, in tree order."""
    nodes = {
        node for placed in placement.assignment.values() for node in placed if node is not None
    }
    return sorted(snapshot.position_of[node] for node in nodes)


def _exclude_nodes(snapshot: Snapshot, columns: Sequence[int]) -> Snapshot:
    """Return the snapshot with some nodes made unschedulable."""
    schedulable = snapshot.schedulable.copy()
    schedulable[list(columns)] = False
    return replace(snapshot, schedulable=schedulable)


def _encode_candidate(
    snapshot: Snapshot, placement: Placement, columns: Sequence[int]
) -> pb.Candidate:
    return pb.Candidate(
        nodes=[snapshot.specs[column].name for column in columns],
        assignment=encode_assignments(placement),
        tier=placement.tier or "",
        objective=encode_objective(placement),
        proved=placement.is_proved,
    )


def _decode_start(request: pb.CapacityRequest, revision: str) -> int:
    """Return the first row of a page; the tree must not have changed since the first page."""
    token_revision, start = parse_token(request, request.page_token, (str, int))
    if token_revision != revision:
        problem = "the tree has changed: start again with the first page"
        raise build_abort(FailureKind.PAGE_TOKEN_STALE, problem, "page_token")
    return int(start)


def _decode_pod(request: pb.CapacityRequest) -> GangGroup:
    """Return the requested pod as a group of one pod, with the same checks as any group."""
    group = pb.Group(
        name="pod",
        count=1,
        request=request.request,
        node_selector=request.node_selector,
        node_affinity=request.node_affinity,
        tolerations=request.tolerations,
    )
    try:
        (pod,) = decode_request(pb.PlacementSpec(groups=[group])).groups
    except PlacementRequestError as error:
        field = error.field.removeprefix("groups[0].")
        raise build_abort(FailureKind.INVALID_REQUEST, error.problem, field) from error
    if not any(quantity for _, quantity in pod.request):
        problem = "expected a quantity above 0: any number of pods fits if they request nothing"
        raise build_abort(FailureKind.INVALID_REQUEST, problem, "request")
    return pod
