"""Which objects of an output to apply, to leave and to remove, and which labels to take over. Pure.

An object of another owner is never written: if Toponaut owns nothing of an object that should be
its own, the name is taken. A node is nobody's object; there, Toponaut owns single labels and
annotations. The label of a node with pods of a gang keeps its value until they have ended. A node
gets all its labels of one manager in one write, so it has a value at every instant.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.kube.cache import StoredObject
from generator.kube.ownership import find_owned_parts
from generator.kube.resources import NODES
from generator.objects.document import mapping_at
from generator.reconcile.rendered import (
    MANAGERS,
    DesiredObject,
    ObjectSet,
    OwnedParts,
    RenderedOutput,
)


class SeenNode(NamedTuple):
    """The labels of a node, of any owner."""

    name: str
    labels: Mapping[str, str]
    managers: frozenset[str] = frozenset()
    """Our field managers that own something of the node."""


class LabelOwner(NamedTuple):
    """The labels of one field manager on one node."""

    manager: str
    node: str


class Takeover(NamedTuple):
    """The labels of other writers that may be written in a round."""

    ready: frozenset[LabelOwner] = frozenset()
    waiting: frozenset[LabelOwner] = frozenset()
    """Labels whose value would change on a node where a gang runs."""


class LabelChange(NamedTuple):
    """A label that is taken over."""

    node: str
    key: str
    before: str
    after: str


class LabelTakeover(NamedTuple):
    """The labels that are taken over, and the nodes that wait."""

    takeover: Takeover = Takeover()
    labels: tuple[LabelChange, ...] = ()
    """The labels of ready nodes, by node and key; a label that keeps its value is among them."""
    blocked: tuple[str, ...] = ()
    """Nodes with a further key that Toponaut writes and that was not named."""


def parse_seen_node(document: Mapping[str, Any]) -> SeenNode:
    """Return the labels of a decoded Node, and which field managers of ours own parts of it."""
    metadata = mapping_at(document, "metadata")
    managers = frozenset(find_owned_parts(document, MANAGERS))
    return SeenNode(str(metadata.get("name", "")), mapping_at(metadata, "labels"), managers)


def plan_takeover(
    rendered: RenderedOutput,
    nodes: Mapping[str, SeenNode],
    keys: Collection[str],
    *,
    busy: Collection[str] = (),
) -> LabelTakeover:
    """Return the labels that are taken over from other managers. Cost: O(nodes x keys).

    Args:
        rendered: the output of labels as it should be.
        nodes: the nodes of the cluster, by name.
        keys: the keys that are taken over.
        busy: nodes on which gangs run.
    """
    ready, waiting = set[LabelOwner](), set[LabelOwner]()
    labels: list[LabelChange] = []
    blocked = set[str]()
    for manager, node, wanted in _list_wanted(rendered):
        seen = nodes.get(node)
        if seen is None or manager in seen.managers:
            continue
        present = {key: seen.labels[key] for key in wanted if key in seen.labels}
        changes = [
            LabelChange(node, key, value, wanted[key])
            for key, value in sorted(present.items())
            if key in keys
        ]
        owner = LabelOwner(manager, node)
        if not changes:
            continue
        if any(key not in keys and value != wanted[key] for key, value in present.items()):
            blocked.add(node)
        elif node in busy and any(row.before != row.after for row in changes):
            waiting.add(owner)
        else:
            ready.add(owner)
            labels += changes
    found = Takeover(frozenset(ready), frozenset(waiting))
    return LabelTakeover(found, tuple(sorted(labels)), tuple(sorted(blocked)))


def list_written_keys(rendered: RenderedOutput) -> Sequence[str]:
    """Return the label keys that the output writes."""
    return sorted({key for _, _, labels in _list_wanted(rendered) for key in labels})


def _list_wanted(rendered: RenderedOutput) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """Yield the manager, the node and the wanted labels of each part of a node."""
    for objects in rendered.sets:
        for row in objects.objects:
            yield objects.manager, row.key, row.document["metadata"].get("labels", {})


_NO_TAKEOVER: Final = Takeover()


class ObjectAction(NamedTuple):
    """One write: the desired part is applied; without a desired part, our part is removed."""

    key: str
    desired: DesiredObject | None = None
    """None for what is removed: an object, or our labels and annotations of a node."""
    observed: StoredObject[OwnedParts] | None = None
    """None for an object that is created."""
    is_takeover: bool = False
    """Whether labels of a node are written although another writer has set them."""


class KindPlan(NamedTuple):
    """The writes to the objects of one kind, and what is not written."""

    actions: tuple[ObjectAction, ...] = ()
    """Removals come last."""
    num_current: int = 0
    """Objects that agree with the tree."""
    taken: tuple[str, ...] = ()
    """Objects of another owner that have a name that we need."""
    deferred: tuple[str, ...] = ()
    """Nodes whose labels change once their gangs have ended."""


def plan_objects(
    objects: ObjectSet,
    observed: Mapping[str, StoredObject[OwnedParts]],
    *,
    busy: Collection[str] = (),
    takeover: Takeover = _NO_TAKEOVER,
) -> KindPlan:
    """Return the writes to the objects of one kind. Cost: O(objects).

    Args:
        objects: all that one field manager should own.
        observed: all objects of the kind by name.
        busy: nodes on which gangs run; none of their labels changes its value.
        takeover: the labels of other writers that become Toponaut's.
    """
    manager, of_nodes = objects.manager, objects.resource == NODES
    actions: list[ObjectAction] = []
    taken: list[str] = []
    deferred: list[str] = []
    num_current = 0
    for row in objects.objects:
        seen = observed.get(row.key)
        part = None if seen is None else seen.value.get(manager)
        owner = LabelOwner(manager, row.key)
        is_changing = row.key in busy and part is not None and changes_label(part, row.part)
        if part == row.part:
            num_current += 1
        elif seen is None and of_nodes:  # the cluster has no such node
            continue
        elif seen is not None and part is None and not of_nodes:
            taken.append(row.key)
        elif of_nodes and (is_changing or owner in takeover.waiting):
            deferred.append(row.key)
        else:
            actions.append(ObjectAction(row.key, row, seen, is_takeover=owner in takeover.ready))
    wanted = {row.key for row in objects.objects}
    actions += [
        ObjectAction(key, observed=seen)
        for key, seen in sorted(observed.items())
        if key not in wanted and manager in seen.value
    ]
    return KindPlan(tuple(actions), num_current, tuple(taken), tuple(deferred))


def changes_label(before: str, after: str) -> bool:
    """Return whether a label has a value in both parts, and the values differ."""
    old, new = _labels_of(before), _labels_of(after)
    return any(new[key] != value for key, value in old.items() if key in new)


def _labels_of(part: str) -> Mapping[str, object]:
    labels = json.loads(part).get("metadata", {}).get("labels", {})
    return labels if isinstance(labels, Mapping) else {}
