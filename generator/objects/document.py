"""Parts of a document that Kubernetes or a person wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping_at(parent: Mapping[str, Any] | None, key: str) -> Mapping[str, Any]:
    """Return the mapping at a key; an empty one if it is absent or is not a mapping."""
    part = parent.get(key) if parent is not None else None
    return part if isinstance(part, Mapping) else {}
