"""Renders KAI's Topology: the label keys of the tiers, coarse to fine, with the tiers as aliases.

A job may name an alias wherever it may name a key: `kai.scheduler/topology-required-placement:
leaf`. The host name, last, has no alias.

Source: kai.scheduler/v1alpha1 of KAI-Scheduler 0.17, pkg/apis/kai/v1alpha1/topology_types.go. The
keys of a Topology are immutable there; aliases may change.
"""

from __future__ import annotations

from typing import Final

from generator.kube.resources import Resource
from generator.outputs.formats import ExportSettings
from generator.outputs.node_labels import build_tier_keys, list_level_keys
from generator.outputs.owned_object import OwnedObject
from topology.model.tree import TopologyTree

TOPOLOGIES: Final = Resource("kai.scheduler", "v1alpha1", "topologies", "Topology")
POD_GROUPS: Final = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
"""Each PodGroup names the Topology by which it is scheduled."""


def render_kai_objects(tree: TopologyTree, settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return the Topology.

    Raises:
        ConfigError: there are more levels than KAI takes.
    """
    keys = build_tier_keys(tree.tiers, settings.label_prefix)
    aliases = dict(zip(keys, tree.tiers, strict=True)) if settings.has_aliases else {}
    levels = [
        {"nodeLabel": key, **({"alias": aliases[key]} if key in aliases else {})}
        for key in list_level_keys(keys)
    ]
    return (OwnedObject(TOPOLOGIES, settings.name, {"spec": {"levels": levels}}),)
