"""Fabrics for replays: regular trees from a shape such as `8x5x16`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from topology.model.errors import ConfigError, show
from topology.model.tree import DomainSpec, TopologyTree, build_tree

_SHAPE = re.compile(r"[0-9]+(?:x[0-9]+)+\Z", re.ASCII)
_LEVELS = re.compile(r"[1-9][0-9]{0,5}(?:x[1-9][0-9]{0,5}){1,4}\Z", re.ASCII)
_NAMES: Final = ("leaf", "spine", "core", "tier4")
_MAX_NODES: Final = 200_000


def is_shape(text: str) -> bool:
    """Return whether a text is a shape and not the name of a file."""
    return _SHAPE.match(text) is not None


def build_tree_of_shape(text: str) -> TopologyTree:
    """Return the tree of `8x5x16`: 8 domains at the top, of 5 leaves each, of 16 nodes each.

    Raises:
        ConfigError: a number is 0, or the tree is too large or too high.
    """
    if not _LEVELS.match(text):
        raise ConfigError(
            f"{show(text)}: expected 2 to 5 numbers from 1 to 999999, such as 8x5x16; for a file "
            "of this name, give its folder too, such as ./NAME"
        )
    counts = [int(part) for part in text.split("x")]
    total = 1
    for count in counts:
        total *= count
    if total > _MAX_NODES:
        raise ConfigError(f"{show(text)}: expected at most {_MAX_NODES} nodes, got {total}")
    specs: list[DomainSpec] = []
    _add_domains(specs, counts, "", None)
    return build_tree(specs, tiers=_NAMES[: len(counts) - 1])


def _add_domains(
    specs: list[DomainSpec], counts: Sequence[int], prefix: str, parent: str | None
) -> None:
    tier = len(counts) - 1
    for index in range(counts[0]):
        path = f"{prefix}{index + 1}"
        name = f"{_NAMES[tier - 1]}-{path}"
        if tier == 1:
            nodes = tuple(f"node-{path}-{number + 1}" for number in range(counts[1]))
            specs.append(DomainSpec(name, tier, parent, nodes))
            continue
        specs.append(DomainSpec(name, tier, parent))
        _add_domains(specs, counts[1:], f"{path}-", name)
