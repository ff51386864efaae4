"""Renders KAI's Topology: the label keys of the tiers, coarse to fine, with the tiers as aliases.

A job may name an alias wherever it may name a key: `kai.scheduler/topology-required-placement:
leaf`. The host name, last, has no alias.

Source: kai.scheduler/v1alpha1 of KAI-Scheduler 0.17, pkg/apis/kai/v1alpha1/topology_types.go. The
keys of a Topology are immutable there; aliases may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from generator.outputs.node_labels import list_level_keys
from generator.outputs.owned_object import OwnedObject

API_VERSION: Final = "kai.scheduler/v1alpha1"


def render_kai_objects(
    tiers: Sequence[str], keys: Sequence[str], *, name: str, has_aliases: bool = True
) -> tuple[OwnedObject, ...]:
    """Return the Topology.

    Args:
        tiers: the names of the tiers, lowest first.
        keys: the label key of each tier.
        name: the name of the Topology.
        has_aliases: whether to write aliases; KAI before 0.17 has no such field.

    Raises:
        ConfigError: there are more levels than KAI takes.
    """
    aliases = dict(zip(keys, tiers, strict=True)) if has_aliases else {}
    levels = [
        {"nodeLabel": key, **({"alias": aliases[key]} if key in aliases else {})}
        for key in list_level_keys(keys)
    ]
    fields = {"spec": {"levels": levels}}
    return (OwnedObject(API_VERSION, "Topology", name, fields),)
