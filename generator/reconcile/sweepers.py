"""Runs the election of sweepers each round; writes the result only when it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from generator.observe.sweep_election import elect_sweepers
from generator.store.base import FabricRead
from topology.model.errors import ConfigError, KubeError, StoreError
from topology.reports.compact_reports import Report
from topology.reports.fabric_status import FabricStatus, parse_fabric

log = logging.getLogger(__name__)


class SweepElection:
    """Elects sweepers from the reports of a round; agents read the result in the Fabric object."""

    def __init__(
        self,
        write: Callable[[FabricStatus], None],
        *,
        period: timedelta,
        now: Callable[[], datetime],
    ) -> None:
        """Start without an election.

        Args:
            write: writes the elected sweepers into the status of the Fabric object.
            period: how often agents report.
            now: the clock.
        """
        self._write = write
        self._period = period
        self._now = now
        self._problem: str | None = None

    def run(
        self,
        fabric: FabricRead,
        reports: Iterable[Report],
        unready: Collection[str] | None = None,
    ) -> None:
        """Elect sweepers and write them if they changed; log a failure once.

        Args:
            fabric: the Fabric object; if it could not be read, there is no election.
            reports: all reports.
            unready: nodes whose agent is not ready; None if only the ages of reports show that.
        """
        problem = next(map(str, fabric.problems), None)
        try:
            if problem is None:
                self._elect(fabric.document, reports, unready)
        except (ConfigError, KubeError, StoreError) as error:
            problem = str(error)
        if problem is not None and problem != self._problem:
            log.error("election failed", extra={"error": problem})
        self._problem = problem

    def _elect(
        self,
        document: Mapping[str, Any] | None,
        reports: Iterable[Report],
        unready: Collection[str] | None,
    ) -> None:
        before = parse_fabric(document) if document else FabricStatus()
        elected = elect_sweepers(
            reports,
            previous=before,
            now=self._now(),
            period=self._period if unready is None else None,
            unready=unready or (),
        )
        if elected == before:
            return
        self._write(elected)
        for sweeper in elected.sweepers:
            if sweeper not in before.sweepers:
                log.info("sweeper chosen", extra=sweeper.model_dump(mode="json"))
