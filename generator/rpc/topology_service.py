"""TopologyService: the tree by pages and as it changes, whether a gang fits, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Lock
from typing import Final

import grpc

from generator.rpc.messages.answers import placement_message
from generator.rpc.messages.pages import fill, parse_token, render_token, size_of, split
from generator.rpc.messages.trees import SEVERITIES, change, finding_message, num_rows, tree_rows
from generator.rpc.placement_service import asked_of, known, placed
from generator.rpc.published import Published, Revised
from generator.rpc.status_errors import FailureKind, refused
from generator.rpc.toponaut.v1 import topology_pb2 as pb
from generator.rpc.toponaut.v1 import topology_pb2_grpc
from topology.model.errors import show
from topology.model.facts import Finding, FindingKind

SEARCH_S: Final = 1.0
"""Of each look whether a waiting gang fits: many may wait."""
_OVERTIME_S: Final = 5.0
"""After its deadline gRPC itself ends a call, and tells the caller so."""
Row = pb.Domain | pb.UnplacedNode


class TopologyServicer(topology_pb2_grpc.TopologyServiceServicer):
    """Answers calls from what is published."""

    def __init__(self, published: Published, clock: Callable[[], float]) -> None:
        """Keep where the tree is, and the clock of searches."""
        self._published = published
        self._clock = clock
        self._looking = Lock()
        """Held while one gang that waits is looked at: all of them wake at once, and calls for
        placements must not come last."""

    def GetTopology(  # noqa: N802 - gRPC's
        self, request: pb.GetTopologyRequest, context: grpc.ServicerContext
    ) -> pb.GetTopologyResponse:
        """Return a page of the tree; those after the first are of the tree of the first."""
        del context
        size, start = size_of(request), 0
        seen = self._newest()
        if request.page_token:
            revision, start = parse_token(request, request.page_token, (str, int))
            seen = self._of_page(revision)
        rows = fill(tree_rows(seen.tree, start), size)
        stop = start + len(rows)
        has_more = stop < num_rows(seen.tree)
        return pb.GetTopologyResponse(
            revision=seen.revision,
            plane=seen.tree.plane,
            tiers=seen.tree.tiers,
            domains=_domains(rows),
            unplaced=_unplaced(rows),
            next_page_token=render_token(request, [seen.revision, stop]) if has_more else "",
        )

    def WatchTopology(  # noqa: N802 - gRPC's
        self, request: pb.WatchTopologyRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchTopologyResponse]:
        """Tell the tree, then each newest one as a change of what was told before."""
        told, is_first = request.revision, True
        for _ in self._turns(context):
            newest = self._newest()
            if newest.revision != told:
                yield from self._steps(told, newest)
            if is_first or newest.revision != told:
                yield _synced(newest)
            told, is_first = newest.revision, False

    def WatchFeasible(  # noqa: N802 - gRPC's
        self, request: pb.WatchFeasibleRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.WatchFeasibleResponse]:
        """Tell whether a gang fits, at once and each time that this changes."""
        asked = asked_of(request.spec)
        was_feasible: bool | None = None
        for _ in self._turns(context):
            snapshot = known(self._published)
            with self._looking:
                remaining_s = min(context.time_remaining(), SEARCH_S)
                found = placed(snapshot, asked, remaining_s, clock=self._clock)
            if found.is_feasible is not was_feasible:
                yield pb.WatchFeasibleResponse(
                    placement=placement_message(found),
                    revision=self._published.revised(snapshot.tree).revision,
                )
            was_feasible = found.is_feasible

    def ListFindings(  # noqa: N802 - gRPC's
        self, request: pb.ListFindingsRequest, context: grpc.ServicerContext
    ) -> pb.ListFindingsResponse:
        """Return a page of the findings; the next one goes on after the last of this one."""
        del context
        size, after = size_of(request), ["", "", "", ""]
        if request.page_token:
            after = parse_token(request, request.page_token, (str, str, str, str))
        known(self._published)
        kinds = _kinds_of(request)
        found = (
            one
            for one in self._published.findings
            if one.kind in kinds and SEVERITIES[one.severity] >= request.min_severity
        )
        rest = sorted((one for one in found if _place_of(one) > after), key=_place_of)
        rows = fill(map(finding_message, rest), size)
        has_more = len(rows) < len(rest)
        place = _place_of(rest[len(rows) - 1]) if has_more else []
        return pb.ListFindingsResponse(
            findings=rows, next_page_token=render_token(request, place) if has_more else ""
        )

    def _newest(self) -> Revised:
        return self._published.revised(known(self._published).tree)

    def _of_page(self, revision: str) -> Revised:
        found = self._published.at(revision)
        if found is None:
            problem = "the tree of this page is forgotten: begin anew"
            raise refused(FailureKind.PAGE_TOKEN_STALE, problem, "page_token")
        return found

    def _steps(self, told: str, newest: Revised) -> Iterator[pb.WatchTopologyResponse]:
        """Yield what leads from a revision, or from nothing, to the newest tree."""
        if not told:
            for rows in split(tree_rows(newest.tree)):
                yield _step(pb.WATCH_KIND_INITIAL, rows)
            return
        before = self._published.at(told)
        if before is None:
            problem = "this revision is not known any more: begin without one"
            raise refused(FailureKind.REVISION_COMPACTED, problem, "revision")
        found = change(before.tree, newest.tree)
        del before
        yield pb.WatchTopologyResponse(
            kind=pb.WATCH_KIND_UPDATE,
            removed_domains=found.removed_domains,
            removed_unplaced=found.removed_unplaced,
        )
        for rows in split(found.rows):
            yield _step(pb.WATCH_KIND_UPDATE, rows)

    def _turns(self, context: grpc.ServicerContext) -> Iterator[None]:
        """Yield at once, and each time that something new was published.

        What comes while the caller works, or waits for its own caller, comes as one turn.
        """
        over = Event()

        def end() -> None:
            over.set()
            self._published.wake()

        if not context.add_callback(end):
            return
        while True:
            seen = self._published.version
            yield
            timeout_s = context.time_remaining() + _OVERTIME_S
            if not self._published.wait(seen, is_over=over.is_set, timeout_s=timeout_s):
                break
        if self._published.is_ended:
            raise refused(FailureKind.STOPPING, "the server stops: another one goes on")


def _step(kind: pb.WatchKind.ValueType, rows: list[Row]) -> pb.WatchTopologyResponse:
    return pb.WatchTopologyResponse(kind=kind, domains=_domains(rows), unplaced=_unplaced(rows))


def _synced(seen: Revised) -> pb.WatchTopologyResponse:
    return pb.WatchTopologyResponse(
        kind=pb.WATCH_KIND_SYNCED,
        revision=seen.revision,
        plane=seen.tree.plane,
        tiers=seen.tree.tiers,
    )


def _domains(rows: list[Row]) -> list[pb.Domain]:
    return [row for row in rows if isinstance(row, pb.Domain)]


def _unplaced(rows: list[Row]) -> list[pb.UnplacedNode]:
    return [row for row in rows if isinstance(row, pb.UnplacedNode)]


def _kinds_of(request: pb.ListFindingsRequest) -> frozenset[str]:
    """Return the kinds that are wanted."""
    known_kinds = frozenset(kind.value for kind in FindingKind)
    for at, kind in enumerate(request.kinds):
        if kind not in known_kinds:
            problem = f"{show(kind)} is no kind of finding"
            raise refused(FailureKind.INVALID_REQUEST, problem, f"kinds[{at}]")
    return frozenset(request.kinds) or known_kinds


def _place_of(finding: Finding) -> list[str]:
    """Return where a finding stands among all others."""
    return [finding.kind.value, finding.device, finding.port or "", finding.message]
