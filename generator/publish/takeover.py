"""Which labels of other writers Toponaut takes over, and what changes by that. Pure.

A node gets all its labels of one manager in one write, so it has a value at every instant. While a
gang runs on a node, no label of it changes its value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from generator.kube.owned_parts import find_owned_parts
from generator.objects.document import mapping_at
from generator.publish.kinds import MANAGERS
from generator.publish.rendered import RenderedOutput


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
    """Those whose values would change on a node where a gang runs."""


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
    """Of the nodes that are ready, by node and key; a label that keeps its value is among them."""
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
    """Return which labels of others are taken over. Cost: O(nodes x keys).

    Args:
        rendered: the output of labels as it should be.
        nodes: by name.
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
