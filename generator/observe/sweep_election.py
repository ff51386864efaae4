"""Keeps the store's Fabric object telling who sweeps; written only when that changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from datetime import datetime, timedelta

from generator.observe.sweepers import elect
from generator.store.base import ServedStore
from topology.model.errors import ConfigError, KubeError, StoreError
from topology.reports.compact_reports import Report
from topology.reports.fabric_status import FabricStatus, parse_fabric, render_fabric

log = logging.getLogger(__name__)


class Elections:
    """The election of sweepers from round to round; what is elected stands in the store."""

    def __init__(
        self, store: ServedStore, *, period: timedelta, now: Callable[[], datetime]
    ) -> None:
        """Keep the place.

        Args:
            store: whose Fabric object the agents read.
            period: how often agents report.
            now: the clock.
        """
        self._store = store
        self._period = period
        self._now = now
        self._problem: str | None = None

    def hold(self, reports: Iterable[Report], ailing: Collection[str] | None = None) -> None:
        """Elect by what is reported now, and tell the agents; what goes wrong is logged once.

        Args:
            reports: all that there are.
            ailing: nodes that are known to be silent; None where ages of reports tell it.
        """
        problem = None
        try:
            self._hold(reports, ailing)
        except (ConfigError, KubeError, StoreError) as error:
            problem = str(error)
        if problem is not None and problem != self._problem:
            log.error("election failed", extra={"error": problem})
        self._problem = problem

    def _hold(self, reports: Iterable[Report], ailing: Collection[str] | None) -> None:
        document = self._store.read_fabric()
        before = parse_fabric(document) if document else FabricStatus()
        found = elect(
            reports,
            previous=before,
            now=self._now(),
            period=self._period if ailing is None else None,
            ailing=ailing or (),
        )
        if found == before:
            return
        self._store.write_status(render_fabric(found, document)["status"])
        for sweeper in found.sweepers:
            if sweeper not in before.sweepers:
                log.info("sweeper chosen", extra=sweeper.model_dump(mode="json"))
