"""Decides when this node sweeps, and which subnets.

With `--sweep elected`, the node reads from the Fabric object of the store or the cluster which
nodes sweep: the elected node of a subnet, and its spare, whose sweep confirms that of the elected
node. A node that the object does not name does not sweep. If the object cannot be read, the last
known election holds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agent.collection import SWEEP, CollectorRun, RunOutcome
from agent.publish.directory import read_document
from agent.publish.kube.https_client import ApiClient, ApiRequest
from agent.settings import AgentSettings, SweepTarget
from runtime.clock import Clock
from runtime.retry import RefusalStreak
from topology.model.errors import ConfigError, KubeError, KubeNotFound
from topology.reports.fabric_status import FABRIC_NAME, FabricStatus, parse_fabric
from topology.reports.neighbor_report import API_VERSION, MAX_SUBNETS, SweepStanding

log = logging.getLogger(__name__)

FABRICS: Final = "fabrics"
_MAX_BYTES: Final = 4 << 20
# The server answers resource version 0 from its cache; slightly old data does not matter here.
_FABRIC_PATH: Final = f"/apis/{API_VERSION}/fabrics/{FABRIC_NAME}?resourceVersion=0"


class ElectionReader:
    """Reads the Fabric object, and keeps its last status while it cannot be read."""

    def __init__(self, read: Callable[[], object], **place: str) -> None:
        """Read nothing yet.

        Args:
            read: returns the object; None if no request may be sent at present.
            place: the log fields that say where the object is.
        """
        self._read = read
        self._place = place
        self._last = FabricStatus()
        self._problem: str | None = None
        self._refusals = RefusalStreak()

    def latest(self) -> FabricStatus:
        """Return the newest status that could be read; logs a read problem once."""
        problem, refusal = None, None
        try:
            document = self._read()
            if document is None:
                return self._last
            self._last = parse_fabric(document)
        except (FileNotFoundError, KubeNotFound):
            self._last = FabricStatus()
        except (OSError, ValueError, RecursionError, ConfigError, KubeError) as error:
            problem, refusal = str(error), error if isinstance(error, KubeError) else None
        is_passing = self._refusals.record(refusal)
        if problem is not None and problem != self._problem:
            level = logging.INFO if is_passing else logging.WARNING
            log.log(level, "fabric unreadable", extra={**self._place, "error": problem})
        self._problem = None if is_passing else problem
        return self._last


def read_fabric_file(store: Path) -> ElectionReader:
    """Return the reader of the Fabric object in a store."""
    file = store / FABRICS / f"{FABRIC_NAME}.yaml"
    return ElectionReader(lambda: read_document(file, _MAX_BYTES), file=str(file))


def read_cluster_fabric(server: ApiClient) -> ElectionReader:
    """Return the reader of the Fabric object in a cluster."""
    return ElectionReader(
        lambda: None if server.blocking_error else server.call(ApiRequest("GET", _FABRIC_PATH))
    )


@dataclass(slots=True)
class SweepSchedule:
    """The sweeps of this node from round to round: the last sweep, its time, and its failures."""

    settings: AgentSettings
    """From the options; `update_from_election` adds the subnets that the node is elected for."""
    clock: Clock
    fabric: ElectionReader | None = None
    """Reads elections; None if the node sweeps, or does not sweep, without an election."""
    handed_over: frozenset[str] = frozenset()
    """Subnets for which another node's sweep counts, and that this node neither is elected to sweep
    nor is a witness for."""
    _last: CollectorRun | None = None
    _swept_at_s: float = 0.0
    _targets: tuple[SweepTarget, ...] | None = None
    _lost: dict[str, bool] = field(default_factory=dict)
    """Whether the subnet refused, for each subnet that could not be swept."""

    def update_from_election(self) -> AgentSettings:
        """Read the election, if there is one, and return the settings of this round.

        Also sets `handed_over`.
        """
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
        return self.settings._replace(sweep=settings._replace(targets=targets))

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
    kept = {}
    for subnet, is_refused in before.items():
        is_outdated = is_new if subnet in own else is_refused
        if not is_outdated:
            kept[subnet] = is_refused
    return kept | failed
