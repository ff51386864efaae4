"""Decides when this node sweeps, and which subnets.

With `--sweep elected`, the node reads from the Fabric object of the store which nodes sweep: the
elected node of a subnet, and its spare, whose sweep confirms that of the elected node. A node that
the object does not name does not sweep. If the object cannot be read, the last known election
holds.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from agent.collection import SWEEP, CollectorRun, RunOutcome
from agent.publish.directory import read_document
from agent.settings import AgentSettings, SweepTarget
from runtime.clock import Clock
from topology.model.errors import ConfigError
from topology.reports.fabric_status import FABRIC_NAME, FabricStatus, parse_fabric
from topology.reports.neighbor_report import MAX_SUBNETS, SweepStanding

log = logging.getLogger(__name__)

FABRICS: Final = "fabrics"
_MAX_BYTES: Final = 4 << 20


class ElectionSource(Protocol):
    """Reads the elected sweepers."""

    def latest(self) -> FabricStatus:
        """Return the newest status that could be read."""
        ...


class FabricFile:
    """Reads the Fabric object in a store, and keeps its last status while it is unreadable."""

    def __init__(self, store: Path) -> None:
        """Read nothing yet."""
        self._file = store / FABRICS / f"{FABRIC_NAME}.yaml"
        self._last = FabricStatus()
        self._problem: str | None = None

    def latest(self) -> FabricStatus:
        """Return the newest status that could be read; logs a read problem once."""
        problem = None
        try:
            self._last = parse_fabric(read_document(self._file, _MAX_BYTES))
        except FileNotFoundError:
            self._last = FabricStatus()
        except (OSError, ValueError, RecursionError, ConfigError) as error:
            problem = str(error)
        if problem is not None and problem != self._problem:
            log.warning("fabric unreadable", extra={"file": str(self._file), "error": problem})
        self._problem = problem
        return self._last


@dataclass(slots=True)
class SweepSchedule:
    """The sweeps of this node from round to round: the last sweep, its time, and its failures."""

    settings: AgentSettings
    """From the options; `current_settings` adds the subnets that the node is elected for."""
    clock: Clock
    fabric: ElectionSource | None = None
    """Reads elections; None if the node sweeps, or does not sweep, without an election."""
    handed_over: frozenset[str] = frozenset()
    """Subnets for which another node's sweep counts, and that this node neither is elected to sweep
    nor is a witness for."""
    _last: CollectorRun | None = None
    _swept_at_s: float = 0.0
    _targets: tuple[SweepTarget, ...] | None = None
    _lost: dict[str, bool] = field(default_factory=dict)
    """Whether the subnet refused, for each subnet that could not be swept."""

    def current_settings(self) -> AgentSettings:
        """Return the settings of this round; reads the election if there is one."""
        settings = self.settings.sweep
        if settings is None or self.fabric is None:
            return self.settings
        name, status = self.settings.node_name, self.fabric.latest()
        targets = tuple(
            SweepTarget(sweeper.subnet, sweeper.device, sweeper.port)
            for sweeper in status.sweepers
            if sweeper.node == name
        )
        own = {target.subnet for target in targets}
        own |= {witness.subnet for witness in status.witnesses if witness.node == name}
        # The predecessor's sweep counts until the first sweep of a new sweeper counts.
        others = {sweep.subnet for sweep in status.sweeps if sweep.node != name}
        self.handed_over = frozenset(others - own)
        return replace(self.settings, sweep=replace(settings, targets=targets))

    def find_valid_sweep(self, current: AgentSettings) -> CollectorRun | None:
        """Return the last sweep while no new sweep is due; None if one is due."""
        sweep, last = current.sweep, self._last
        if sweep is None or last is None or sweep.targets == () or sweep.targets != self._targets:
            return None
        is_due = self.clock.monotonic() - self._swept_at_s >= sweep.interval_s
        return None if is_due else last

    def record_sweep(self, current: AgentSettings, attempt: CollectorRun) -> SweepStanding:
        """Record a new or repeated sweep, and return the sweep status of this node's report."""
        if not attempt.is_repeated:
            self._last, self._swept_at_s = attempt, self.clock.monotonic()
            self._targets = current.sweep.targets if current.sweep else None
            self._lost = _find_failed_subnets(self._lost, attempt, self._targets)
        lost = sorted(self._lost.items())
        return SweepStanding(
            able=not attempt.is_absent,
            failed=tuple(subnet for subnet, is_refused in lost if not is_refused)[:MAX_SUBNETS],
            refused=tuple(subnet for subnet, is_refused in lost if is_refused)[:MAX_SUBNETS],
        )


def find_sweep_run(attempts: tuple[CollectorRun, ...]) -> CollectorRun | None:
    """Return the run of the sweep collector, or None if this node does not sweep."""
    return next((attempt for attempt in attempts if attempt.collector == SWEEP), None)


def _find_failed_subnets(
    before: Mapping[str, bool], attempt: CollectorRun, targets: tuple[SweepTarget, ...] | None
) -> dict[str, bool]:
    """Return the subnets that cannot be swept, each with whether it refuses.

    A failure stays recorded until this node tries the subnet again, even while another node sweeps
    it, so that this node is not elected again while there is another candidate. A refusal comes
    from the fabric, so only the node that sweeps the subnet reports it.
    """
    own = {target.subnet for target in targets or ()}
    failed = dict.fromkeys(attempt.facts.failed_subnets, False) | dict.fromkeys(
        attempt.facts.refused_subnets, True
    )
    if targets is None:
        return failed
    is_new = attempt.outcome is not RunOutcome.NO_DATA
    kept = {
        subnet: is_refused
        for subnet, is_refused in before.items()
        if (subnet in own and not is_new) or (subnet not in own and not is_refused)
    }
    return kept | failed
