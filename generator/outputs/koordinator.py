"""Renders Koordinator's ClusterNetworkTopology: a layer per tier, from the cluster to the node.

The layer of the tier `leaf` is `LeafLayer`, as in Koordinator's own examples.

Source: scheduling.koordinator.sh/v1alpha1 of Koordinator 1.7,
apis/scheduling/v1alpha1/cluster_network_topology_types.go. Only the object `default` is read.
"""

from __future__ import annotations

import re
from typing import Any, Final

from generator.kube.resources import Resource
from generator.outputs.formats import ExportSettings
from generator.outputs.node_labels import build_tier_keys
from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError, show
from topology.model.tree import TopologyTree

CLUSTER_NETWORK_TOPOLOGIES: Final = Resource(
    "scheduling.koordinator.sh", "v1alpha1", "clusternetworktopologies", "ClusterNetworkTopology"
)
NAME: Final = "default"
NODE_LAYER: Final = "NodeTopologyLayer"
"""Koordinator's own layer of single nodes; it ends the list."""
_BUILT_IN: Final = frozenset({"ClusterTopologyLayer", NODE_LAYER})
_WORD: Final = re.compile(r"[A-Za-z0-9]+", re.ASCII)


def render_koordinator_objects(
    tree: TopologyTree, settings: ExportSettings
) -> tuple[OwnedObject, ...]:
    """Return the ClusterNetworkTopology.

    Raises:
        ConfigError: two tiers would have one layer, or one of Koordinator's own.
    """
    tiers, keys = tree.tiers, build_tier_keys(tree.tiers, settings.label_prefix)
    layers = [name_layer(tier) for tier in tiers]
    for at, layer in enumerate(layers):
        if layer in _BUILT_IN or layer in layers[:at]:
            raise ConfigError(
                f"the tier '{show(tiers[at])}' would become Koordinator's layer {layer}, "
                "which exists already: choose another name of the tier"
            )
    rows: list[dict[str, Any]] = []
    parent: dict[str, str] = {}
    for layer, key in reversed([*zip(layers, keys, strict=True)]):
        rows.append({"labelKey": [key], **parent, "topologyLayer": layer})
        parent = {"parentTopologyLayer": layer}
    rows.append({**parent, "topologyLayer": NODE_LAYER})
    return (OwnedObject(CLUSTER_NETWORK_TOPOLOGIES, NAME, {"spec": {"networkTopologySpec": rows}}),)


def name_layer(tier: str) -> str:
    """Return the layer of a tier: `top-of-rack` becomes `TopOfRackLayer`."""
    words = _WORD.findall(tier)
    return "".join(word[0].upper() + word[1:] for word in words) + "Layer"
