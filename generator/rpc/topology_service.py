"""TopologyService: returns the tree in pages, its changes, whether a gang fits, and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Final

import grpc

from generator.placement.request import PlacementRequest
from generator.rpc.auth.authentication import identify_caller
from generator.rpc.limits import MAX_STREAMS
from generator.rpc.messages.answers import encode_placement
from generator.rpc.messages.pages import (
    STREAM_PART_BYTES,
    fill_page,
    parse_page_size,
    parse_token,
    render_token,
    split_pages,
)
from generator.rpc.messages.trees import (
    SEVERITIES,
    compare_trees,
    count_rows,
    encode_finding,
    encode_tree_rows,
)
from generator.rpc.placement_service import CallSearch, decode_request_at
from generator.rpc.published_state import PublishedState, TreeRevision
from generator.rpc.status_errors import FailureKind, build_abort
from generator.rpc.toponaut.v1 import topology_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2_grpc
from generator.rpc.toponaut.v1.placement_pb2 import UnplacedNode
from runtime.fair_share import FairShare
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind

SEARCH_BUDGET_S: Final = 1.0
"""Limit of each search for a waiting gang, because many callers may wait."""
_SEARCH_GRACE_S: Final = 5.0
"""gRPC itself ends a call at its deadline and reports that; the wait outlasts it by this time."""
TreeRow = pb.Domain | UnplacedNode


class TopologyServicer(topology_pb2_grpc.TopologyServiceServicer):
    """Answers calls from the published state."""

    def __init__(self, published: PublishedState, clock: Callable[[], float]) -> None:
        """Store the published state and the clock of searches."""
        self._published = published
        self._clock = clock
        self._searches = FairShare(
            1, per_caller=1, max_waiting=MAX_STREAMS, waiting_per_caller=MAX_STREAMS
        )
        """One search for a waiting gang at a time: all waiting calls wake at once, but must not
        delay calls for placements."""

    def GetTopology(  # noqa: N802 - gRPC's
        self, request: pb.GetTopologyRequest, context: grpc.ServicerContext
    ) -> pb.GetTopologyResponse:
        """Return a page of the tree; later pages use the tree of the first page."""
        del context
        size, start = parse_page_size(request), 0
        tree_revision = self._require_newest()
        if request.page_token:
            revision, start = parse_token(request, request.page_token, (str, int))
            tree_revision = self._require_revision(revision)
        rows = fill_page(encode_tree_rows(tree_revision.tree, start), size)
        stop = start + len(rows)
        has_more = stop < count_rows(tree_revision.tree)
        return pb.GetTopologyResponse(
            revision=tree_revision.revision,
            plane=tree_revision.tree.plane,
            tiers=tree_revision.tree.tiers,
            domains=_select_domains(rows),
            unplaced=_select_unplaced(rows),
            next_page_token=render_token(request, [tree_revision.revision, stop])
            if has_more
            else "",
        )

    def WatchTopology(  # noqa: N802 - gRPC's
        self, request: pb.WatchTopologyRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchTopologyResponse]:
        """Send the tree, then each newer tree as a change from the one sent before."""
        sent_revision, is_first = request.revision, True
        for _ in self._wait_for_changes(context):
            newest = self._require_newest()
            if newest.revision != sent_revision:
                yield from self._encode_steps(sent_revision, newest)
            if is_first or newest.revision != sent_revision:
                yield _encode_synced(newest)
            sent_revision, is_first = newest.revision, False

    def WatchFeasible(  # noqa: N802 - gRPC's
        self, request: pb.WatchFeasibleRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchFeasibleResponse]:
        """Send whether a gang fits, at once and each time that this changes."""
        caller = identify_caller(context)
        return self._watch_gang(decode_request_at(request.spec), context, caller)

    def _watch_gang(
        self, placement_request: PlacementRequest, context: grpc.ServicerContext, caller: str
    ) -> Iterator[pb.WatchFeasibleResponse]:
        was_feasible: bool | None = None
        search = CallSearch(context, self._clock)
        for _ in self._wait_for_changes(context):
            snapshot = self._published.require_snapshot()
            with self._searches.hold(
                caller, timeout_s=context.time_remaining(), is_over=search.is_cancelled
            ) as has_slot:
                if not has_slot:
                    return
                search.begin(SEARCH_BUDGET_S)
                placement = search.place(snapshot, placement_request)
            if placement.is_feasible is not was_feasible:
                yield pb.WatchFeasibleResponse(
                    placement=encode_placement(placement),
                    revision=self._published.get_revision(snapshot.tree).revision,
                )
            was_feasible = placement.is_feasible

    def ListFindings(  # noqa: N802 - gRPC's
        self, request: pb.ListFindingsRequest, context: grpc.ServicerContext
    ) -> pb.ListFindingsResponse:
        """Return a page of the findings; the next page starts after its last finding."""
        del context
        size, after = parse_page_size(request), ["", "", "", ""]
        if request.page_token:
            after = parse_token(request, request.page_token, (str, str, str, str))
        self._published.require_snapshot()
        kinds = _decode_kinds(request)
        selected = (
            finding
            for finding in self._published.findings
            if finding.kind in kinds and SEVERITIES[finding.severity] >= request.min_severity
        )
        rest = sorted(
            (finding for finding in selected if _find_position(finding) > after), key=_find_position
        )
        rows = fill_page(map(encode_finding, rest), size)
        has_more = len(rows) < len(rest)
        position = _find_position(rest[len(rows) - 1]) if has_more else []
        return pb.ListFindingsResponse(
            findings=rows, next_page_token=render_token(request, position) if has_more else ""
        )

    def _require_newest(self) -> TreeRevision:
        return self._published.get_revision(self._published.require_snapshot().tree)

    def _require_revision(self, revision: str) -> TreeRevision:
        tree_revision = self._published.find_revision(revision)
        if tree_revision is None:
            problem = "the tree of this page is no longer stored: start again with the first page"
            raise build_abort(FailureKind.PAGE_TOKEN_STALE, problem, "page_token")
        return tree_revision

    def _encode_steps(
        self, sent_revision: str, newest: TreeRevision
    ) -> Iterator[pb.WatchTopologyResponse]:
        """Yield the changes from a revision to the newest tree, or the whole tree without one."""
        if not sent_revision:
            for rows in split_pages(encode_tree_rows(newest.tree), max_bytes=STREAM_PART_BYTES):
                yield _encode_step(pb.WATCH_KIND_INITIAL, rows)
            return
        before = self._published.find_revision(sent_revision)
        if before is None:
            problem = "this revision is no longer stored: watch again without a revision"
            raise build_abort(FailureKind.REVISION_COMPACTED, problem, "revision")
        change = compare_trees(before.tree, newest.tree)
        del before
        yield pb.WatchTopologyResponse(
            kind=pb.WATCH_KIND_UPDATE,
            removed_domains=change.removed_domains,
            removed_unplaced=change.removed_unplaced,
        )
        for rows in split_pages(change.changed_rows, max_bytes=STREAM_PART_BYTES):
            yield _encode_step(pb.WATCH_KIND_UPDATE, rows)

    def _wait_for_changes(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Yield at once, and after each published change.

        Changes during the caller's work, or while its client reads, count as one.
        """
        ended = Event()

        def end() -> None:
            ended.set()
            self._published.wake_waiters()

        if not context.add_callback(end):
            return
        while True:
            version = self._published.version
            yield
            timeout_s = context.time_remaining() + _SEARCH_GRACE_S
            if not self._published.wait(version, is_over=ended.is_set, timeout_s=timeout_s):
                break
        if self._published.is_ended:
            raise build_abort(FailureKind.STOPPING, "the server is stopping: use another server")


def _encode_step(kind: pb.WatchKind.ValueType, rows: list[TreeRow]) -> pb.WatchTopologyResponse:
    return pb.WatchTopologyResponse(
        kind=kind, domains=_select_domains(rows), unplaced=_select_unplaced(rows)
    )


def _encode_synced(tree_revision: TreeRevision) -> pb.WatchTopologyResponse:
    return pb.WatchTopologyResponse(
        kind=pb.WATCH_KIND_SYNCED,
        revision=tree_revision.revision,
        plane=tree_revision.tree.plane,
        tiers=tree_revision.tree.tiers,
    )


def _select_domains(rows: list[TreeRow]) -> list[pb.Domain]:
    return [row for row in rows if isinstance(row, pb.Domain)]


def _select_unplaced(rows: list[TreeRow]) -> list[UnplacedNode]:
    return [row for row in rows if isinstance(row, UnplacedNode)]


def _decode_kinds(request: pb.ListFindingsRequest) -> frozenset[str]:
    """Return the requested kinds, or all kinds."""
    known_kinds = frozenset(kind.value for kind in FindingKind)
    for index, kind in enumerate(request.kinds):
        if kind not in known_kinds:
            problem = f"{show(kind)} is not a kind of finding"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, f"kinds[{index}]")
    return frozenset(request.kinds) or known_kinds


def _find_position(finding: Finding) -> list[str]:
    """Return the sort key of a finding."""
    return [finding.kind.value, finding.device, finding.port or "", finding.message]
