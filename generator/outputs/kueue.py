"""Renders Kueue's Topology: the label keys of the tiers, coarse to fine, then the host name.

With the host name as the last level, Kueue lets the other levels be edited, replaces failed nodes
one by one, and respects taints.

Source: kueue.x-k8s.io/v1beta2 of Kueue 0.19, apis/kueue/v1beta2/topology_types.go and
resourceflavor_types.go; v1beta1 has the same fields.
"""

from __future__ import annotations

from typing import Final

from generator.kube.resources import Resource
from generator.outputs.formats import MAX_FLAVOR_LABELS, ExportSettings
from generator.outputs.node_labels import build_tier_keys, list_level_keys
from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError
from topology.model.tree import TopologyTree

TOPOLOGIES: Final = Resource("kueue.x-k8s.io", "v1beta2", "topologies", "Topology")
RESOURCE_FLAVORS: Final = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor")


def render_kueue_objects(tree: TopologyTree, settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return the Topology and, if asked for, a ResourceFlavor, in the order of creation.

    Raises:
        ConfigError: there are more levels or labels than Kueue takes, or a flavor without labels.
    """
    keys = build_tier_keys(tree.tiers, settings.label_prefix)
    name, flavor = settings.name, settings.flavor
    levels = [{"nodeLabel": key} for key in list_level_keys(keys)]
    objects = [OwnedObject(TOPOLOGIES, name, {"spec": {"levels": levels}})]
    if flavor is not None:
        if not 1 <= len(flavor.node_labels) <= MAX_FLAVOR_LABELS:
            raise ConfigError(
                f"a ResourceFlavor with a topology has 1 to {MAX_FLAVOR_LABELS} node labels, "
                f"not {len(flavor.node_labels)}"
            )
        spec = {"nodeLabels": dict(sorted(flavor.node_labels.items())), "topologyName": name}
        objects.append(OwnedObject(RESOURCE_FLAVORS, flavor.name, {"spec": spec}))
    return tuple(objects)
