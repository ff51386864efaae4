"""The destination of a node's reports, a folder or an API server, as a round uses it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from topology.reports.neighbor_report import NeighborReport, SweepPart


class PublishOutcome(StrEnum):
    """The result of publishing one report."""

    NONE = "none"
    STATUS = "status"
    """Only times or outcomes changed."""
    SPEC = "spec"
    DEFERRED = "deferred"
    """Not written yet: the cooldown is not over, or the round ran out of time."""


class Destination(Protocol):
    """Stores the reports of one node. A call that fails may be repeated later."""

    def last_report(self) -> NeighborReport | None:
        """Return this node's last published report; None if there is none, or it is unreadable.

        Raises:
            KubeError: the server does not say whether there is one.
        """
        ...

    def publish(self, reports: Iterable[NeighborReport]) -> Mapping[str, PublishOutcome]:
        """Write the reports that changed, and return the result for each name.

        Raises:
            StoreError: a file cannot be written; the files before it are written.
            KubeError: an object cannot be written; the objects before it are written.
        """
        ...

    def read_parts(self) -> Mapping[int, SweepPart | None]:
        """Return the parts of this node's sweeps by number; None for an unreadable part.

        Raises:
            StoreError: the folder cannot be read.
            KubeError: the server does not say which parts there are.
        """
        ...

    def withdraw(self, names: Iterable[str]) -> None:
        """Withdraw parts of sweeps; a name that does not exist is skipped.

        Raises:
            StoreError: the folder cannot be written.
            KubeError: an object cannot be written.
        """
        ...
