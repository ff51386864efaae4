"""The kinds of objects of each output, and the field manager that owns their fields."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from generator.kube.ownership import find_owned_parts
from generator.kube.resources import CONFIG_MAPS, NODES, Resource
from generator.objects.outputs import OutputType
from generator.store.kinds import BULK, Kind

KUEUE_TOPOLOGIES: Final = Resource("kueue.x-k8s.io", "v1beta2", "topologies", "Topology")
RESOURCE_FLAVORS: Final = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor")
KAI_TOPOLOGIES: Final = Resource("kai.scheduler", "v1alpha1", "topologies", "Topology")
KAI_POD_GROUPS: Final = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
CLUSTER_NETWORK_TOPOLOGIES: Final = Resource(
    "scheduling.koordinator.sh",
    "v1alpha1",
    "clusternetworktopologies",
    "ClusterNetworkTopology",
)
CLUSTER_TOPOLOGY_BINDINGS: Final = Resource(
    "grove.io", "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding"
)
NODE_FEATURES: Final = Resource("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", "NodeFeature")

KINDS: Final[Mapping[OutputType, tuple[Resource, ...]]] = MappingProxyType(
    {
        OutputType.LABELS: (NODES,),
        OutputType.SLINKY: (NODES,),
        OutputType.KUEUE: (KUEUE_TOPOLOGIES, RESOURCE_FLAVORS),
        OutputType.KAI: (KAI_TOPOLOGIES,),
        OutputType.KOORDINATOR: (CLUSTER_NETWORK_TOPOLOGIES,),
        OutputType.GROVE: (CLUSTER_TOPOLOGY_BINDINGS,),
        OutputType.NFD: (NODE_FEATURES,),
        OutputType.SLURM_TREE: (CONFIG_MAPS,),
        OutputType.SLURM_BLOCK: (CONFIG_MAPS,),
        OutputType.SLURM_YAML: (CONFIG_MAPS,),
        OutputType.CONFIG_MAP: (CONFIG_MAPS,),
        OutputType.TOPOGRAPH: (CONFIG_MAPS,),
    }
)
"""In the order in which objects are created."""
NAMESPACED: Final = frozenset({CONFIG_MAPS, NODE_FEATURES})
"""The kinds with a namespace; only Toponaut's own is read."""
_OLDER_VERSIONS: Final[Mapping[Resource, tuple[str, ...]]] = MappingProxyType(
    {KUEUE_TOPOLOGIES: ("v1beta1",), RESOURCE_FLAVORS: ("v1beta1",)}
)
OwnedParts = Mapping[str, str]
"""What our field managers own of an object, as `render_part` renders it; empty if nothing."""


def name_manager(kind: OutputType) -> str:
    """Return the field manager of an output.

    It must never change: under another name, the fields of this one would stay forever.
    """
    return f"toponaut-{kind}"


COMPAT_MANAGER: Final = "toponaut-labels-compat"
"""Owns the label keys of other tools, so that a conflict about one of them stops no key of ours."""
MANAGERS: Final = frozenset({*map(name_manager, KINDS), COMPAT_MANAGER})


def build_kind(resource: Resource, *, namespace: str = "") -> Kind[OwnedParts]:
    """Return the kind of which only our parts are kept.

    Args:
        resource: in its newest version.
        namespace: the only one that is read, if the kind has namespaces.
    """
    local = resource._replace(namespace=namespace) if resource in NAMESPACED else resource
    older = _OLDER_VERSIONS.get(resource, ())
    return Kind(local, _find_our_parts, pace=BULK, older_versions=older)


def _find_our_parts(document: Mapping[str, Any]) -> OwnedParts:
    return find_owned_parts(document, MANAGERS)
