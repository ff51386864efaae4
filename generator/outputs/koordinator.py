"""Renders Koordinator's ClusterNetworkTopology: a layer per tier, from the cluster to the node.

The layer of the tier `leaf` is `LeafLayer`, as in Koordinator's own examples.

Source: scheduling.koordinator.sh/v1alpha1 of Koordinator 1.7,
apis/scheduling/v1alpha1/cluster_network_topology_types.go. Only the object `default` is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError, show

API_VERSION: Final = "scheduling.koordinator.sh/v1alpha1"
NAME: Final = "default"
NODE_LAYER: Final = "NodeTopologyLayer"
"""Koordinator's own layer of single nodes; it ends the list."""
_BUILT_IN: Final = frozenset({"ClusterTopologyLayer", NODE_LAYER})
_WORD: Final = re.compile(r"[A-Za-z0-9]+", re.ASCII)


def render_koordinator_objects(
    tiers: Sequence[str], keys: Sequence[str]
) -> tuple[OwnedObject, ...]:
    """Return the ClusterNetworkTopology.

    Args:
        tiers: the names of the tiers, lowest first.
        keys: the label key of each tier.

    Raises:
        ConfigError: two tiers would have one layer, or one of Koordinator's own.
    """
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
    return (
        OwnedObject(
            API_VERSION, "ClusterNetworkTopology", NAME, {"spec": {"networkTopologySpec": rows}}
        ),
    )


def name_layer(tier: str) -> str:
    """Return the layer of a tier: `top-of-rack` becomes `TopOfRackLayer`."""
    words = _WORD.findall(tier)
    return "".join(word[0].upper() + word[1:] for word in words) + "Layer"
