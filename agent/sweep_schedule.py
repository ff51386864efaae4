"""When and for what this node sweeps, from round to round.

Told to sweep where it is elected, it reads who is from the Fabric object of the store. Whoever the
object does not name does not sweep, and an object that cannot be read changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

from agent.collection import SWEEP, CollectorRun, RunOutcome
from agent.publish.regular_files import read_document
from agent.settings import AgentSettings, SweepTarget
from runtime.clock import Clock
from topology.model.errors import ConfigError
from topology.reports.fabric_status import FABRIC_NAME, FabricStatus, SweepRole, parse_fabric
from topology.reports.neighbor_report import MAX_SUBNETS, SweepStanding

log = logging.getLogger(__name__)

FABRICS: Final = "fabrics"
_MAX_BYTES: Final = 4 << 20


class ElectionSource(Protocol):
    """Where elections are told."""

    def latest(self) -> FabricStatus:
        """Return what is told now, or was when it could last be read."""
        ...


class FabricFile:
    """The Fabric object in a store, as it was when it could last be read."""

    def __init__(self, store: Path) -> None:
        """Read nothing yet."""
        self._file = store / FABRICS / f"{FABRIC_NAME}.yaml"
        self._last = FabricStatus()
        self._problem: str | None = None

    def latest(self) -> FabricStatus:
        """Return what it says now; why it cannot be read is logged once."""
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
    """The memory of a sweeping node: what it swept, when, and where it could not."""

    settings: AgentSettings
    """As told; `current` adds what the node is elected for."""
    clock: Clock
    fabric: ElectionSource | None = None
    """Where elections are told; None where the node sweeps, or not, without any."""
    handed_over: frozenset[str] = frozenset()
    """Subnets of which another node's sweep counts now, and that we are not elected to sweep."""
    _last: CollectorRun | None = None
    _swept_at_s: float = 0.0
    _targets: tuple[SweepTarget, ...] | None = None
    _lost: dict[str, bool] = field(default_factory=dict)
    """By subnet that could not be swept: whether it refused."""

    def current_settings(self) -> AgentSettings:
        """Return the settings of this round."""
        sweep = self.settings.sweep
        if sweep is None or self.fabric is None:
            return self.settings
        name, status = self.settings.node_name, self.fabric.latest()
        targets = tuple(
            SweepTarget(one.subnet, one.device, one.port)
            for one in status.sweepers
            if one.node == name and one.role is SweepRole.ELECTED
        )
        ours = {target.subnet for target in targets}
        # Until the first sweep of a new one counts, that of its predecessor does.
        others = {one.subnet for one in status.sweeps if one.node != name}
        self.handed_over = frozenset(others - ours)
        return replace(self.settings, sweep=replace(sweep, targets=targets))

    def find_valid_sweep(self, current: AgentSettings) -> CollectorRun | None:
        """Return the sweep that still counts because no new one is due, None where one is."""
        sweep, last = current.sweep, self._last
        if sweep is None or last is None or sweep.targets == () or sweep.targets != self._targets:
            return None
        is_due = self.clock.monotonic() - self._swept_at_s >= sweep.interval_s
        return None if is_due else last

    def record_sweep(self, current: AgentSettings, attempt: CollectorRun) -> SweepStanding:
        """Remember a sweep, be it repeated, and return how this node stands to sweeping."""
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
    """Return the one of the sweep, None where this node has no part in sweeping."""
    return next((one for one in attempts if one.collector == SWEEP), None)


def _find_failed_subnets(
    before: Mapping[str, bool], attempt: CollectorRun, targets: tuple[SweepTarget, ...] | None
) -> dict[str, bool]:
    """Return the subnets that cannot be swept, by whether they refuse.

    A failure stays until the next try, though that be another's: who failed is not elected again
    while there is anybody else. A refusal is that of the fabric and is told by who sweeps alone.
    """
    mine = {target.subnet for target in targets or ()}
    found = dict.fromkeys(attempt.facts.failed_subnets, False) | dict.fromkeys(
        attempt.facts.refused_subnets, True
    )
    if targets is None:
        return found
    is_new = attempt.outcome is not RunOutcome.NO_DATA
    stays = {
        subnet: is_refused
        for subnet, is_refused in before.items()
        if (subnet in mine and not is_new) or (subnet not in mine and not is_refused)
    }
    return stays | found
