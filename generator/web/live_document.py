"""The document of the page of a running server, built when a reader asks for it.

A build takes some seconds on a large fabric, so it happens at most once for each state, in the
thread of a reader, and all readers share the result. However often the state changes, builds take
at most a twentieth of the time: between two builds, readers get the last document.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, NamedTuple

from generator.jobs.free_by_domain import count_gpus
from generator.objects.pods import BoundPod, list_gang_nodes
from generator.objects.tree_record import EMPTY_TREE
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.round_results import RoundOutcome
from generator.web.change_view import HeldChange, TreeHistory, build_change_view
from generator.web.job_view import build_job_view
from generator.web.page_document import build_page_document
from runtime.clock import Monotonic
from topology.findings.impact import add_workloads
from topology.model.errors import StoreError
from topology.planes.plane_split import PlaneSplit

log = logging.getLogger(__name__)


REST: Final = 20
"""How many times the duration of a build passes until the next one."""


class PackedDocument(NamedTuple):
    """The document in JSON, compressed, and its tag for caches."""

    content: bytes
    tag: str


class PageSources(NamedTuple):
    """Where the parts of the document come from; each is called in the thread of a reader."""

    find_planes: Callable[[], PlaneSplit | None]
    """Returns the cables of the last observation and their planes."""
    find_snapshot: Callable[[], Snapshot | None]
    """Returns the cluster with its reservations."""
    read_past: Callable[[], TreeHistory | None]
    """Returns the history, None without one; may raise StoreError."""
    approve_command: str
    """The command that approves a plan, without its hash."""


class LiveDocument:
    """The document of the last round; thread-safe."""

    def __init__(self, sources: PageSources, *, clock: Monotonic) -> None:
        """Build nothing yet.

        Args:
            sources: the sources of the parts that are not in the outcome of a round.
            clock: monotonic, in seconds.
        """
        self._sources = sources
        self._clock = clock
        self._next_build_s = 0.0
        """The earliest time of the next build."""
        self._lock = Lock()
        self._outcome: RoundOutcome | None = None
        self._pods: Sequence[BoundPod] | None = None
        self._built: tuple[tuple[object, ...], PackedDocument] | None = None

    def on_round(self, outcome: RoundOutcome) -> None:
        """Receive the outcome of a round; a round that saw nothing changes nothing."""
        if not outcome.is_failed and outcome.tree is not None:
            self._outcome = outcome

    def set_pods(self, pods: Sequence[BoundPod]) -> None:
        """Receive the pods of the gangs that run."""
        self._pods = pods

    def render(self) -> PackedDocument | None:
        """Return the document of the present state; None until the first tree is known."""
        outcome, pods, snapshot = self._outcome, self._pods, self._sources.find_snapshot()
        if outcome is None:
            return None
        key = (outcome.tree, outcome.all_findings, outcome.held, pods, snapshot)
        with self._lock:
            started_s = self._clock()
            if self._built is None or (
                started_s >= self._next_build_s and not _is_same(self._built[0], key)
            ):
                self._built = key, self._build(outcome, pods, snapshot)
                ended_s = self._clock()
                self._next_build_s = ended_s + REST * (ended_s - started_s)
            return self._built[1]

    def _build(
        self, outcome: RoundOutcome, pods: Sequence[BoundPod] | None, snapshot: Snapshot | None
    ) -> PackedDocument:
        if outcome.tree is None:
            raise AssertionError("a document needs a tree")
        past = self._read_past()
        gangs = None if pods is None else list_gang_nodes(pods)
        document = build_page_document(
            outcome.tree,
            self._sources.find_planes(),
            [
                *add_workloads(
                    outcome.findings,
                    outcome.tree,
                    gpus=count_gpus(snapshot.specs) if snapshot else None,
                    gangs=gangs,
                ),
                *outcome.gang_findings,
            ],
            jobs=build_job_view(snapshot, pods) if snapshot else None,
            changes=build_change_view(self._find_held(outcome), past),
        )
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode()
        tag = hashlib.blake2b(text, digest_size=12).hexdigest()
        return PackedDocument(gzip.compress(text, 5, mtime=0), f'"{tag}"')

    def _read_past(self) -> TreeHistory | None:
        try:
            return self._sources.read_past()
        except StoreError as error:
            log.warning("history not read", extra={"error": str(error)})
            return None

    def _find_held(self, outcome: RoundOutcome) -> HeldChange | None:
        if outcome.held is None or outcome.tree is None:
            return None
        before = outcome.decided or EMPTY_TREE
        command = f"{self._sources.approve_command} {outcome.held.hash}"
        return HeldChange(outcome.held, before, outcome.tree, command)


def _is_same(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return all(
        left is right or (index != 0 and not isinstance(left, Snapshot) and left == right)
        for index, (left, right) in enumerate(zip(one, other, strict=True))
    )
