"""Runs the collectors of this node one after the other, each timed and isolated.

What a collector finds replaces what it found before; a collector that fails keeps its last good
facts. So one broken source costs a line in the status, never a part of the tree.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from agent.collectors import firmware_lldp, frames, ib_sweep, ib_sysfs, lldpd, net_sysfs, nvlink
from agent.collectors.probe import CollectedFacts, Collector, SourceAbsent, SweepFailed
from agent.node.command import Runner
from agent.node.frame_listener import Listener
from agent.settings import FrameMode, AgentSettings
from runtime.clock import Clock
from runtime.stop import Stop
from topology.model.errors import CollectError, show
from topology.model.facts import Device

log = logging.getLogger(__name__)

SWEEP: Final = "ib_sweep"
FRAMES: Final = "frames"
_NET: Final = "net_sysfs"
_LLDPD: Final = "lldpd"
COLLECTORS: Final[Mapping[str, Collector]] = MappingProxyType(
    {
        _NET: net_sysfs.COLLECTOR,
        "ib_sysfs": ib_sysfs.COLLECTOR,
        _LLDPD: lldpd.COLLECTOR,
        "firmware_lldp": firmware_lldp.COLLECTOR,
        "nvlink": nvlink.COLLECTOR,
        SWEEP: ib_sweep.COLLECTOR,
    }
)
"""In the order in which they run and in which their facts are joined. Frames come last: whether
and where they are listened to follows from what the others found."""


class RunOutcome(StrEnum):
    """How a run of a collector ended; the words of the report's status."""

    OK = "ok"
    NO_DATA = "no-data"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class NodeContext:
    """What a collection works on: what it was told, and what it reaches the machine by."""

    settings: AgentSettings
    runner: Runner
    clock: Clock
    listener: Listener | None = None
    """The ears for LLDP frames; None where it was told not to listen."""
    wait: Callable[[float], object] | None = None
    """Sleeps until frames had time to come; None where a next collection will find them."""
    stop: Stop = field(default_factory=Stop)
    """Makes a collection that runs end soon; what it then tells means nothing."""

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
    """What now counts: the new facts, or after a failure the last good ones."""
    is_absent: bool = field(default=False, compare=False)
    """Whether what it reads is not on this node."""
    is_repeated: bool = field(default=False, compare=False)
    """Whether it is an earlier one told again."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing of its source was lost."""
        return self.outcome is not RunOutcome.FAILED and not self.facts.errors


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a collector can work on this node."""

    collector: str
    reason: str
    """Empty when it can."""


def collect(
    node: NodeContext,
    known: Mapping[str, CollectedFacts],
    *,
    last_sweep: CollectorRun | None = None,
) -> tuple[CollectorRun, ...]:
    """Run every collector that is wanted, in the order of the table.

    Args:
        node: what to collect from.
        known: last good facts by collector.
        last_sweep: stands for a new sweep where none is due.
    """
    attempts = {
        name: run_collector(
            name, node, collector=collector, known=known.get(name, CollectedFacts())
        )
        for name, collector in COLLECTORS.items()
        if name != SWEEP or (node.settings.sweep is not None and last_sweep is None)
    }
    if node.settings.sweep is not None and last_sweep is not None:
        attempts[SWEEP] = replace(last_sweep, is_repeated=True)
    heard = _collect_frames(node, attempts, known.get(FRAMES, CollectedFacts()))
    if heard is None:
        return tuple(attempts.values())
    if heard.outcome is RunOutcome.OK and attempts[_LLDPD].is_absent:
        # An lldpd that is gone for good would else be believed for good.
        outdated = attempts[_LLDPD]
        attempts[_LLDPD] = replace(outdated, facts=replace(outdated.facts, ports=()))
    return (*attempts.values(), heard)


def _collect_frames(
    node: NodeContext, attempts: Mapping[str, CollectorRun], known: CollectedFacts
) -> CollectorRun | None:
    """Take what is heard where that is wanted, else hear nothing any more."""
    told = node.settings.frames
    if node.listener is None or told is None:
        return None
    if told.mode is FrameMode.AUTO and not attempts[_LLDPD].is_absent:
        node.listener.stop()
        return None
    ports = tuple(port.name for port in attempts[_NET].facts.ports)
    hearing = frames.FrameCollector(node.listener, ports, told.listen_s, node.wait)
    return run_collector(FRAMES, node, collector=hearing.collector, known=known)


def run_collector(
    name: str, node: NodeContext, *, collector: Collector, known: CollectedFacts
) -> CollectorRun:
    """Run one collector; whatever goes wrong in it is its outcome."""
    started_s = node.clock.monotonic()
    facts, is_absent, lost = CollectedFacts(), False, SweepFailed("")
    try:
        facts = collector.collect(node.settings, node.runner)
        outcome, message = (
            (RunOutcome.NO_DATA if facts.is_empty else RunOutcome.OK),
            _message(facts),
        )
    except SourceAbsent as error:
        is_absent = True
        outcome, message = (RunOutcome.NO_DATA if known.is_empty else RunOutcome.FAILED), str(error)
    except SweepFailed as error:
        outcome, message, lost = RunOutcome.FAILED, str(error), error
    except CollectError as error:
        outcome, message = RunOutcome.FAILED, str(error)
    except Exception as error:  # the named catch-all: collectors are isolated
        outcome, message = RunOutcome.FAILED, show(f"{type(error).__name__}: {error}")
        log.debug("collector raised", extra={"collector": name}, exc_info=True)
    duration_s = round(node.clock.monotonic() - started_s, 3)
    if outcome is RunOutcome.FAILED:
        facts = replace(known, failed_subnets=lost.failed, refused_subnets=lost.refused)
        message += "" if known.is_empty else "; its last good facts are kept"
    log.debug(
        "collector finished",
        extra={"collector": name, "outcome": outcome.value, "duration_s": duration_s},
    )
    return CollectorRun(name, outcome, message, duration_s, facts, is_absent)


def restore_facts(
    device: Device | None, *, silent: Collection[str] = ()
) -> dict[str, CollectedFacts]:
    """Return what each collector once found, out of the report published before a restart.

    Args:
        device: of the report, None where there is none.
        silent: the collectors that found nothing then, though others found what they might have.
    """
    if device is None:
        return {}
    recalls = {name: one.restore for name, one in COLLECTORS.items()} | {FRAMES: frames.restore}
    return {name: recall(device) for name, recall in recalls.items() if name not in silent}


def find_empty_collectors(outcomes: Mapping[str, str]) -> frozenset[str]:
    """Return the collectors that had nothing to tell in a report, by its outcomes by name."""
    told = {name for name, outcome in outcomes.items() if outcome != RunOutcome.NO_DATA}
    return frozenset({*COLLECTORS, FRAMES} - told)


def check_availability(node: NodeContext) -> tuple[Availability, ...]:
    """Return which collectors can work on this node, without running them."""
    reasons = {
        name: one.explain_absence(node.settings, node.runner) or ""
        for name, one in COLLECTORS.items()
    }
    reasons[FRAMES] = frames.explain_absence(node.settings, node.runner) or ""
    told = node.settings.frames
    if told is not None and told.mode is FrameMode.AUTO and not reasons[_LLDPD]:
        reasons[FRAMES] = reasons[FRAMES] or "not needed: lldpd answers (--frames auto)"
    return tuple(Availability(name, reason) for name, reason in reasons.items())


def _message(facts: CollectedFacts) -> str:
    parts = [facts.note] if facts.note else []
    if facts.errors:
        parts.append(f"{len(facts.errors)} parts unreadable, the first: {facts.errors[0]}")
    return "; ".join(parts)
