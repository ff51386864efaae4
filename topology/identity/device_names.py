"""Names that devices are shown by: unique, and the order of them, which numbers the devices."""

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
    """A device while it is put together, as far as its kind and names are to be settled."""

    kind: DeviceKind
    node: str | None
    names: list[str]

    @property
    def ids(self) -> AbstractSet[Id]:
        """All its ids."""

    @property
    def origins(self) -> Collection[Origin]:
        """Who makes claims about it; empty where only others hear it."""

    @property
    def model(self) -> str:
        """What it is, as the first source that says it says it; empty if none does."""


def display_names(entities: Sequence[DeviceDraft]) -> list[str]:
    """Return a unique name per device: node, else its name, else its lowest id."""
    titles = [entity.node or next(map(show, entity.names), "") for entity in entities]
    counts = Counter(titles)
    names = [
        title if title and (counts[title] == 1 or entity.node) else _with_id(title, entity, at)
        for at, (title, entity) in enumerate(zip(titles, entities, strict=True))
    ]
    again = Counter(names)
    return [  # hostile names may spell out what was made for another device
        name if again[name] == 1 or entity.node else f"{name}#{at}"
        for at, (name, entity) in enumerate(zip(names, entities, strict=True))
    ]


def _with_id(title: str, entity: DeviceDraft, at: int) -> str:
    strong = sorted(found.value for found in entity.ids if strong_key(found))
    weak = sorted(found.value for found in entity.ids)
    lowest = show(next(iter(strong or weak), f"device-{at}"), 64)
    return f"{title}.{lowest}" if title else lowest


def sort_names(names: Sequence[str]) -> list[int]:
    """Return indices in natural order of names."""
    return sorted(range(len(names)), key=lambda at: (natural_key(names[at]), names[at]))
