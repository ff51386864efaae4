"""Renders a NodeFeature per node: its domains as attributes, for rules of the admin.

A NodeFeatureRule turns them into labels: `matchFeatures: [{feature: toponaut.topology,
matchExpressions: {leaf: {op: Exists}}}]`. One object per node, because a flat list of all nodes in
one object breaks at some 12,000 names.

Source: nfd.k8s-sigs.io/v1alpha1 of Node Feature Discovery 0.17; its CRD wants all three kinds of
features to be present.
"""

from __future__ import annotations

from typing import Final

from generator.kube.resources import Resource
from generator.outputs.formats import ExportSettings
from generator.outputs.node_labels import MAX_VALUE, render_node_labels
from generator.outputs.owned_object import OwnedObject, is_object_name
from topology.model.tree import TopologyTree

NODE_FEATURES: Final = Resource("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", "NodeFeature")
NODE_LABEL: Final = "nfd.node.kubernetes.io/node-name"
FEATURE: Final = "toponaut.topology"
_NAME_PREFIX: Final = "toponaut-"


def is_feature_node(name: str) -> bool:
    """Return whether a NodeFeature can name a node: in its own name, and in a label."""
    return is_object_name(f"{_NAME_PREFIX}{name}") and len(name) <= MAX_VALUE


def render_nfd_objects(tree: TopologyTree, settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return a NodeFeature per placed node, in tree order; the tiers are its elements."""
    return tuple(
        _build_feature(row.node, dict(zip(tree.tiers, row.values, strict=True)), settings.namespace)
        for row in render_node_labels(tree)
        if row.is_placed
    )


def _build_feature(node: str, elements: dict[str, str], namespace: str) -> OwnedObject:
    features = {"attributes": {FEATURE: {"elements": elements}}, "flags": {}, "instances": {}}
    return OwnedObject(
        NODE_FEATURES,
        f"{_NAME_PREFIX}{node}",
        {"spec": {"features": features, "labels": {}}},
        namespace=namespace,
        labels={NODE_LABEL: node},
    )
