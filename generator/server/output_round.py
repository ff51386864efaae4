"""The outputs other than HyperNodes, in the rounds of the loop: what they should be now.

Every output follows the tree that was decided last. So the change budget, approvals and holds are
those of the decision, and an output that is added later shows the same tree as the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from generator.objects.inventory import Inventory
from generator.objects.pods import Gang
from generator.objects.tree_record import TreeRecord
from generator.objects.tree_spec import TreeSpec
from generator.observe.observation import Observation
from generator.publish.outcome import OutputsOutcome
from generator.publish.request import Publisher, build_request
from generator.reconcile.decided_tree import add_unplaced
from generator.reconcile.status import OutputSummary
from topology.model.tree import TopologyTree


class OutputInputs(NamedTuple):
    """What the outputs of a round follow from."""

    spec: TreeSpec
    fabric: Mapping[str, Any] | None
    """The Fabric object, whose status lists the outputs of earlier rounds."""
    record: TreeRecord | None
    """The last decision, this round's included."""
    observation: Observation | None
    inventory: Inventory | None
    gangs: Collection[Gang] = ()
    is_writing: bool = True


class OutputRound:
    """Builds the request of each round, and passes it to the publisher."""

    def __init__(self, publisher: Publisher | None) -> None:
        """Publish nothing yet.

        Args:
            publisher: None: there are no outputs other than HyperNodes.
        """
        self._publisher = publisher
        self._decided: tuple[object, TopologyTree | None] | None = None
        """What the decided tree follows from, and the tree."""

    def run(self, inputs: OutputInputs) -> OutputsOutcome | None:
        """Compare the outputs, and write what may be written; without outputs, do nothing.

        Return None while it is unknown which outputs are wanted: nothing is written, and the status
        keeps the list of what exists.
        """
        request = build_request(
            self._find_tree(inputs) if inputs.spec.outputs else None,
            inputs.spec,
            fabric=inputs.fabric,
            gangs=inputs.gangs,
            is_writing=inputs.is_writing,
        )
        if request is None:
            return None
        if self._publisher is None or not (request.outputs or request.removed):
            return OutputsOutcome()
        return self._publisher.update(request)

    def _find_tree(self, inputs: OutputInputs) -> TopologyTree | None:
        """Return the tree that was decided last; None if nothing is decided.

        It is built again only if the decision or the nodes changed.
        """
        record, observation = inputs.record, inputs.observation
        nodes = tuple(node.name for node in inputs.inventory.nodes) if inputs.inventory else ()
        unplaced = () if observation is None else observation.tree.unplaced
        tree = None if record is None else record.tree
        if tree is None or not tree.domains:
            return None
        key = (tree, nodes, unplaced)
        if self._decided is None or self._decided[0] != key:
            self._decided = key, add_unplaced(tree, nodes=nodes, unplaced=unplaced)
        return self._decided[1]


def summarise_outputs(outcome: OutputsOutcome | None) -> OutputSummary | None:
    """Return the part of the status that is about outputs; None: it stays as it is."""
    if outcome is None:
        return None
    return OutputSummary(outcome.rows, outcome.label_keys, outcome.condition)
