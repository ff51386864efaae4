"""Where a node's reports go, be it a folder or an API server: what a round needs of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from topology.reports.neighbor_report import NeighborReport, SweepPart


class PublishOutcome(StrEnum):
    """What publishing one report did."""

    NONE = "none"
    STATUS = "status"
    """Same facts, newer times or outcomes."""
    SPEC = "spec"
    DEFERRED = "deferred"
    """Not written yet: it is not the time to try again, or there was no more time."""


class Destination(Protocol):
    """Takes the reports of one node; what fails may work later."""

    def last_report(self) -> NeighborReport | None:
        """Return this node's last published report; None when there is none that is readable.

        Raises:
            KubeError: whether there is one is not known.
        """
        ...

    def publish(self, reports: Iterable[NeighborReport]) -> Mapping[str, PublishOutcome]:
        """Write what changed, and return by name what that was.

        Raises:
            StoreError: a file cannot be written; those before it are.
            KubeError: an object cannot be written; those before it are.
        """
        ...

    def read_parts(self) -> Mapping[int, SweepPart | None]:
        """Return the parts of this node's sweeps by number, None for what cannot be read.

        Raises:
            StoreError: the folder cannot be read.
            KubeError: which there are is not known.
        """
        ...

    def withdraw(self, names: Iterable[str]) -> None:
        """Take back parts of sweeps; one that is not there is as good as taken back.

        Raises:
            StoreError: the folder cannot be written.
            KubeError: an object cannot be written.
        """
        ...
