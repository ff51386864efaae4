"""What the outputs should be in a round, and the interface of what keeps them so."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from generator.objects.outputs import Output, OutputType
from generator.publish.outcome import OutputsOutcome
from topology.model.tree import TopologyTree


class PublishRequest(NamedTuple):
    """What the outputs should be in this round."""

    tree: TopologyTree | None = None
    """The tree that was decided last, with every other node as unplaced; None: nothing is decided,
    and what exists stays."""
    outputs: tuple[Output, ...] = ()
    removed: tuple[OutputType, ...] = ()
    """Outputs of the last status that are no longer wanted."""
    busy: frozenset[str] = frozenset()
    """Nodes on which gangs run."""
    is_writing: bool = True
    """False: the outputs are compared and not written."""


class Publisher(Protocol):
    """Keeps outputs current."""

    def update(self, request: PublishRequest) -> OutputsOutcome:
        """Compare the outputs, and write what may be written."""
        ...
