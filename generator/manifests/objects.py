"""The objects of a file, and what all systems share of them: workloads, pods, topologies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from generator.manifests.fields import ROOT, Field
from generator.manifests.tier_names import LevelNames
from topology.model.errors import PlacementRequestError, show


@dataclass(frozen=True, slots=True)
class KubeObject:
    """One Kubernetes object."""

    group: str
    """Of its apiVersion; empty for the core."""
    kind: str
    name: str
    field: Field
    """All of it."""

    @property
    def title(self) -> str:
        """What messages call it."""
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


@dataclass(frozen=True, slots=True)
class Manifests:
    """All objects of a file, in its order, and what is known of tiers."""

    objects: tuple[KubeObject, ...]
    levels: LevelNames

    def select(self, *kinds: str, group: str | None = None) -> list[KubeObject]:
        """Return the objects of kinds, of one API group where it is given."""
        return [
            one
            for one in self.objects
            if one.kind in kinds and (group is None or one.group == group)
        ]

    @property
    def pods(self) -> list[KubeObject]:
        """The pods."""
        return self.select("Pod", group="")


def read_objects(documents: list[tuple[int, object]], levels: LevelNames) -> Manifests:
    """Return the objects of decoded documents.

    Args:
        documents: (1-based line, value) of each.
        levels: what the user says of tiers; topology objects among the documents add to it.

    Raises:
        PlacementRequestError: a document is no object; names it.
    """
    manifests = Manifests(tuple(_parse_object(line, value) for line, value in documents), levels)
    _collect_levels(manifests)
    return manifests


def _parse_object(line: int, value: object) -> KubeObject:
    where = f"line {line}"
    if not isinstance(value, Mapping):
        raise PlacementRequestError(where, f"expected an object, got {type(value).__name__}")
    kind, version, name = (_get_text(value, key) for key in ("kind", "apiVersion", "name"))
    if not kind or not version:
        raise PlacementRequestError(where, "expected an object with apiVersion and kind")
    group = version.rpartition("/")[0]
    field = Field(value, f"{show(kind)} '{show(name)}' ({where}){ROOT}")
    for key in ("apiVersion", "kind"):
        field.get(key).text()
    for key in ("name", "generateName", "namespace"):
        field.get("metadata", key).raw()
    return KubeObject(group, kind, name or kind.lower(), field)


def _get_text(value: Mapping[str, object], key: str) -> str:
    found: object = value.get(key)
    if key == "name":
        metadata = value.get("metadata")
        names = metadata if isinstance(metadata, Mapping) else {}
        found = names.get("name") or str(names.get("generateName") or "").rstrip("-")
    return found if isinstance(found, str) else ""


def has_key_prefix(value: object, prefix: str) -> bool:
    """Return whether a mapping anywhere in a document has a key that begins so; any depth."""
    rest = [value]
    while rest:
        found = rest.pop()
        if isinstance(found, dict):
            if any(key.startswith(prefix) for key in found):
                return True
            rest.extend(found.values())
        elif isinstance(found, list):
            rest.extend(found)
    return False


def _collect_levels(manifests: Manifests) -> None:
    """Take the order of tiers from Kueue's, KAI's and Koordinator's own topology objects."""
    for one in manifests.select("Topology"):
        manifests.levels.add_levels(
            [row.get("nodeLabel").text() for row in one.spec.get("levels").items()]
        )
    for one in manifests.select("ClusterNetworkTopology"):
        rows = one.spec.get("networkTopologySpec").items()
        below = {
            row.get("parentTopologyLayer").text(): row.get("topologyLayer").text() for row in rows
        }
        manifests.levels.add_levels(list(_order_levels(below)))


def _order_levels(below: Mapping[str, str]) -> Iterator[str]:
    """Yield layers from the root down; a circle ends where it began."""
    tops = sorted(below.keys() - set(below.values()))
    layer = tops[0] if tops else ""
    seen: set[str] = set()
    while layer and layer not in seen:
        seen.add(layer)
        yield layer
        layer = below.get(layer, "")
