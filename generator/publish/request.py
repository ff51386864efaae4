"""What the outputs should be in a round, and the interface of what writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from generator.objects.outputs import Output, OutputType
from generator.objects.pods import Gang
from generator.objects.tree_spec import TreeSpec
from generator.publish.kinds import KINDS
from generator.publish.outcome import OutputsOutcome
from generator.publish.takeover import Takeover
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
    takeover: Takeover = Takeover()
    """The labels of other writers that become Toponaut's."""


def build_request(
    tree: TopologyTree | None,
    spec: TreeSpec,
    *,
    fabric: Mapping[str, Any] | None,
    gangs: Collection[Gang] = (),
    is_writing: bool = False,
) -> PublishRequest | None:
    """Return what the outputs should be; None while it is unknown which outputs are wanted.

    Args:
        tree: the tree that was decided last, as `add_unplaced` returns it.
        spec: which outputs are wanted.
        fabric: the Fabric object, whose status lists the outputs of earlier rounds.
        gangs: those that run.
        is_writing: whether the outputs may be written.
    """
    if any(setting.field in {"", "outputs"} for setting in spec.unknown):
        return None
    busy = frozenset(node for gang in gangs for node in gang.nodes)
    removed = _find_removed(fabric, spec.outputs)
    return PublishRequest(tree, spec.outputs, removed, busy, is_writing)


def _find_removed(
    fabric: Mapping[str, Any] | None, outputs: Iterable[Output]
) -> tuple[OutputType, ...]:
    """Return the outputs that the status of the Fabric lists and that are no longer wanted."""
    status = fabric.get("status") if fabric else None
    rows = status.get("outputs") if isinstance(status, Mapping) else None
    listed = {row.get("type") for row in rows or () if isinstance(row, Mapping)}
    wanted = {output.type for output in outputs}
    return tuple(kind for kind in KINDS if kind.value in listed and kind not in wanted)


class Publisher(Protocol):
    """Keeps outputs up to date."""

    def update(self, request: PublishRequest) -> OutputsOutcome:
        """Compare the outputs, and write what may be written."""
        ...
