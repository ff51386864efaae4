"""PlacementService: each call is answered from the snapshot that it began with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import grpc

from generator.placement.answer import Placement
from generator.placement.batch.joint import BatchPlacement, place_batch
from generator.placement.cluster.slot_cache import Counted
from generator.placement.cluster.snapshot import Snapshot
from generator.placement.engine import place
from generator.placement.groups import Group
from generator.placement.request import PlacementRequest
from generator.reconcile.result import OnQuery, QueryResult
from generator.rpc.capacity_counts import height_of, num_units, room_for, tiers_of, units_at
from generator.rpc.interfaces import Reserving
from generator.rpc.messages.answers import (
    assignment_messages,
    brief_message,
    objective_messages,
    placement_message,
)
from generator.rpc.messages.pages import fill, parse_token, render_token, size_of, split
from generator.rpc.messages.parsed_requests import Parsing
from generator.rpc.messages.requests import request_of
from generator.rpc.published import Published
from generator.rpc.running_pods import anchored
from generator.rpc.status_errors import Failure, FailureKind, RefusedError, refused
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc
from topology.model.errors import PlacementRequestError, show

REPLY_SHARE: Final = 0.1
"""Part of a call's remaining time that is kept for sending the answer."""
CANDIDATES: Final = 8
"""Where the caller names no number."""
MOST_CANDIDATES: Final = 64
MOST_SPECS: Final = 1024
"""Gangs of one message."""
MOST_GANGS: Final = 100_000
"""Gangs of one stream, all of which it remembers."""
_RESULTS: Final = {
    FailureKind.TREE_UNKNOWN: QueryResult.UNAVAILABLE,
    FailureKind.INTERNAL: QueryResult.FAILED,
}
AnswerT = TypeVar("AnswerT")


class PlacementServicer(placement_pb2_grpc.PlacementServiceServicer):
    """Answers calls from the published snapshot."""

    def __init__(
        self,
        published: Published,
        clock: Callable[[], float],
        on_query: OnQuery,
        reserving: Reserving | None = None,
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
        self._reserving = reserving
        self._parse = Parsing().request_of

    def Place(self, request: pb.PlaceRequest, context: grpc.ServicerContext) -> pb.PlaceResponse:  # noqa: N802 - gRPC's
        """Place one gang."""
        started = self._clock()
        try:
            asked = asked_of(request.spec, parse=self._parse)
            snapshot = anchored(known(self._published), asked, request)
            placement = self._placed(snapshot, asked, context)
        except BaseException as error:
            self._on_query(_failed_result(error), self._clock() - started)
            raise
        self._on_query(_result_of(placement), self._clock() - started)
        return pb.PlaceResponse(placement=placement_message(placement))

    def PlaceBatch(  # noqa: N802 - gRPC's
        self, request_iterator: Iterator[pb.PlaceBatchRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.PlaceBatchResponse]:
        """Plan the gangs of each message together, in what those before it have left."""
        snapshot = known(self._published)
        names: set[str] = set()
        found: BatchPlacement | None = None
        for message in request_iterator:
            if found is not None:
                snapshot = found.snapshot
            found = self._planned(snapshot, self._batch_of(message, names), context)
            render = placement_message if message.explain else brief_message
            yield from _parts([render(one) for one in found.placements])

    def Candidates(  # noqa: N802 - gRPC's
        self, request: pb.CandidatesRequest, context: grpc.ServicerContext
    ) -> pb.CandidatesResponse:
        """List sets of nodes, none of which share one, best first."""
        if not 0 <= request.max_candidates <= MOST_CANDIDATES:
            problem = f"expected 0 to {MOST_CANDIDATES}, got {request.max_candidates}"
            raise refused(FailureKind.INVALID_REQUEST, problem, "max_candidates")
        asked = asked_of(request.spec, parse=self._parse)
        snapshot = anchored(known(self._published), asked, request)
        response = pb.CandidatesResponse()
        for _ in range(request.max_candidates or CANDIDATES):
            found = self._placed(snapshot, asked, context)
            if not found.is_feasible:
                if not response.candidates:
                    response.infeasible.CopyFrom(placement_message(found))
                return response
            columns = _columns(snapshot, found)
            response.candidates.append(_candidate(snapshot, found, columns))
            snapshot = _closed(snapshot, columns)
        response.has_more = True
        return response

    def Capacity(  # noqa: N802 - gRPC's
        self, request: pb.CapacityRequest, context: grpc.ServicerContext
    ) -> pb.CapacityResponse:
        """Count the pods that fit."""
        del context
        size, snapshot = size_of(request), known(self._published)
        revision = self._published.revised(snapshot.tree).revision
        start = _start(request, revision) if request.page_token else 0
        tier = request.tier if request.HasField("tier") else snapshot.levels.tiers[1]
        height = height_of(snapshot, tier)
        if height is None:
            problem = f"the tree has no tier {show(tier)}"
            raise refused(FailureKind.INVALID_REQUEST, problem, "tier")
        room = room_for(snapshot, _pod_of(request), priority=request.priority)
        page = fill(
            (
                pb.DomainCapacity(
                    domain=one.name, nodes=one.num_nodes, usable_nodes=one.num_usable, pods=one.pods
                )
                for one in units_at(room, height, start=start, most=size)
            ),
            size,
        )
        stop = start + len(page)
        has_more = stop < num_units(snapshot, height)
        return pb.CapacityResponse(
            revision=revision,
            domains=page,
            tiers=[
                pb.TierCapacity(
                    tier=row.name, domains=row.num_units, pods=row.pods, most_pods=row.most
                )
                for row in tiers_of(room)
            ],
            next_page_token=render_token(request, [revision, stop]) if has_more else "",
        )

    def Reserve(  # noqa: N802 - gRPC's
        self, request: pb.ReserveRequest, context: grpc.ServicerContext
    ) -> pb.ReserveResponse:
        """Keep the nodes of a gang for a while."""
        return _or_refused(self._reserver.reserve(request, context))

    def Confirm(  # noqa: N802 - gRPC's
        self, request: pb.ConfirmRequest, context: grpc.ServicerContext
    ) -> pb.ConfirmResponse:
        """Let a reservation last."""
        return _or_refused(self._reserver.confirm(request, context))

    def Release(  # noqa: N802 - gRPC's
        self, request: pb.ReleaseRequest, context: grpc.ServicerContext
    ) -> pb.ReleaseResponse:
        """Give nodes back."""
        return _or_refused(self._reserver.release(request, context))

    @property
    def _reserver(self) -> Reserving:
        if self._reserving is None:
            raise refused(FailureKind.UNSUPPORTED_REQUEST, "this server keeps no reservations")
        return self._reserving

    def _batch_of(self, message: pb.PlaceBatchRequest, names: set[str]) -> list[PlacementRequest]:
        """Return the gangs of a message, whose names no other one of the stream has."""
        if len(message.specs) > MOST_SPECS:
            problem = f"expected at most {MOST_SPECS}, got {len(message.specs)}"
            raise refused(FailureKind.INVALID_REQUEST, problem, "specs")
        found = []
        for at, spec in enumerate(message.specs):
            asked = asked_of(spec, f"specs[{at}]", parse=self._parse)
            if asked.gang in names:
                problem = f"two gangs of this stream are named {show(asked.gang)}"
                raise refused(FailureKind.INVALID_REQUEST, problem, f"specs[{at}].gang")
            names.add(asked.gang)
            found.append(asked)
        if len(names) > MOST_GANGS:
            problem = f"expected at most {MOST_GANGS} gangs on one stream: open another one"
            raise refused(FailureKind.INVALID_REQUEST, problem, "specs")
        return found

    def _planned(
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
            self._on_query(_result_of(one), took_s)
        return found

    def _placed(
        self, snapshot: Snapshot, asked: PlacementRequest, context: grpc.ServicerContext
    ) -> Placement:
        return placed(snapshot, asked, context.time_remaining(), clock=self._clock)


def known(published: Published) -> Snapshot:
    """Return the newest snapshot.

    Raises:
        RefusedError: there is none yet.
    """
    snapshot = published.snapshot
    if snapshot is None:
        raise refused(FailureKind.TREE_UNKNOWN, "the tree is not known yet; try again")
    return snapshot


def asked_of(
    spec: pb.PlacementSpec,
    path: str = "spec",
    *,
    parse: Callable[[pb.PlacementSpec], PlacementRequest] = request_of,
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
        return parse(spec)
    except PlacementRequestError as error:
        raise refusal_of(error, path) from error


def placed(
    snapshot: Snapshot, asked: PlacementRequest, remaining_s: float, *, clock: Callable[[], float]
) -> Placement:
    """Return the best placement that is found in most of the time that remains."""
    budget_s = max(remaining_s * (1 - REPLY_SHARE), 0.0)
    return place(snapshot, asked.within(budget_s), clock=clock)


def refusal_of(error: PlacementRequestError, path: str) -> RefusedError:
    """Return what ends a call whose request is wrong."""
    return refused(FailureKind.INVALID_REQUEST, error.problem, f"{path}.{error.field}")


def _result_of(placement: Placement) -> QueryResult:
    return QueryResult.PLACED if placement.is_feasible else QueryResult.INFEASIBLE


def _failed_result(error: BaseException) -> QueryResult:
    if not isinstance(error, RefusedError):
        return QueryResult.FAILED
    return _RESULTS.get(error.failure.kind, QueryResult.REFUSED)


def _parts(placements: Sequence[pb.Placement]) -> Iterator[pb.PlaceBatchResponse]:
    pages = list(split(placements, MOST_SPECS)) or [[]]
    for at, page in enumerate(pages, 1):
        yield pb.PlaceBatchResponse(placements=page, is_last=at == len(pages))


def _columns(snapshot: Snapshot, found: Placement) -> list[int]:
    """Return the nodes of a placement, in tree order."""
    nodes = {node for row in found.assignment.values() for node in row if node is not None}
    return sorted(snapshot.position[node] for node in nodes)


def _closed(snapshot: Snapshot, columns: Sequence[int]) -> Snapshot:
    """Return the snapshot as if some nodes took no more pods."""
    schedulable = snapshot.schedulable.copy()
    schedulable[list(columns)] = False
    return replace(snapshot, schedulable=schedulable, counted=Counted())


def _candidate(snapshot: Snapshot, found: Placement, columns: Sequence[int]) -> pb.Candidate:
    return pb.Candidate(
        nodes=[snapshot.specs[at].name for at in columns],
        assignment=assignment_messages(found),
        tier=found.tier or "",
        objective=objective_messages(found),
        proved=found.is_proved,
    )


def _start(request: pb.CapacityRequest, revision: str) -> int:
    """Return the first row of a page of the tree that is known now."""
    begun, start = parse_token(request, request.page_token, (str, int))
    if begun != revision:
        problem = "the tree is another one by now: begin anew"
        raise refused(FailureKind.PAGE_TOKEN_STALE, problem, "page_token")
    return int(start)


def _pod_of(request: pb.CapacityRequest) -> Group:
    """Return what is asked for as a group of one pod, judged as any other."""
    group = pb.Group(
        name="pod", count=1, node_selector=request.node_selector, tolerations=request.tolerations
    )
    if request.HasField("request"):
        group.request.CopyFrom(request.request)
    try:
        (pod,) = request_of(pb.PlacementSpec(groups=[group])).groups
    except PlacementRequestError as error:
        field = error.field.removeprefix("groups[0].")
        raise refused(FailureKind.INVALID_REQUEST, error.problem, field) from error
    if not any(quantity for _, quantity in pod.request):
        problem = "expected a quantity above 0: of pods that take nothing any number fits"
        raise refused(FailureKind.INVALID_REQUEST, problem, "request")
    return pod


def _or_refused(answer: AnswerT | Failure) -> AnswerT:
    if isinstance(answer, Failure):
        raise RefusedError(answer)
    return answer
