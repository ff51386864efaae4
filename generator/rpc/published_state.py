"""`PublishedState`: the newest snapshot and findings, and recent trees by revision.

A revision is a digest of a tree, so replicas with the same tree use the same revision, and a client
can continue on another replica.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Final, NamedTuple

from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.round_results import RoundOutcome
from generator.rpc.status_errors import FailureKind, build_abort
from topology.model.facts import Finding
from topology.model.tree import TopologyTree

MAX_TREES: Final = 16
"""Recent trees that are kept, so that clients can continue pages and streams."""


class TreeRevision(NamedTuple):
    """A tree and its digest."""

    tree: TopologyTree
    revision: str


class PublishedState:
    """The state that queries see; written by the reconcile loop, read by any thread."""

    def __init__(
        self,
        snapshot: Snapshot | None = None,
        *,
        read_occupied: Callable[[], Snapshot | None] | None = None,
    ) -> None:
        """Publish a first snapshot, or nothing until the first tree is known.

        Args:
            snapshot: the snapshot of the cluster.
            read_occupied: returns the newest snapshot with the present reservations; None: there
                are no reservations.
        """
        self._read_occupied = read_occupied
        self._changed = Condition()
        self._version = 0
        self._is_ended = False
        self._findings: tuple[Finding, ...] = ()
        self._trees: deque[TopologyTree] = deque(maxlen=MAX_TREES)
        self._revised: dict[int, TreeRevision] = {}
        self._snapshot: Snapshot | None = None
        self.snapshot = snapshot

    @property
    def snapshot(self) -> Snapshot | None:
        """The newest snapshot; None until the first tree is known."""
        return self._snapshot if self._read_occupied is None else self._read_occupied()

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot | None) -> None:
        with self._changed:
            self._snapshot = snapshot
            if snapshot is not None and not (self._trees and self._trees[-1] is snapshot.tree):
                self._trees.append(snapshot.tree)
                retained_ids = {id(tree) for tree in self._trees}
                self._revised = {
                    tree_id: revision
                    for tree_id, revision in self._revised.items()
                    if tree_id in retained_ids
                }
            self._version += 1
            self._changed.notify_all()

    def require_snapshot(self) -> Snapshot:
        """Return the newest snapshot.

        Raises:
            CallAbortedError: no snapshot is known yet.
        """
        snapshot = self.snapshot
        if snapshot is None:
            raise build_abort(FailureKind.TREE_UNKNOWN, "the tree is not known yet; try again")
        return snapshot

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of the last round that did not fail, sorted by kind, device and port."""
        return self._findings

    def on_round(self, outcome: RoundOutcome) -> None:
        """Store the findings of a round."""
        if not outcome.is_failed:
            self._findings = outcome.findings

    def get_revision(self, tree: TopologyTree) -> TreeRevision:
        """Return a tree with its revision; O(nodes) the first time, then O(1)."""
        cached = self._revised.get(id(tree))
        if cached is not None and cached.tree is tree:
            return cached
        created = TreeRevision(tree, hash_tree(tree))
        with self._changed:
            if any(retained is tree for retained in self._trees):
                self._revised[id(tree)] = created
        return created

    def find_revision(self, revision: str) -> TreeRevision | None:
        """Return the newest tree of a revision; None if it is no longer stored."""
        with self._changed:
            trees = tuple(self._trees)
        revisions = (self.get_revision(tree) for tree in reversed(trees))
        return next((candidate for candidate in revisions if candidate.revision == revision), None)

    def end_waits(self) -> None:
        """Make all waiting threads return."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def notify_changed(self) -> None:
        """Wake waiting threads although no snapshot was set: the reserved nodes have changed."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def wake_waiters(self) -> None:
        """Make all waiting threads check whether their call is over."""
        with self._changed:
            self._changed.notify_all()

    @property
    def is_ended(self) -> bool:
        """Whether the server stops, so that no new version will come."""
        return self._is_ended

    @property
    def version(self) -> int:
        """Version that grows with each change."""
        return self._version

    def wait(self, version: int, *, is_over: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a version after the given one; return whether it has come.

        Returns False if the time, the server or the call is over; `wake_waiters` makes it check.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._version > version or self._is_ended or is_over(), timeout_s
            )
            return self._version > version and not self._is_ended and not is_over()


def hash_tree(tree: TopologyTree) -> str:
    """Return the digest of a tree; equal trees have equal digests. O(nodes + domains)."""
    domains = [
        (
            domain.name,
            domain.tier,
            domain.parent,
            domain.start,
            domain.stop,
            len(domain.nodes),
            domain.switches,
        )
        for domain in tree.domains
    ]
    margins = [domain.margin for domain in tree.domains]
    whole = [tree.plane, tree.tiers, domains, margins, tree.nodes, tree.unplaced]
    raw = json.dumps(whole, separators=(",", ":")).encode()
    return hashlib.blake2b(raw, digest_size=12).hexdigest()
