"""The label keys in an existing Topology of Kueue, KAI, Koordinator or Grove."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from generator.objects.yaml_document import parse_documents
from topology.model.errors import ConfigError, ParseError


def parse_topology_levels(raw: bytes, *, source: str) -> tuple[str, ...]:
    """Return the label keys of the levels of the first Topology in a file, coarsest first.

    Raises:
        ConfigError: the text is no YAML or JSON, or holds no Topology with keys.
    """
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            raise ConfigError(str(document))
        keys = tuple(_iterate_keys(document.value))
        if keys:
            return keys
    raise ConfigError(f"{source}: no Topology whose levels name label keys")


def _iterate_keys(document: object) -> Iterator[str]:
    spec = document.get("spec") if isinstance(document, Mapping) else None
    if not isinstance(spec, Mapping):
        return
    levels = spec.get("levels") or _order_layers(spec.get("networkTopologySpec"))
    for level in levels if isinstance(levels, list) else []:
        key = _find_key(level)
        if key:
            yield key


def _find_key(level: object) -> str:
    """Return the key of a level: Kueue and KAI, Grove, and Koordinator spell it differently."""
    if not isinstance(level, Mapping):
        return ""
    key = level.get("nodeLabel") or level.get("key") or level.get("labelKey")
    if isinstance(key, list):
        key = key[0] if key else ""
    return key if isinstance(key, str) else ""


def _order_layers(layers: object) -> list[object]:
    """Return Koordinator's layers, each after its parent; a layer that repeats ends the list."""
    rows = [row for row in layers if isinstance(row, Mapping)] if isinstance(layers, list) else []
    names = [row.get("topologyLayer") for row in rows]
    at = next((row for row in rows if row.get("parentTopologyLayer") not in names), None)
    ordered: list[object] = []
    while at is not None and at not in ordered:
        ordered.append(at)
        name = at.get("topologyLayer")
        at = next((row for row in rows if row.get("parentTopologyLayer") == name), None)
    return ordered
