"""What a collector is given and what it gives back, whichever source it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from agent.node.command import Runner
from agent.settings import AgentSettings
from topology.model.errors import CollectError, ParseError
from topology.model.facts import Device, Port
from topology.model.ids import Id


class SourceAbsent(CollectError):  # noqa: N818 - reads as what happened
    """What the collector reads is not on this node: no such program, daemon or hardware.

    No failure on a node that never had it; one that had it and lost it keeps what it knew.
    """


class SweepFailed(CollectError):  # noqa: N818 - reads as what happened
    """No subnet could be swept."""

    def __init__(
        self, problem: str, *, failed: tuple[str, ...] = (), refused: tuple[str, ...] = ()
    ) -> None:
        """Keep which subnets failed, and which let every query time out."""
        super().__init__(problem)
        self.failed = failed
        self.refused = refused


class SweepDump(NamedTuple):
    """An InfiniBand subnet as this node's sweep saw it."""

    subnet: str
    text: str
    """Canonical, so equal fabrics give equal bytes."""


@dataclass(frozen=True, slots=True)
class CollectedFacts:
    """What one collector found. Finding nothing is an answer: the node has no such thing."""

    ids: frozenset[Id] = frozenset()
    """Of the node itself."""
    ports: tuple[Port, ...] = ()
    """A port that several collectors name is joined from what each of them knows of it."""
    excluded: frozenset[str] = frozenset()
    """Interfaces that are no cable's end; no other collector may make ports of them."""
    rdma_of_net: frozenset[tuple[str, str]] = frozenset()
    """(interface, RDMA device) pairs."""
    sweeps: tuple[SweepDump, ...] = ()
    """One a subnet."""
    failed_subnets: tuple[str, ...] = ()
    """Subnets that this run could not sweep."""
    refused_subnets: tuple[str, ...] = ()
    """Subnets of which this run let every query time out."""
    errors: tuple[ParseError, ...] = ()
    """Parts of the input that could not be read."""
    note: str = field(default="", compare=False)
    """What an operator should know of this run: why nothing was found, or what is missing."""

    @property
    def is_empty(self) -> bool:
        """Whether it holds no facts."""
        return not (self.ids or self.ports or self.sweeps)


class Collector(NamedTuple):
    """One source of facts. Collectors know nothing of each other."""

    collect: Callable[[AgentSettings, Runner], CollectedFacts]
    """Raises CollectError when the source fails, SourceAbsent when there is none."""
    explain_absence: Callable[[AgentSettings, Runner], str | None]
    """Tells cheaply why the source is not on this node; None when it seems to be."""
    restore: Callable[[Device], CollectedFacts]
    """Picks what this collector once found out of a published report."""
