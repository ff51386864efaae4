"""What the outputs other than HyperNodes should be, and the interface of their publishers.

Every output follows the tree that was decided last. So the change budget, approvals and holds are
those of the decision, and an output that is added later shows the same tree as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from generator.objects.outputs import Output, OutputType
from generator.objects.pods import Gang
from generator.objects.tree_spec import TreeSpec
from generator.reconcile.object_plan import Takeover
from generator.reconcile.output_outcomes import OutputsOutcome
from generator.reconcile.rendered import KINDS
from runtime.progress import NO_PROGRESS, Progress
from topology.model.tree import TopologyTree

LIST_DEADLINE_S: Final = 30.0
"""For the first list of every kind."""
WRITE_DEADLINE_S: Final = 1800.0
"""For the writes: 90,000 objects at the rate of `store.kinds.BULK`."""
_LIST_PAUSE_S: Final = 0.2


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

    @property
    def is_empty(self) -> bool:
        """Whether there is no output, and none to remove."""
        return not (self.outputs or self.removed)


def build_request(
    tree: TopologyTree | None,
    spec: TreeSpec,
    *,
    fabric: Mapping[str, Any] | None,
    gangs: Collection[Gang] = (),
    is_writing: bool = False,
) -> PublishRequest | None:
    """Return the outputs as they should be; None while the wanted outputs are unknown.

    Then nothing is written, and the status keeps the list of what exists.

    Args:
        tree: the tree that was decided last, as `add_unplaced` returns it.
        spec: the wanted outputs.
        fabric: the Fabric object, whose status lists the outputs of earlier rounds.
        gangs: the running gangs.
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


def publish_until_settled(
    publisher: Publisher,
    request: PublishRequest,
    *,
    clock: Callable[[], float],
    pause: Callable[[float], object],
    progress: Progress = NO_PROGRESS,
) -> OutputsOutcome:
    """Compare the outputs, or write them, until nothing is left that a wait would change.

    Waits until all existing objects are listed, and repeats writes that may be tried again. Both
    have a deadline.

    Args:
        publisher: updates the outputs in the folder or in the cluster.
        request: the outputs as they should be.
        clock: a monotonic clock, in seconds.
        pause: waits for a number of seconds.
        progress: shows how many objects are as wanted.
    """
    started_s = clock()
    while True:
        outcome = publisher.update(request)
        num_current = sum(row.num_current for row in outcome.outputs)
        num_pending = sum(row.num_pending for row in outcome.outputs)
        text = "writing outputs" if request.is_writing else "comparing outputs"
        progress.show(text, num_done=num_current, total=num_current + num_pending)
        spent_s = clock() - started_s
        is_listing = any(not row.is_known for row in outcome.outputs)
        # Without a tree the outputs stay unknown: a wait does not help.
        if is_listing and request.tree is not None and spent_s < LIST_DEADLINE_S:
            pause(_LIST_PAUSE_S)
        elif outcome.retry_s is not None and spent_s < WRITE_DEADLINE_S:
            pause(outcome.retry_s)
        else:
            return outcome
