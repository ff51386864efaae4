"""Runs the collectors of this node one after the other, each timed and isolated.

New facts of a collector replace its earlier facts; a collector that fails keeps its last good
facts. So a broken source costs a line in the status, never a part of the tree.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from agent.collectors import firmware_lldp, frames, ib_sweep, ib_sysfs, lldpd, net_sysfs, nvlink
from agent.collectors.probe import (
    Collect,
    CollectedFacts,
    Collector,
    SourceAbsent,
    SourceCutOff,
    SweepFailed,
)
from agent.hidden_ports import keep_hidden_ports, keep_last_neighbors
from agent.node.command import Runner
from agent.node.frame_listener import Listener
from agent.node.sysfs import Sysfs
from agent.settings import AgentSettings, FrameMode
from runtime.clock import Clock
from runtime.stop import Stop
from topology.model.errors import CollectError, show
from topology.model.facts import Device

log = logging.getLogger(__name__)

SWEEP: Final = "ib_sweep"
FRAMES: Final = "frames"
_NET: Final = "net_sysfs"
_LLDPD: Final = "lldpd"
_RDMA: Final = "ib_sysfs"
COLLECTORS: Final[Mapping[str, Collector]] = MappingProxyType(
    {
        _NET: net_sysfs.COLLECTOR,
        _RDMA: ib_sysfs.COLLECTOR,
        _LLDPD: lldpd.COLLECTOR,
        "firmware_lldp": firmware_lldp.COLLECTOR,
        "nvlink": nvlink.COLLECTOR,
        SWEEP: ib_sweep.COLLECTOR,
    }
)
"""In the order in which they run and in which their facts are joined. The frames collector runs
last, because the facts of the others decide whether it listens, and on which ports."""


class RunOutcome(StrEnum):
    """How a run of a collector ended, as in the report's status."""

    OK = "ok"
    NO_DATA = "no-data"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The node that a collection reads: its settings, and the access to the machine."""

    settings: AgentSettings
    runner: Runner
    clock: Clock
    listener: Listener | None = None
    """Listens for LLDP frames; None if the settings disable it."""
    wait: Callable[[float], object] | None = None
    """Sleeps until frames had time to arrive; None if a later collection will find them."""
    stop: Stop = field(default_factory=Stop)
    """Makes a running collection end soon; its result must then be ignored."""

    def close(self) -> None:
        """Stop listening."""
        if self.listener is not None:
            self.listener.stop()


@dataclass(frozen=True, slots=True)
class CollectorRun:
    """One run of one collector."""

    collector: str
    outcome: RunOutcome
    message: str
    duration_s: float
    facts: CollectedFacts
    """The facts that count now: the new ones, or after a failure the last good ones."""
    is_absent: bool = field(default=False, compare=False)
    """Whether the collector's source is not on this node."""
    needs_restart: bool = field(default=False, compare=False)
    """Whether the source is back only after a restart of the agent."""
    is_repeated: bool = field(default=False, compare=False)
    """Whether this is the result of an earlier run."""

    @property
    def is_complete(self) -> bool:
        """Whether the collector read all of its source."""
        return self.outcome is not RunOutcome.FAILED and not self.facts.errors


def collect(
    node: NodeContext,
    known: Mapping[str, CollectedFacts],
    *,
    last_sweep: CollectorRun | None = None,
) -> tuple[CollectorRun, ...]:
    """Run every collector that the settings enable, in the order of the table.

    Args:
        node: the node to collect from.
        known: the last good facts by collector.
        last_sweep: the sweep to use again; None runs a new one if sweeping is enabled.
    """
    attempts = {
        name: run_collector(
            name, node, collect=collector.collect, known=known.get(name, CollectedFacts())
        )
        for name, collector in COLLECTORS.items()
        if name != SWEEP or (node.settings.sweep is not None and last_sweep is None)
    }
    if node.settings.sweep is not None and last_sweep is not None:
        attempts[SWEEP] = replace(last_sweep, is_repeated=True)
    attempts = _keep_hidden(node, attempts, known)
    frame_run = _collect_frames(node, attempts, known.get(FRAMES, CollectedFacts()))
    if frame_run is None:
        return tuple(attempts.values())
    if frame_run.outcome is RunOutcome.OK and attempts[_LLDPD].is_absent:
        # Without this, the last facts of a removed lldpd would count forever.
        outdated = attempts[_LLDPD]
        attempts[_LLDPD] = replace(outdated, facts=replace(outdated.facts, ports=()))
    return (*attempts.values(), frame_run)


def _keep_hidden(
    node: NodeContext, attempts: Mapping[str, CollectorRun], known: Mapping[str, CollectedFacts]
) -> dict[str, CollectorRun]:
    """Add the ports that another network namespace hides, and their neighbors, to the runs."""
    nothing = CollectedFacts()
    net, lldpd = attempts[_NET], attempts[_LLDPD]
    root = Sysfs(node.settings.sysfs_root)
    rdma = attempts[_RDMA].facts
    facts = keep_hidden_ports(root, net.facts, rdma, known.get(_NET, nothing))
    if facts is net.facts:
        return dict(attempts)
    if net.outcome is not RunOutcome.FAILED:
        net = replace(net, outcome=RunOutcome.OK, message=_message(facts))
    heard = keep_last_neighbors(
        lldpd.facts, known.get(_LLDPD, nothing), [port.name for port in facts.hidden_ports]
    )
    changed = {_NET: replace(net, facts=facts), _LLDPD: replace(lldpd, facts=heard)}
    return dict(attempts) | changed


def _collect_frames(
    node: NodeContext, attempts: Mapping[str, CollectorRun], known: CollectedFacts
) -> CollectorRun | None:
    """Run the frames collector if this node must listen itself; otherwise stop listening."""
    settings = node.settings.frames
    if node.listener is None or settings is None:
        return None
    if settings.mode is FrameMode.AUTO and not attempts[_LLDPD].is_absent:
        node.listener.stop()
        return None
    hidden = {port.name for port in attempts[_NET].facts.hidden_ports}
    ports = tuple(port.name for port in attempts[_NET].facts.ports if port.name not in hidden)
    listener, wait = node.listener, node.wait
    run = run_collector(
        FRAMES,
        node,
        collect=lambda settings, _runner: frames.collect(listener, ports, settings, wait),
        known=known,
    )
    return replace(run, facts=keep_last_neighbors(run.facts, known, hidden))


def run_collector(
    name: str, node: NodeContext, *, collect: Collect, known: CollectedFacts
) -> CollectorRun:
    """Run one collector; every error in it becomes its outcome."""
    started_s = node.clock.monotonic()
    facts, is_absent, needs_restart = CollectedFacts(), False, False
    sweep_error = SweepFailed("")
    try:
        facts = collect(node.settings, node.runner)
        outcome, message = (
            (RunOutcome.NO_DATA if facts.is_empty else RunOutcome.OK),
            _message(facts),
        )
    except SourceAbsent as error:
        is_absent = True
        is_fine = known.is_empty and not error.is_expected
        outcome, message = RunOutcome.NO_DATA if is_fine else RunOutcome.FAILED, str(error)
    except SweepFailed as error:
        outcome, message, sweep_error = RunOutcome.FAILED, str(error), error
    except CollectError as error:
        needs_restart = isinstance(error, SourceCutOff)
        outcome, message = RunOutcome.FAILED, str(error)
    except Exception as error:  # the named catch-all: collectors are isolated
        outcome, message = RunOutcome.FAILED, show(f"{type(error).__name__}: {error}")
        log.debug("collector raised", extra={"collector": name}, exc_info=True)
    duration_s = round(node.clock.monotonic() - started_s, 3)
    if outcome is RunOutcome.FAILED:
        facts = replace(
            known, failed_subnets=sweep_error.failed, refused_subnets=sweep_error.refused
        )
        message += "" if known.is_empty else "; the last good facts are kept"
    log.debug(
        "collector finished",
        extra={"collector": name, "outcome": outcome.value, "duration_s": duration_s},
    )
    return CollectorRun(name, outcome, message, duration_s, facts, is_absent, needs_restart)


def restore_facts(
    device: Device | None, *, silent: Collection[str] = ()
) -> dict[str, CollectedFacts]:
    """Return the facts of each collector from the report published before a restart.

    Args:
        device: the device of the report; None without one.
        silent: the collectors that found nothing then; others gave the facts of their kind.
    """
    if device is None:
        return {}
    restores = {name: collector.restore for name, collector in COLLECTORS.items()} | {
        FRAMES: frames.restore
    }
    return {name: restore(device) for name, restore in restores.items() if name not in silent}


def find_empty_collectors(outcomes: Mapping[str, str]) -> frozenset[str]:
    """Return the collectors without facts in a report.

    Args:
        outcomes: the outcome of each collector in the report, by name.
    """
    with_facts = {name for name, outcome in outcomes.items() if outcome != RunOutcome.NO_DATA}
    return frozenset({*COLLECTORS, FRAMES} - with_facts)


def check_availability(node: NodeContext) -> dict[str, str]:
    """Return why each collector cannot work on this node, empty if it can; runs none of them."""
    absences = {
        name: collector.find_absence(node.settings, node.runner)
        for name, collector in COLLECTORS.items()
    }
    absences[FRAMES] = frames.find_absence(node.settings, node.runner)
    reasons = {name: str(absence or "") for name, absence in absences.items()}
    settings = node.settings.frames
    if settings is not None and settings.mode is FrameMode.AUTO and not reasons[_LLDPD]:
        reasons[FRAMES] = reasons[FRAMES] or "not needed: lldpd answers (--frames auto)"
    return reasons


def _message(facts: CollectedFacts) -> str:
    parts = [facts.note] if facts.note else []
    if facts.errors:
        parts.append(f"{len(facts.errors)} unreadable parts, the first: {facts.errors[0]}")
    return "; ".join(parts)
