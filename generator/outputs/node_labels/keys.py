"""The label keys of the tiers: Toponaut's own, and those that other tools read.

A key is at most 63 characters in total: Kueue and Grove copy it into annotations and fields of that
length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from generator.outputs.object_names import is_object_name
from topology.model.errors import ConfigError, show
from topology.model.ids import HOSTNAME_LABEL

DEFAULT_PREFIX: Final = "topology.toponaut.io"
MAX_KEY: Final = 63
MAX_LEVELS: Final = 16
"""The most levels in a Topology of Kueue or KAI."""
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?\Z", re.ASCII)
_RESERVED_PREFIXES: Final = ("kubernetes.io", "k8s.io")
"""Kubernetes keeps these and everything below them for itself."""
_NVIDIA_TIERS: Final = ("leaf", "spine", "core")


class LabelFamily(StrEnum):
    """Keys of another tool that are written beside Toponaut's own."""

    TOPOGRAPH = "topograph"
    """`fabric.topograph.run/tier-N`, where tier 0 is nearest the nodes; topograph 1.0."""
    NVIDIA = "nvidia"
    """`network.topology.nvidia.com/{leaf,spine,core}`; topograph before 1.0."""


def check_label_prefix(prefix: str) -> None:
    """Refuse a prefix under which Toponaut cannot write labels.

    Raises:
        ConfigError: the prefix is no DNS subdomain, or belongs to Kubernetes.
    """
    if not is_object_name(prefix):
        raise ConfigError(f"'{show(prefix)}' is not a label prefix such as {DEFAULT_PREFIX}")
    if any(prefix == own or prefix.endswith(f".{own}") for own in _RESERVED_PREFIXES):
        raise ConfigError(f"the label prefix {show(prefix)} belongs to Kubernetes")


def build_tier_keys(tiers: Sequence[str], prefix: str = DEFAULT_PREFIX) -> tuple[str, ...]:
    """Return the key of each tier, lowest first: the prefix and the name of the tier.

    Raises:
        ConfigError: the prefix is no DNS subdomain or belongs to Kubernetes, or a key is no valid
            label key of at most 63 characters.
    """
    check_label_prefix(prefix)
    keys = tuple(f"{prefix}/{name}" for name in tiers)
    for key, name in zip(keys, tiers, strict=True):
        if not _NAME.match(name):
            raise ConfigError(
                f"the tier name '{show(name)}' cannot be in a label key: use letters, digits, "
                "'-', '_' and '.', with a letter or a digit at both ends"
            )
        if len(key) > MAX_KEY:
            raise ConfigError(
                f"the label key {show(key)} has {len(key)} characters and may have {MAX_KEY}: "
                "shorten the prefix or the name of the tier"
            )
    return keys


def list_label_keys(
    tiers: Sequence[str], *, prefix: str = DEFAULT_PREFIX, families: Iterable[LabelFamily] = ()
) -> tuple[tuple[str, ...], ...]:
    """Return the keys that carry the value of each tier, lowest tier first; Toponaut's comes first.

    Raises:
        ConfigError: the prefix or a tier name cannot be in a key, or two tiers would have one key.
    """
    rows = [[key] for key in build_tier_keys(tiers, prefix)]
    for family in sorted(set(families)):
        for at, keys in enumerate(rows):
            keys.extend(_list_family_keys(family, at))
    _refuse_shared_keys(rows, tiers)
    return tuple(tuple(dict.fromkeys(row)) for row in rows)


def _refuse_shared_keys(rows: Sequence[Sequence[str]], tiers: Sequence[str]) -> None:
    """Refuse a key that two tiers would have: a node has one value for it.

    Raises:
        ConfigError: there is such a key.
    """
    tier_of: dict[str, str] = {}
    for row, tier in zip(rows, tiers, strict=True):
        for key in row:
            other = tier_of.setdefault(key, tier)
            if other != tier:
                raise ConfigError(
                    f"the label key {show(key)} would carry the tiers {show(other)} and "
                    f"{show(tier)}: change labelPrefix, tierNames or compat"
                )


def list_level_keys(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the keys of a Topology of Kueue or KAI: coarse to fine, the host name last.

    Args:
        keys: the key of each tier, lowest first.

    Raises:
        ConfigError: there are more levels than these systems take.
    """
    levels = (*reversed(keys), HOSTNAME_LABEL)
    if len(levels) > MAX_LEVELS:
        raise ConfigError(
            f"a Topology has at most {MAX_LEVELS} levels with the host name, not {len(levels)}"
        )
    return levels


def _list_family_keys(family: LabelFamily, at: int) -> list[str]:
    if family is LabelFamily.TOPOGRAPH:
        return [f"fabric.topograph.run/tier-{at}"]
    return [f"network.topology.nvidia.com/{name}" for name in _NVIDIA_TIERS[at : at + 1]]
