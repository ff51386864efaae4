"""Renders Grove's ClusterTopologyBinding, which names the Topology of KAI that Toponaut writes.

Without the binding Grove would write a Topology of its own, and two writers would compete.

Source: grove.io/v1alpha1 of Grove, operator/api/core/v1alpha1/clustertopologybinding.go, August
2026.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from generator.outputs.owned_object import OwnedObject
from topology.model.errors import ConfigError, show
from topology.model.ids import HOSTNAME_LABEL

API_VERSION: Final = "grove.io/v1alpha1"
KAI_SCHEDULER: Final = "kai-scheduler"
HOST_DOMAIN: Final = "host"
_DOMAIN: Final = re.compile(r"[a-z][a-z0-9-]{0,62}\Z", re.ASCII)


def render_grove_objects(
    tiers: Sequence[str], keys: Sequence[str], *, name: str, kai_topology: str
) -> tuple[OwnedObject, ...]:
    """Return the ClusterTopologyBinding.

    Args:
        tiers: the names of the tiers, lowest first.
        keys: the label key of each tier.
        name: the name of the binding.
        kai_topology: the name of KAI's Topology.

    Raises:
        ConfigError: the name of a tier cannot be one of Grove's domains.
    """
    domains = [tier.lower() for tier in tiers]
    for at, (tier, domain) in enumerate(zip(tiers, domains, strict=True)):
        if not _DOMAIN.match(domain):
            raise ConfigError(
                f"the tier name '{show(tier)}' cannot be a domain of Grove: use letters, digits "
                "and '-', at most 63, with a letter first"
            )
        if domain in domains[:at]:
            raise ConfigError(f"two tiers would be Grove's domain {domain}")
    levels = [
        {"domain": domain, "key": key}
        for domain, key in (
            *reversed([*zip(domains, keys, strict=True)]),
            (HOST_DOMAIN, HOSTNAME_LABEL),
        )
    ]
    bindings = [{"schedulerName": KAI_SCHEDULER, "topologyReference": kai_topology}]
    spec = {"levels": levels, "schedulerTopologyBindings": bindings}
    return (OwnedObject(API_VERSION, "ClusterTopologyBinding", name, {"spec": spec}),)
