"""Typed clients of both services: values as requests and answers, errors of this project.

Repeating a call is safe for every method, so transient failures are retried within the deadline,
and a watch continues where it was cut.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from generator.placement.answer import Placement
from generator.placement.cluster.nodes import RunningGang
from generator.rpc.client.connection import (
    Connection,
    PlacementServerError,
    RefusedCallError,
    Retries,
    ServerDeadlineError,
    check_size,
)
from generator.rpc.limits import MAX_MESSAGE_BYTES
from generator.rpc.messages.answers import decode_assignments, decode_objective, decode_placement
from generator.rpc.messages.requests import encode_request
from generator.rpc.messages.trees import TreeAssembler, decode_finding
from generator.rpc.published_state import TreeRevision
from generator.rpc.reported_pods import encode_running_pods
from generator.rpc.status_errors import FailureKind
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.rpc.toponaut.v1 import placement_pb2_grpc, topology_pb2_grpc
from generator.rpc.toponaut.v1 import topology_pb2 as tb
from topology.model.errors import ConfigError
from topology.model.facts import Finding

__all__ = [
    "Candidate",
    "PlacementClient",
    "PlacementServerError",
    "Retries",
    "TopologyClient",
]

_Message = TypeVar("_Message")
_Value = TypeVar("_Value")
MAX_BATCH_GANGS: Final = 256
"""Gangs per message of a batch."""
_ROW_OVERHEAD_BYTES: Final = 8
"""Upper bound of the framing around each gang of a message, and around all of them."""
_MAX_BATCH_BYTES: Final = MAX_MESSAGE_BYTES - 2 * _ROW_OVERHEAD_BYTES
_RESUME_DELAY_S: Final = 0.5
"""Delay before a watch that was cut continues."""


class Candidate(NamedTuple):
    """A set of nodes that can hold a gang."""

    nodes: tuple[str, ...]
    """In tree order."""
    assignment: Mapping[str, tuple[str | None, ...]]
    tier: str
    objective: Mapping[str, object]
    is_proved: bool


class PlacementClient(Connection):
    """Requests placements and reservations."""

    def place(
        self,
        document: Mapping[str, Any],
        running: RunningGang | None = None,
        *,
        take_running: bool = False,
    ) -> Placement:
        """Request a placement.

        Args:
            document: of kind PlacementRequest.
            running: pods of the gang that run already, and stay.
            take_running: whether the server must subtract them from the free capacity.

        Raises:
            TopologyError: as `call`.
        """
        message = pb.PlaceRequest(
            spec=encode_request(document),
            running=encode_running_pods(running),
            take_running=take_running,
        )
        placement = self.call(self._stub.Place, message).placement
        return _decode(decode_placement, placement, self.address)

    def place_batch(
        self, documents: Iterable[Mapping[str, Any]], *, explain: bool = False
    ) -> Iterator[Placement]:
        """Request placements of many gangs, in their order; their names must be unique.

        Without `explain` a placement has no objective and no domains. A failure in the middle is
        not retried, because the caller already has some of the answers. The error of a request that
        cannot be sent, or of `documents` itself, is raised after the earlier answers.

        Raises:
            TopologyError: as `call`.
        """
        failures: list[BaseException] = []
        messages = _split_batches(documents, failures, explain=explain)
        first = next(messages, None)
        if first is not None:
            sent = chain([first], messages)
            for response in self.stream(self._stub.PlaceBatch, sent, self.timeout_s):
                for placement in response.placements:
                    yield _decode(decode_placement, placement, self.address)
        if failures:
            raise failures[0]

    def candidates(
        self, document: Mapping[str, Any], max_candidates: int = 0
    ) -> tuple[Candidate, ...]:
        """Request sets of nodes, best first; empty if the gang does not fit.

        Raises:
            TopologyError: as `call`.
        """
        message = pb.CandidatesRequest(spec=encode_request(document), max_candidates=max_candidates)
        return tuple(
            Candidate(
                tuple(row.nodes),
                decode_assignments(row.assignment),
                row.tier,
                decode_objective(row.objective),
                row.proved,
            )
            for row in self.call(self._stub.Candidates, message).candidates
        )

    def capacity(self, request: pb.CapacityRequest) -> pb.CapacityResponse:
        """Request one page of free capacity.

        Raises:
            TopologyError: as `call`.
        """
        return self.call(self._stub.Capacity, request)

    def reserve(self, request: pb.ReserveRequest) -> pb.ReserveResponse:
        """Reserve nodes for a gang.

        Raises:
            TopologyError: as `call`.
        """
        return self.call(self._stub.Reserve, request)

    def confirm(self, request: pb.ConfirmRequest) -> pb.ConfirmResponse:
        """Confirm a reservation, so that it lasts until it is released.

        Raises:
            TopologyError: as `call`.
        """
        return self.call(self._stub.Confirm, request)

    def release(self, request: pb.ReleaseRequest) -> pb.ReleaseResponse:
        """Release the nodes of a reservation.

        Raises:
            TopologyError: as `call`.
        """
        return self.call(self._stub.Release, request)

    @property
    def _stub(self) -> placement_pb2_grpc.PlacementServiceStub:
        return placement_pb2_grpc.PlacementServiceStub(self.channel)


class TopologyClient(Connection):
    """Requests the tree, watches and findings."""

    def tree(self) -> TreeRevision:
        """Request the whole tree; start again if the server no longer stores the tree of its pages.

        Raises:
            TopologyError: as `call`.
        """
        while True:
            parts, request = TreeAssembler(), tb.GetTopologyRequest()
            try:
                while True:
                    page = self.call(self._stub.GetTopology, request)
                    parts.put(page.domains, page.unplaced)
                    request.page_token = page.next_page_token
                    if not page.next_page_token:
                        return TreeRevision(parts.build_tree(page.plane, page.tiers), page.revision)
            except RefusedCallError as error:
                if error.kind is not FailureKind.PAGE_TOKEN_STALE:
                    raise

    def watch(self, timeout_s: float) -> Generator[TreeRevision, None, None]:
        """Yield the tree, and each newer tree, until the time is up.

        Raises:
            TopologyError: as `call`, before the first tree; a later cut is retried.
        """
        parts, revision = TreeAssembler(), ""
        ends_at = time.monotonic() + timeout_s
        while (left_s := ends_at - time.monotonic()) > 0:
            request = tb.WatchTopologyRequest(revision=revision)
            try:
                for step in self.stream(self._stub.WatchTopology, request, left_s):
                    parts.remove(step.removed_domains, step.removed_unplaced)
                    parts.put(step.domains, step.unplaced)
                    if step.kind == tb.WATCH_KIND_SYNCED:
                        revision = step.revision
                        yield TreeRevision(parts.build_tree(step.plane, step.tiers), revision)
            except ServerDeadlineError:
                return
            except RefusedCallError as error:
                if error.kind is FailureKind.REVISION_COMPACTED:
                    parts, revision = TreeAssembler(), ""
                elif not revision:
                    raise
            except (ConfigError, PlacementServerError):
                if not revision:
                    raise
            self.pause(_RESUME_DELAY_S)

    def watch_feasible(
        self, document: Mapping[str, Any], timeout_s: float
    ) -> Generator[Placement, None, None]:
        """Yield the answer to a request, and again each time its feasibility changes.

        Raises:
            TopologyError: as `call`.
        """
        message = tb.WatchFeasibleRequest(spec=encode_request(document))
        try:
            for response in self.stream(self._stub.WatchFeasible, message, timeout_s):
                yield _decode(decode_placement, response.placement, self.address)
        except ServerDeadlineError:
            return

    def findings(self, kinds: Iterable[str] = ()) -> tuple[Finding, ...]:
        """Request all findings, or those of some kinds.

        Raises:
            TopologyError: as `call`.
        """
        findings: list[Finding] = []
        request = tb.ListFindingsRequest(kinds=kinds)
        while True:
            page = self.call(self._stub.ListFindings, request)
            findings += [
                _decode(decode_finding, message, self.address) for message in page.findings
            ]
            request.page_token = page.next_page_token
            if not page.next_page_token:
                return tuple(findings)

    @property
    def _stub(self) -> topology_pb2_grpc.TopologyServiceStub:
        return topology_pb2_grpc.TopologyServiceStub(self.channel)


def _split_batches(
    documents: Iterable[Mapping[str, Any]], failures: list[BaseException], *, explain: bool
) -> Iterator[pb.PlaceBatchRequest]:
    """Yield requests in messages within the size limit, up to the first request that fails.

    The exception is stored in `failures`, because gRPC would not pass it on.
    """
    specs: list[pb.PlacementSpec] = []
    num_bytes = 0
    try:
        for document in documents:
            spec = encode_request(document)
            check_size(spec, _MAX_BATCH_BYTES)
            spec_bytes = spec.ByteSize() + _ROW_OVERHEAD_BYTES
            if len(specs) == MAX_BATCH_GANGS or num_bytes + spec_bytes > _MAX_BATCH_BYTES:
                yield pb.PlaceBatchRequest(specs=specs, explain=explain)
                specs, num_bytes = [], 0
            specs.append(spec)
            num_bytes += spec_bytes
    except GeneratorExit:
        raise
    except BaseException as error:  # noqa: BLE001 - errors of the caller's iterable go to the caller
        failures.append(error)
    if specs:
        yield pb.PlaceBatchRequest(specs=specs, explain=explain)


def _decode(read: Callable[[_Message], _Value], message: _Message, address: str) -> _Value:
    """Return the value of a message; a server of another version may send unknown values."""
    try:
        return read(message)
    except ValueError as error:
        problem = f"the server at {address} has another version: {error}"
        raise PlacementServerError(problem) from error
