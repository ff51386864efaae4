"""Renders the TopologyTree into a ConfigMap: as text while it is small, else packed."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from typing import Any, Final

from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError
from topology.model.tree import TopologyTree, render_tree

KEY: Final = "tree.json"
PACKED_KEY: Final = "tree.json.gz"
_MAX_TEXT_BYTES: Final = 512 << 10
MAX_BYTES: Final = 1000 << 10
"""A ConfigMap holds at most 1 MiB with everything in it."""


def render_tree_config_map(tree: TopologyTree, *, name: str, namespace: str) -> OwnedObject:
    """Return the ConfigMap.

    Raises:
        ConfigError: the tree is too large for one object, also when packed.
    """
    text = json.dumps(render_tree(tree), ensure_ascii=True, separators=(",", ":"))
    fields: dict[str, Any] = {"data": {KEY: text}}
    if len(text) > _MAX_TEXT_BYTES:
        packed = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
        if len(packed) > MAX_BYTES:
            raise ConfigError(
                f"the packed tree has {len(packed)} bytes, and a ConfigMap holds {MAX_BYTES}"
            )
        fields = {"binaryData": {PACKED_KEY: packed}}
    return OwnedObject("v1", "ConfigMap", name, fields, namespace=namespace)


def render_text_config_map(text: str, *, key: str, name: str, namespace: str) -> OwnedObject:
    """Return a ConfigMap with one text, as a program mounts it.

    Raises:
        ConfigError: the text is too large for one object.
    """
    size = len(text.encode())
    if size > MAX_BYTES:
        raise ConfigError(f"{key} has {size} bytes, and a ConfigMap holds {MAX_BYTES}")
    return OwnedObject("v1", "ConfigMap", name, {"data": {key: text}}, namespace=namespace)
