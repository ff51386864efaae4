"""What queries see: the newest snapshot and findings, and the trees of a while ago by revision.

A revision is a digest of a tree, so replicas that see the same tree call it the same: what one of
them began, another can go on with.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Final, NamedTuple

from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.result import RoundOutcome
from topology.model.facts import Finding
from topology.model.tree import TopologyTree

MAX_TREES: Final = 16
"""That are remembered, so that pages and streams can go on where they were left."""


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
            snapshot: of the cluster.
            occupied: returns the newest that was set with what is reserved at the moment; None:
                nothing ever is.
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
        """The newest; None until the first tree is known."""
        return self._snapshot if self._read_occupied is None else self._read_occupied()

    @snapshot.setter
    def snapshot(self, snapshot: Snapshot | None) -> None:
        with self._changed:
            self._snapshot = snapshot
            if snapshot is not None and not (self._trees and self._trees[-1] is snapshot.tree):
                self._trees.append(snapshot.tree)
                kept = {id(tree) for tree in self._trees}
                self._revised = {at: one for at, one in self._revised.items() if at in kept}
            self._version += 1
            self._changed.notify_all()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of the last round that saw anything, sorted by kind, device and port."""
        return self._findings

    def on_round(self, outcome: RoundOutcome) -> None:
        """Take the findings of a round."""
        if not outcome.is_failed:
            self._findings = outcome.findings

    def read_newest(self) -> TreeRevision | None:
        """Return the tree that placements are made on; None while none is known."""
        snapshot = self._snapshot
        return None if snapshot is None else self.get_revision(snapshot.tree)

    def get_revision(self, tree: TopologyTree) -> TreeRevision:
        """Return a tree with its revision; O(nodes) the first time, then O(1)."""
        known = self._revised.get(id(tree))
        if known is not None and known.tree is tree:
            return known
        made = TreeRevision(tree, hash_tree(tree))
        with self._changed:
            if any(one is tree for one in self._trees):
                self._revised[id(tree)] = made
        return made

    def find_revision(self, revision: str) -> TreeRevision | None:
        """Return the tree of a revision, the newest of equal ones; None where it is forgotten."""
        with self._changed:
            trees = tuple(self._trees)
        found = (self.get_revision(tree) for tree in reversed(trees))
        return next((one for one in found if one.revision == revision), None)

    def end_waits(self) -> None:
        """Let all who wait return."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def notify_changed(self) -> None:
        """Tell that the snapshot is another one, though nobody set it: what is kept for whom."""
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def wake_waiters(self) -> None:
        """Let all who wait look whether they are over."""
        with self._changed:
            self._changed.notify_all()

    @property
    def is_ended(self) -> bool:
        """Whether nothing new will come."""
        return self._is_ended

    @property
    def version(self) -> int:
        """Grows with each snapshot."""
        return self._version

    def wait(self, seen: int, *, is_over: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a version beyond the one seen; return whether it is there.

        Returns False where the time, the server or the caller is over; `wake` has that seen.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._version > seen or self._is_ended or is_over(), timeout_s
            )
            return self._version > seen and not self._is_ended and not is_over()


def hash_tree(tree: TopologyTree) -> str:
    """Return the digest of a tree; equal trees have equal ones. O(nodes + domains)."""
    domains = [
        (one.name, one.tier, one.parent, one.start, one.stop, len(one.nodes), one.switches)
        for one in tree.domains
    ]
    margins = [one.margin for one in tree.domains]
    whole = [tree.plane, tree.tiers, domains, margins, tree.nodes, tree.unplaced]
    raw = json.dumps(whole, separators=(",", ":")).encode()
    return hashlib.blake2b(raw, digest_size=12).hexdigest()
