"""Runs the collectors of this node one after the other, each timed and isolated.

What a collector finds replaces what it found before; a collector that fails keeps its last good
facts. So one broken source costs a line in the status, never a part of the tree.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from agent.clock import Clock
from agent.collectors import ib_sweep, ib_sysfs, lldpd, net_sysfs
from agent.command import Runner
from agent.config import Settings
from agent.probing import Collected, Collector, SourceAbsent
from topology.errors import CollectError, show
from topology.facts import Device

log = logging.getLogger(__name__)

SWEEP: Final = "ib_sweep"
COLLECTORS: Final[Mapping[str, Collector]] = MappingProxyType(
    {
        "net_sysfs": net_sysfs.COLLECTOR,
        "ib_sysfs": ib_sysfs.COLLECTOR,
        "lldpd": lldpd.COLLECTOR,
        SWEEP: ib_sweep.COLLECTOR,
    }
)
"""In the order in which they run and in which their facts are joined."""


class Outcome(StrEnum):
    """How a run of a collector ended; the words of the report's status."""

    OK = "ok"
    NO_DATA = "no-data"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Node:
    """What a collection works on: what it was told, and what it reaches the machine by."""

    settings: Settings
    runner: Runner
    clock: Clock


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of one collector."""

    collector: str
    outcome: Outcome
    message: str
    duration_s: float
    facts: Collected
    """What now counts: the new facts, or after a failure the last good ones."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing of its source was lost."""
        return self.outcome is not Outcome.FAILED and not self.facts.skipped


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a collector can work on this node."""

    collector: str
    reason: str
    """Empty when it can."""


def collect(node: Node, known: Mapping[str, Collected]) -> tuple[Attempt, ...]:
    """Run every collector that is wanted, in the order of the table.

    Args:
        node: what to collect from.
        known: last good facts by collector.
    """
    return tuple(
        attempt(name, node, collector=collector, known=known.get(name, Collected()))
        for name, collector in COLLECTORS.items()
        if name != SWEEP or node.settings.sweep is not None
    )


def attempt(name: str, node: Node, *, collector: Collector, known: Collected) -> Attempt:
    """Run one collector; whatever goes wrong in it is its outcome."""
    started_s = node.clock.monotonic()
    facts = Collected()
    try:
        facts = collector.collect(node.settings, node.runner)
        outcome, message = (Outcome.NO_DATA if facts.is_empty else Outcome.OK), _message(facts)
    except SourceAbsent as error:
        outcome, message = (Outcome.NO_DATA if known.is_empty else Outcome.FAILED), str(error)
    except CollectError as error:
        outcome, message = Outcome.FAILED, str(error)
    except Exception as error:  # the named catch-all: collectors are isolated
        outcome, message = Outcome.FAILED, show(f"{type(error).__name__}: {error}")
        log.debug("collector raised", extra={"collector": name}, exc_info=True)
    duration_s = round(node.clock.monotonic() - started_s, 3)
    if outcome is Outcome.FAILED:
        facts = known
        message += "" if known.is_empty else "; its last good facts are kept"
    log.debug(
        "collector finished",
        extra={"collector": name, "outcome": outcome.value, "duration_s": duration_s},
    )
    return Attempt(name, outcome, message, duration_s, facts)


def recall(device: Device | None) -> dict[str, Collected]:
    """Return what each collector once found, out of the report published before a restart."""
    if device is None:
        return {}
    return {name: collector.recall(device) for name, collector in COLLECTORS.items()}


def availability(node: Node) -> tuple[Availability, ...]:
    """Return which collectors can work on this node, without running them."""
    return tuple(
        Availability(name, collector.absence(node.settings, node.runner) or "")
        for name, collector in COLLECTORS.items()
    )


def _message(facts: Collected) -> str:
    parts = [facts.note] if facts.note else []
    if facts.skipped:
        parts.append(f"{len(facts.skipped)} parts unreadable, the first: {facts.skipped[0]}")
    return "; ".join(parts)
