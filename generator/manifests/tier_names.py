"""Maps the level names of other systems, such as label keys and layers, to tiers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from generator.manifests.fields import Field

_FIXED_TIERS: Final = {
    "kubernetes.io/hostname": "node",
    "NodeTopologyLayer": "node",
    "ClusterTopologyLayer": "cluster",
}
_WORDS = re.compile(r"[A-Za-z0-9]+")
_FILLERS: Final = frozenset({"topology", "layer", "id", "name", "switch"})
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class LevelNames:
    """Tiers by level name: as set by the user, else by a topology object, else by keyword."""

    def __init__(self, levels: Mapping[str, str] | None = None) -> None:
        """Start with the level names set by the user."""
        self._given = dict(levels or {})
        self._listed: dict[str, str] = {}

    def add_levels(self, coarse_to_fine: Sequence[str]) -> None:
        """Number a topology object's levels from the bottom; a level of nodes is skipped."""
        above = [name for name in coarse_to_fine if _FIXED_TIERS.get(name) is None]
        for tier, name in enumerate(reversed(above), 1):
            self._listed[name] = str(tier)

    def find_tier(self, field: Field) -> str:
        """Return the tier of the level that a field names; empty if it names none.

        The tier of an unknown level is guessed from a keyword in its name, and a note says so:
        `cloud.provider.com/topology-block` and `BlockLayer` for `block`.
        """
        name = field.text().strip()
        tier = self._given.get(name) or _FIXED_TIERS.get(name) or self._listed.get(name)
        if tier or not name:
            return tier or ""
        guess = _find_keyword(name)
        if guess != name:
            field.note(f"read as tier '{guess}'; to change that, use --level '{name}=TIER'")
        return guess


def _find_keyword(name: str) -> str:
    """Return the keyword of a label key or layer, or the whole name if it has none."""
    last = name.rsplit("/", 1)[-1]
    words: list[str] = [
        word.lower() for word in _WORDS.findall(_CAMEL_CASE_BOUNDARY.sub(" ", last))
    ]
    keywords = [word for word in words if word not in _FILLERS]
    if len(keywords) == 1 or (keywords and "/" in name):
        return keywords[-1]
    return name if not words or "/" not in name else words[-1]


def find_lowest_tier(tiers: Sequence[str]) -> str:
    """Return the lowest tier: node, else the smallest number; of names only, the last."""
    if "node" in tiers:
        return "node"
    return min(tiers, key=int) if all(tier.isdecimal() for tier in tiers) else tiers[-1]
