"""TopologyService: the tree by pages and as it changes, whether a gang fits, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Final

import grpc

from generator.rpc.messages.answers import encode_placement
from generator.rpc.messages.pages import (
    fill_page,
    parse_token,
    render_token,
    parse_page_size,
    split_pages,
)
from generator.rpc.messages.trees import (
    SEVERITIES,
    compare_trees,
    encode_finding,
    count_rows,
    encode_tree_rows,
)
from generator.rpc.placement_service import decode_request_at, require_snapshot, place_within
from generator.rpc.published import PublishedState, TreeRevision
from generator.rpc.status_errors import FailureKind, build_abort
from generator.rpc.toponaut.v1 import topology_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2_grpc
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind

SEARCH_BUDGET_S: Final = 1.0
"""Of each look whether a waiting gang fits: many may wait."""
_SEARCH_GRACE_S: Final = 5.0
"""After its deadline gRPC itself ends a call, and tells the caller so."""
TreeRow = pb.Domain | pb.UnplacedNode


class TopologyServicer(topology_pb2_grpc.TopologyServiceServicer):
    """Answers calls from what is published."""

    def __init__(self, published: PublishedState, clock: Callable[[], float]) -> None:
        """Keep where the tree is, and the clock of searches."""
        self._published = published
        self._clock = clock
        self._search_lock = Lock()
        """Held while one gang that waits is looked at: all of them wake at once, and calls for
        placements must not come last."""

    def GetTopology(  # noqa: N802 - gRPC's
        self, request: pb.GetTopologyRequest, context: grpc.ServicerContext
    ) -> pb.GetTopologyResponse:
        """Return a page of the tree; those after the first are of the tree of the first."""
        del context
        size, start = parse_page_size(request), 0
        seen = self._require_newest()
        if request.page_token:
            revision, start = parse_token(request, request.page_token, (str, int))
            seen = self._require_revision(revision)
        rows = fill_page(encode_tree_rows(seen.tree, start), size)
        stop = start + len(rows)
        has_more = stop < count_rows(seen.tree)
        return pb.GetTopologyResponse(
            revision=seen.revision,
            plane=seen.tree.plane,
            tiers=seen.tree.tiers,
            domains=_select_domains(rows),
            unplaced=_select_unplaced(rows),
            next_page_token=render_token(request, [seen.revision, stop]) if has_more else "",
        )

    def WatchTopology(  # noqa: N802 - gRPC's
        self, request: pb.WatchTopologyRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchTopologyResponse]:
        """Tell the tree, then each newest one as a change of what was told before."""
        told, is_first = request.revision, True
        for _ in self._wait_for_changes(context):
            newest = self._require_newest()
            if newest.revision != told:
                yield from self._encode_steps(told, newest)
            if is_first or newest.revision != told:
                yield _encode_synced(newest)
            told, is_first = newest.revision, False

    def WatchFeasible(  # noqa: N802 - gRPC's
        self, request: pb.WatchFeasibleRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchFeasibleResponse]:
        """Tell whether a gang fits, at once and each time that this changes."""
        asked = decode_request_at(request.spec)
        was_feasible: bool | None = None
        for _ in self._wait_for_changes(context):
            snapshot = require_snapshot(self._published)
            with self._search_lock:
                remaining_s = min(context.time_remaining(), SEARCH_BUDGET_S)
                found = place_within(snapshot, asked, remaining_s, clock=self._clock)
            if found.is_feasible is not was_feasible:
                yield pb.WatchFeasibleResponse(
                    placement=encode_placement(found),
                    revision=self._published.get_revision(snapshot.tree).revision,
                )
            was_feasible = found.is_feasible

    def ListFindings(  # noqa: N802 - gRPC's
        self, request: pb.ListFindingsRequest, context: grpc.ServicerContext
    ) -> pb.ListFindingsResponse:
        """Return a page of the findings; the next one goes on after the last of this one."""
        del context
        size, after = parse_page_size(request), ["", "", "", ""]
        if request.page_token:
            after = parse_token(request, request.page_token, (str, str, str, str))
        require_snapshot(self._published)
        kinds = _decode_kinds(request)
        found = (
            one
            for one in self._published.findings
            if one.kind in kinds and SEVERITIES[one.severity] >= request.min_severity
        )
        rest = sorted((one for one in found if _find_position(one) > after), key=_find_position)
        rows = fill_page(map(encode_finding, rest), size)
        has_more = len(rows) < len(rest)
        place = _find_position(rest[len(rows) - 1]) if has_more else []
        return pb.ListFindingsResponse(
            findings=rows, next_page_token=render_token(request, place) if has_more else ""
        )

    def _require_newest(self) -> TreeRevision:
        return self._published.get_revision(require_snapshot(self._published).tree)

    def _require_revision(self, revision: str) -> TreeRevision:
        found = self._published.find_revision(revision)
        if found is None:
            problem = "the tree of this page is forgotten: begin anew"
            raise build_abort(FailureKind.PAGE_TOKEN_STALE, problem, "page_token")
        return found

    def _encode_steps(self, told: str, newest: TreeRevision) -> Iterator[pb.WatchTopologyResponse]:
        """Yield what leads from a revision, or from nothing, to the newest tree."""
        if not told:
            for rows in split_pages(encode_tree_rows(newest.tree)):
                yield _encode_step(pb.WATCH_KIND_INITIAL, rows)
            return
        before = self._published.find_revision(told)
        if before is None:
            problem = "this revision is not known any more: begin without one"
            raise build_abort(FailureKind.REVISION_COMPACTED, problem, "revision")
        found = compare_trees(before.tree, newest.tree)
        del before
        yield pb.WatchTopologyResponse(
            kind=pb.WATCH_KIND_UPDATE,
            removed_domains=found.removed_domains,
            removed_unplaced=found.removed_unplaced,
        )
        for rows in split_pages(found.fetch_rows):
            yield _encode_step(pb.WATCH_KIND_UPDATE, rows)

    def _wait_for_changes(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Yield at once, and each time that something new was published.

        What comes while the caller works, or waits for its own caller, comes as one turn.
        """
        over = Event()

        def end() -> None:
            over.set()
            self._published.wake_waiters()

        if not context.add_callback(end):
            return
        while True:
            seen = self._published.version
            yield
            timeout_s = context.time_remaining() + _SEARCH_GRACE_S
            if not self._published.wait(seen, is_over=over.is_set, timeout_s=timeout_s):
                break
        if self._published.is_ended:
            raise build_abort(FailureKind.STOPPING, "the server stops: another one goes on")


def _encode_step(kind: pb.WatchKind.ValueType, rows: list[TreeRow]) -> pb.WatchTopologyResponse:
    return pb.WatchTopologyResponse(
        kind=kind, domains=_select_domains(rows), unplaced=_select_unplaced(rows)
    )


def _encode_synced(seen: TreeRevision) -> pb.WatchTopologyResponse:
    return pb.WatchTopologyResponse(
        kind=pb.WATCH_KIND_SYNCED,
        revision=seen.revision,
        plane=seen.tree.plane,
        tiers=seen.tree.tiers,
    )


def _select_domains(rows: list[TreeRow]) -> list[pb.Domain]:
    return [row for row in rows if isinstance(row, pb.Domain)]


def _select_unplaced(rows: list[TreeRow]) -> list[pb.UnplacedNode]:
    return [row for row in rows if isinstance(row, pb.UnplacedNode)]


def _decode_kinds(request: pb.ListFindingsRequest) -> frozenset[str]:
    """Return the kinds that are wanted."""
    known_kinds = frozenset(kind.value for kind in FindingKind)
    for at, kind in enumerate(request.kinds):
        if kind not in known_kinds:
            problem = f"{show(kind)} is no kind of finding"
            raise build_abort(FailureKind.INVALID_REQUEST, problem, f"kinds[{at}]")
    return frozenset(request.kinds) or known_kinds


def _find_position(finding: Finding) -> list[str]:
    """Return where a finding stands among all others."""
    return [finding.kind.value, finding.device, finding.port or "", finding.message]
