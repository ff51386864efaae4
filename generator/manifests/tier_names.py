"""What other systems call a tier: label keys, layers, numbers; and which tier of ours each is."""

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
    """Names of levels to tiers: as told, else by a topology object, else by the word in a key."""

    def __init__(self, told: Mapping[str, str] | None = None) -> None:
        """Begin with what the user says of names."""
        self._given = dict(told or {})
        self._listed: dict[str, str] = {}

    def add_levels(self, coarse_to_fine: Sequence[str]) -> None:
        """Count a topology object's levels from the bottom; a level of nodes is none."""
        above = [name for name in coarse_to_fine if _FIXED_TIERS.get(name) is None]
        for tier, name in enumerate(reversed(above), 1):
            self._listed[name] = str(tier)

    def find_tier(self, field: Field) -> str:
        """Return the tier of the level that a field names; empty where it names none.

        A level that nobody explained is taken for the tier of the same word, which is noted:
        `cloud.provider.com/topology-block` and `BlockLayer` for `block`.
        """
        name = field.text().strip()
        known = self._given.get(name) or _FIXED_TIERS.get(name) or self._listed.get(name)
        if known or not name:
            return known or ""
        guess = _find_keyword(name)
        if guess != name:
            field.note(f"taken for tier '{guess}'; say otherwise with --level '{name}=TIER'")
        return guess


def _find_keyword(name: str) -> str:
    """Return the telling word of a label key or layer, the name itself where there is no one."""
    last = name.rsplit("/", 1)[-1]
    words: list[str] = [
        word.lower() for word in _WORDS.findall(_CAMEL_CASE_BOUNDARY.sub(" ", last))
    ]
    telling = [word for word in words if word not in _FILLERS]
    if len(telling) == 1 or (telling and "/" in name):
        return telling[-1]
    return name if not words or "/" not in name else words[-1]


def find_lowest_tier(tiers: Sequence[str]) -> str:
    """Return the lowest of tiers: nodes, else the least number; of names alone the last listed."""
    if "node" in tiers:
        return "node"
    return min(tiers, key=int) if all(tier.isdecimal() for tier in tiers) else tiers[-1]
