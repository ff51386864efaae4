"""The levels in a Topology of Kueue or KAI, and in those of Koordinator and Grove. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from generator.objects.document import mapping_at, rows_at
from generator.objects.yaml_document import list_documents
from topology.model.errors import ConfigError

TOPOLOGY_KINDS: Final = ("Topology", "ClusterNetworkTopology", "ClusterTopologyBinding")
LEVEL_LISTS: Final = ("levels", "networkTopologySpec")
"""Fields of a spec with the levels; Koordinator's are in any order, each with its parent."""
_KEYS: Final = ("nodeLabel", "key", "labelKey")
_OTHER_NAMES: Final = ("alias", "domain", "topologyLayer")
LEVEL_FIELDS: Final = (*_KEYS, *_OTHER_NAMES, "parentTopologyLayer")


class TopologyLevel(NamedTuple):
    """One level of a Topology: its label keys, and its names in KAI, Grove or Koordinator."""

    keys: tuple[str, ...]
    """Label keys; several if nodes have one of them."""
    other_names: tuple[str, ...]
    """The alias of KAI, the domain of Grove or the layer of Koordinator."""


def parse_topology_levels(raw: bytes, *, source: str) -> tuple[str, ...]:
    """Return the label keys of the levels of the first Topology in a file, coarsest first.

    Raises:
        ConfigError: the text is no YAML or JSON, or holds no Topology with keys.
    """
    for document in list_documents(raw, source=source):
        spec = mapping_at(document.value, "spec")
        keys = tuple(level.keys[0] for level in list_levels(spec) if level.keys)
        if keys:
            return keys
    raise ConfigError(f"{source}: no Topology whose levels name label keys")


def list_levels(spec: object) -> Iterator[TopologyLevel]:
    """Yield the levels of the spec of a Topology, coarsest first."""
    layers = rows_at(spec, "networkTopologySpec")
    for level in rows_at(spec, "levels") or _order_layers(layers):
        yield TopologyLevel(_list_texts(level, _KEYS), _list_texts(level, _OTHER_NAMES))


def _list_texts(level: Mapping[str, object], fields: tuple[str, ...]) -> tuple[str, ...]:
    rows = [level.get(field) for field in fields]
    texts = [text for row in rows for text in (row if isinstance(row, list) else [row])]
    return tuple(text for text in texts if isinstance(text, str) and text)


def _order_layers(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return Koordinator's layers, each after its parent; a layer that repeats ends the list."""
    names = [row.get("topologyLayer") for row in rows]
    at = next((row for row in rows if row.get("parentTopologyLayer") not in names), None)
    ordered: list[Mapping[str, Any]] = []
    while at is not None and at not in ordered:
        ordered.append(at)
        name = at.get("topologyLayer")
        at = next((row for row in rows if row.get("parentTopologyLayer") == name), None)
    return ordered
