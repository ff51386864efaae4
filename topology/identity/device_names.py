"""Display names of devices: unique, and sorted to number the devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from topology.model.claims import Origin, strong_key
from topology.model.errors import show
from topology.model.facts import DeviceKind
from topology.model.ids import Id, natural_key


class DeviceDraft(Protocol):
    """A device under construction, as far as its kind and names depend on it."""

    kind: DeviceKind
    node: str | None
    names: list[str]
    silent_node: str | None
    """For HCAs of a sweep: the node of their name, if its report lists no HCA at all."""
    is_loose: bool
    """Whether neighbors cannot know it by its claims: it is no node, and has no chassis id."""

    @property
    def ids(self) -> AbstractSet[Id]:
        """All ids of the device."""

    @property
    def origins(self) -> Collection[Origin]:
        """The origins of its claims; empty if it is known only as a neighbor."""

    @property
    def model(self) -> str:
        """The first hardware description in its claims; empty if there is none."""


def display_names(entities: Sequence[DeviceDraft]) -> list[str]:
    """Return a unique name per device: its node, else its own name, else its lowest id.

    A device that is known only as a neighbor never changes the name of one that a source describes.
    """
    titles = [entity.node or next(map(show, entity.names), "") for entity in entities]
    counts = Counter(titles)
    described = Counter(
        title
        for title, entity in zip(titles, entities, strict=True)
        if counts[title] > 1 and entity.origins
    )
    names = [
        title
        if title
        and (counts[title] == 1 or entity.node or (described[title] == 1 and entity.origins))
        else _with_id(title, entity, index)
        for index, (title, entity) in enumerate(zip(titles, entities, strict=True))
    ]
    counts_of_names = Counter(names)
    return [  # a hostile name may equal a name that was built for another device
        name if counts_of_names[name] == 1 or entity.node else f"{name}#{index}"
        for index, (name, entity) in enumerate(zip(names, entities, strict=True))
    ]


def _with_id(title: str, entity: DeviceDraft, index: int) -> str:
    ids = entity.ids
    strong = sorted(identifier.value for identifier in ids if strong_key(identifier))
    weak = () if strong else sorted(identifier.value for identifier in ids)
    lowest = show(next(iter(strong or weak), f"device-{index}"), 64)
    return f"{title}.{lowest}" if title else lowest


def sort_names(names: Sequence[str]) -> list[int]:
    """Return the indices of names in their natural order."""
    return sorted(range(len(names)), key=lambda index: (natural_key(names[index]), names[index]))
