"""Runs the election of sweepers each round; writes the result only when it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from generator.ingest.host_evidence import HostPort, SweepReach
from generator.ingest.named_sweepers import NamedSweepers
from generator.ingest.sweep_choice import UsedSweep
from generator.observe.sweep_election import confirm_sweeps, elect_sweepers
from generator.reconcile.settings import FabricRead
from topology.model.errors import ConfigError, KubeError, StoreError
from topology.reports.fabric_status import FabricStatus, parse_fabric
from topology.reports.packed_reports import PackedReport

log = logging.getLogger(__name__)


class SweepElection:
    """Elects sweepers from the reports of a round; agents read the result in the Fabric object."""

    def __init__(
        self,
        write: Callable[[FabricStatus], None],
        *,
        period: timedelta,
        now: Callable[[], datetime],
        has_agent_tokens: bool = False,
    ) -> None:
        """Start without an election.

        Args:
            write: writes the elected sweepers into the status of the Fabric object.
            period: how often agents report.
            now: the clock.
            has_agent_tokens: whether only the sweeps of named nodes count, as in a cluster.
        """
        self._write = write
        self._period = period
        self._now = now
        self.named = NamedSweepers(has_agent_tokens=has_agent_tokens)
        """The nodes whose sweeps count, as last read or elected."""
        self._problem: str | None = None
        self._reach_ranks: dict[tuple[str, str], dict[HostPort, int]] = {}
        """By subnet and node: ports whose sweep showed little, and how little."""

    def read(self, fabric: FabricRead, listed: Iterable[str] = ()) -> bool:
        """Read the named nodes; return False, and log once, if the Fabric object is unusable.

        Args:
            fabric: the Fabric object; if it could not be read, the last one counts.
            listed: the nodes that a person allows to sweep.
        """
        problem = next(map(str, fabric.problems), None)
        try:
            if problem is None:
                document = fabric.document
                status = parse_fabric(document) if document else FabricStatus()
                self.named = replace(self.named, status=status, listed=tuple(listed))
        except ConfigError as error:
            problem = str(error)
        self._log_problem(problem)
        return problem is None

    def elect(
        self, reports: Iterable[PackedReport], unready: Collection[str] | None = None
    ) -> None:
        """Elect sweepers and write them if they changed; log a failure once.

        Args:
            reports: all reports.
            unready: nodes whose agent is not ready; None if only the ages of reports show that.
        """
        elected = elect_sweepers(
            reports,
            named=self.named,
            now=self._now(),
            period=self._period if unready is None else None,
            unready=unready or (),
            reach_ranks=self._reach_ranks,
        )
        before = self.named.status.sweepers
        if self._replace(elected):
            for sweeper in elected.sweepers:
                if sweeper not in before:
                    log.info("sweeper chosen", extra=sweeper.model_dump(mode="json"))

    def record_reaches(self, reaches: Iterable[SweepReach]) -> None:
        """Remember the ports that see little of their subnet, so that others are elected.

        A port that sees more in a later sweep may be elected again.
        """
        for reach in reaches:
            key = (reach.subnet, reach.node)
            ranks = self._reach_ranks.get(key, {}) | dict.fromkeys(reach.seen, reach.rank)
            self._reach_ranks[key] = {port: rank for port, rank in ranks.items() if rank}
            if not self._reach_ranks[key]:
                del self._reach_ranks[key]

    def confirm(self, used: Iterable[UsedSweep], *, is_in_sync: bool) -> None:
        """Write which node's sweep of each subnet counts, if that changed.

        Args:
            used: the sweeps of this round.
            is_in_sync: whether the HyperNodes agree with the tree of this round.
        """
        self._replace(confirm_sweeps(self.named.status, used, is_in_sync=is_in_sync))

    def _replace(self, status: FabricStatus) -> bool:
        """Write a status if it differs; return whether it was written."""
        if status == self.named.status:
            return False
        try:
            self._write(status)
        except (KubeError, StoreError) as error:
            self._log_problem(str(error))
            return False
        self.named = replace(self.named, status=status)
        return True

    def _log_problem(self, problem: str | None) -> None:
        if problem is not None and problem != self._problem:
            log.error("election failed", extra={"error": problem})
        self._problem = problem
