"""Which objects of an output to apply, to leave and to remove. Pure.

An object of another owner is never written: if Toponaut owns nothing of an object that should be
its own, the name is taken. A node is nobody's object; there, Toponaut owns single labels and
annotations. The label of a node with pods of a gang keeps its value until they have ended.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from generator.publish.rendered import DesiredObject
from generator.publish.takeover import LabelOwner, Takeover
from generator.store.output_objects import ObservedObject

_NO_TAKEOVER: Final = Takeover()


class ObjectOp(StrEnum):
    """A write to an object of an output."""

    CREATE = "create"
    UPDATE = "update"
    TAKE_OVER = "take over"
    """Write labels of a node although another writer has set them."""
    DELETE = "delete"
    RELEASE = "release"
    """Take our labels and annotations from a node."""


class ObjectAction(NamedTuple):
    """One write."""

    op: ObjectOp
    key: str
    desired: DesiredObject | None = None
    """None for an object that is removed."""
    observed: ObservedObject | None = None
    """None for an object that is created."""


class KindPlan(NamedTuple):
    """The writes to the objects of one kind, and what is not written."""

    actions: tuple[ObjectAction, ...] = ()
    num_current: int = 0
    """Objects that agree with the tree."""
    taken: tuple[str, ...] = ()
    """Objects of another owner that have a name that we need."""
    deferred: tuple[str, ...] = ()
    """Nodes whose labels change once their gangs have ended."""


def plan_nodes(
    desired: Sequence[DesiredObject],
    observed: Mapping[str, ObservedObject],
    *,
    manager: str,
    busy: Collection[str] = (),
    takeover: Takeover = _NO_TAKEOVER,
) -> KindPlan:
    """Return the writes of labels or annotations to nodes. Cost: O(nodes).

    Args:
        desired: the part that each node should have.
        observed: all nodes by name.
        manager: the field manager that owns these parts.
        busy: nodes on which gangs run; none of their labels changes its value.
        takeover: the labels of other writers that become Toponaut's.
    """
    actions: list[ObjectAction] = []
    deferred: list[str] = []
    num_current = 0
    for row in desired:
        seen = observed.get(row.key)
        if seen is None:  # the cluster has no such node
            continue
        part = seen.parts.get(manager)
        if part == row.part:
            num_current += 1
        elif LabelOwner(manager, row.key) in takeover.waiting or (
            row.key in busy and part is not None and changes_label(part, row.part)
        ):
            deferred.append(row.key)
        elif LabelOwner(manager, row.key) in takeover.ready:
            actions.append(ObjectAction(ObjectOp.TAKE_OVER, row.key, row, seen))
        else:
            op = ObjectOp.CREATE if part is None else ObjectOp.UPDATE
            actions.append(ObjectAction(op, row.key, row, seen))
    wanted = {row.key for row in desired}
    actions += _plan_removals(observed, wanted, manager, ObjectOp.RELEASE)
    return KindPlan(tuple(actions), num_current, deferred=tuple(deferred))


def plan_objects(
    desired: Sequence[DesiredObject],
    observed: Mapping[str, ObservedObject],
    *,
    manager: str,
) -> KindPlan:
    """Return the writes to whole objects of one kind: creations first, deletions last.

    Args:
        desired: all objects of this output.
        observed: all objects of the kind by name.
        manager: the field manager that owns our objects.
    """
    actions: list[ObjectAction] = []
    taken: list[str] = []
    num_current = 0
    for row in desired:
        seen = observed.get(row.key)
        if seen is None:
            actions.append(ObjectAction(ObjectOp.CREATE, row.key, row))
        elif manager not in seen.parts:
            taken.append(row.key)
        elif seen.parts[manager] == row.part:
            num_current += 1
        else:
            actions.append(ObjectAction(ObjectOp.UPDATE, row.key, row, seen))
    wanted = {row.key for row in desired}
    actions += _plan_removals(observed, wanted, manager, ObjectOp.DELETE)
    return KindPlan(tuple(actions), num_current, taken=tuple(taken))


def changes_label(before: str, after: str) -> bool:
    """Return whether a label has a value in both parts, and the values differ."""
    old, new = _labels_of(before), _labels_of(after)
    return any(new[key] != value for key, value in old.items() if key in new)


def _labels_of(part: str) -> Mapping[str, object]:
    labels = json.loads(part).get("metadata", {}).get("labels", {})
    return labels if isinstance(labels, Mapping) else {}


def _plan_removals(
    observed: Mapping[str, ObservedObject], wanted: Collection[str], manager: str, op: ObjectOp
) -> Iterable[ObjectAction]:
    return (
        ObjectAction(op, key, observed=seen)
        for key, seen in sorted(observed.items())
        if key not in wanted and manager in seen.parts
    )
