"""Renders Grove's ClusterTopologyBinding, which names the Topology of KAI that Toponaut writes.

Without the binding Grove would write a Topology of its own, and two writers would compete.

Source: grove.io/v1alpha1 of Grove, operator/api/core/v1alpha1/clustertopologybinding.go, August
2026.
"""

from __future__ import annotations

import re
from typing import Final

from generator.kube.resources import Resource
from generator.outputs.formats import ExportSettings
from generator.outputs.node_labels import build_tier_keys
from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError, show
from topology.model.ids import HOSTNAME_LABEL
from topology.model.tree import TopologyTree

CLUSTER_TOPOLOGY_BINDINGS: Final = Resource(
    "grove.io", "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding"
)
KAI_SCHEDULER: Final = "kai-scheduler"
HOST_DOMAIN: Final = "host"
_DOMAIN: Final = re.compile(r"[a-z][a-z0-9-]{0,62}\Z", re.ASCII)


def render_grove_objects(tree: TopologyTree, settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return the ClusterTopologyBinding.

    Raises:
        ConfigError: the name of a tier cannot be one of Grove's domains.
    """
    tiers, keys = tree.tiers, build_tier_keys(tree.tiers, settings.label_prefix)
    domains = [tier.lower() for tier in tiers]
    seen: set[str] = set()
    for tier, domain in zip(tiers, domains, strict=True):
        if not _DOMAIN.match(domain):
            raise ConfigError(
                f"the tier name '{show(tier)}' cannot be a domain of Grove: use letters, digits "
                "and '-', at most 63, with a letter first"
            )
        if domain in seen:
            raise ConfigError(f"two tiers would be Grove's domain {domain}")
        seen.add(domain)
    levels = [{"domain": domain, "key": key} for domain, key in zip(domains, keys, strict=True)]
    levels.reverse()  # Grove lists the highest tier first
    levels.append({"domain": HOST_DOMAIN, "key": HOSTNAME_LABEL})
    kai_topology = settings.kai_topology or settings.name
    bindings = [{"schedulerName": KAI_SCHEDULER, "topologyReference": kai_topology}]
    spec = {"levels": levels, "schedulerTopologyBindings": bindings}
    return (OwnedObject(CLUSTER_TOPOLOGY_BINDINGS, settings.name, {"spec": spec}),)
