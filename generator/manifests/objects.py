"""The Kubernetes objects of a file, and the levels that its topology objects list."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from generator.manifests.fields import ROOT, Field
from generator.manifests.tier_names import LevelNames
from generator.objects.document import mapping_at
from generator.objects.pods import ENDED_PHASES
from generator.objects.topology_levels import (
    LEVEL_FIELDS,
    LEVEL_LISTS,
    TOPOLOGY_KINDS,
    list_levels,
)
from topology.model.errors import PlacementRequestError, show

_OWNERS_PER_NODE: Final = ("DaemonSet", "Node")


@dataclass(frozen=True, slots=True)
class KubeObject:
    """A Kubernetes object."""

    group: str
    """API group of its apiVersion; empty for the core group."""
    kind: str
    name: str
    field: Field
    """The whole document."""

    @property
    def title(self) -> str:
        """Its kind, name and line, for messages."""
        return self.field.title

    @property
    def annotations(self) -> Field:
        """Its annotations."""
        return self.field.get("metadata", "annotations")

    @property
    def labels(self) -> Field:
        """Its labels."""
        return self.field.get("metadata", "labels")

    @property
    def spec(self) -> Field:
        """Its spec."""
        return self.field.get("spec")

    @property
    def node(self) -> str:
        """The node of a pod; empty while it waits."""
        return self.spec.get("nodeName").text()

    @property
    def has_ended(self) -> bool:
        """Whether a pod has ended, so that it needs no node any more."""
        return self.field.get("status", "phase").text() in ENDED_PHASES

    @property
    def is_per_node(self) -> bool:
        """Whether a pod is one of a DaemonSet, or a static pod, so that no gang has it."""
        owners = self.field.get("metadata", "ownerReferences").items()
        return any(owner.get("kind").value in _OWNERS_PER_NODE for owner in owners)

    @property
    def is_terminating(self) -> bool:
        """Whether a pod is being deleted; it uses its node until it has ended."""
        return self.field.get("metadata", "deletionTimestamp").exists


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of a file in their order, and the names of levels."""

    objects: tuple[KubeObject, ...]
    levels: LevelNames

    def select(self, *kinds: str, group: str | None = None) -> list[KubeObject]:
        """Return the objects of these kinds, and if an API group is given, of that group only."""
        return [
            object_
            for object_ in self.objects
            if object_.kind in kinds and (group is None or object_.group == group)
        ]

    @property
    def pods(self) -> list[KubeObject]:
        """The pods of the gang, waiting or running.

        Left out are pods that have ended, that are being deleted, or that belong to one node.
        """
        pods = self.select("Pod", group="")
        return [pod for pod in pods if not (pod.has_ended or pod.is_terminating or pod.is_per_node)]


def read_objects(documents: list[tuple[int, object]], levels: LevelNames) -> Manifests:
    """Return the objects of decoded documents.

    Args:
        documents: (1-based line, value) of each.
        levels: tiers set by the user; topology objects among the documents add to them.

    Raises:
        PlacementRequestError: a document is not an object; names it.
    """
    manifests = Manifests(tuple(_parse_document(line, value) for line, value in documents), levels)
    _collect_levels(manifests)
    return manifests


def _parse_document(line: int, value: object) -> KubeObject:
    location = f"line {line}"
    if not isinstance(value, Mapping):
        raise PlacementRequestError(location, f"expected an object, got {type(value).__name__}")
    kind, name = (_get_text(value, key) for key in ("kind", "name"))
    if not kind or not _get_text(value, "apiVersion"):
        raise PlacementRequestError(location, "expected an object with apiVersion and kind")
    return parse_object(Field(value, f"{show(kind)} '{show(name)}' ({location}){ROOT}"))


def parse_object(field: Field) -> KubeObject:
    """Return the object of a field, whose version, kind and names are then read."""
    value = mapping_at(field.value)
    kind, version, name = (_get_text(value, key) for key in ("kind", "apiVersion", "name"))
    for key in ("apiVersion", "kind"):
        field.get(key).text()
    for key in ("name", "generateName", "namespace"):
        field.get("metadata", key).raw()
    return KubeObject(version.rpartition("/")[0], kind, name or kind.lower(), field)


def _get_text(value: Mapping[str, object], key: str) -> str:
    text: object = value.get(key)
    if key == "name":
        names = mapping_at(value, "metadata")
        text = names.get("name") or str(names.get("generateName") or "").rstrip("-")
    return text if isinstance(text, str) else ""


def find_only(objects: Sequence[KubeObject], noun: str) -> KubeObject | None:
    """Return the only object of a sequence; None if the sequence is empty.

    Raises:
        PlacementRequestError: there are several, which are called `noun`.
    """
    if len(objects) > 1:
        names = ", ".join(object_.title for object_ in objects)
        problem = f"the file has {len(objects)} {noun}, but one is placed at a time: {names}"
        raise PlacementRequestError(objects[1].title, problem)
    return objects[0] if objects else None


def has_key_prefix(value: object, prefix: str) -> bool:
    """Return whether a mapping at any depth of a document has a key with this prefix."""
    return any(key.startswith(prefix) for item in _walk_mappings(value) for key in item)


def _walk_mappings(value: object) -> Iterator[Mapping[str, object]]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            yield item
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def names_scheduler(value: object, names: Collection[str]) -> bool:
    """Return whether a mapping at any depth of a document names one of these schedulers."""
    return any(item.get("schedulerName") in names for item in _walk_mappings(value))


def _collect_levels(manifests: Manifests) -> None:
    """Read the levels of the topology objects of a file."""
    for topology in manifests.select(*TOPOLOGY_KINDS):
        rows = [row for name in LEVEL_LISTS for row in topology.spec.get(name).items()]
        for field in (row.get(name) for row in rows for name in LEVEL_FIELDS):
            for part in field.items() if isinstance(field.value, list) else [field]:
                part.text()
        manifests.levels.add_levels(
            (*level.keys, *level.other_names) for level in list_levels(topology.spec.value)
        )
