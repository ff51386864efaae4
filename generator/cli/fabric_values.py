"""A synthetic fabric and its faults, from the values of their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from topology.model.facts import Medium
from topology.synthetic import FabricKind, FaultSpec, NamePolicy, SyntheticSpec

_MAX_CABLES: Final = 1 << 21
"""More cables would take more memory than a machine of today has."""


def parse_fabric_spec(options: Mapping[str, Any]) -> SyntheticSpec:
    """Return the fabric that the options describe.

    Raises:
        click.UsageError: it is too large to be simulated.
    """
    spec = SyntheticSpec(
        kind=FabricKind(options["kind"]),
        num_hosts=options["hosts"],
        rails=options["rails"],
        radix=options["radix"],
        tiers=options["tiers"],
        medium=Medium(options["medium"]),
        names=NamePolicy(options["names"]),
        uplinks=options["uplinks"],
        storage_leaves=options["storage_leaves"],
        islands=options["islands"],
        peer_links=options["peer_links"],
        nvlink_hosts=options["nvlink_domain"],
    )
    leaves = -(-spec.num_hosts * spec.ports_per_host // max(spec.num_half_ports, 1))
    leaves = max(leaves, spec.ports_per_host)
    num_cables = spec.num_hosts * (spec.ports_per_host + spec.storage_leaves) + leaves * (
        spec.num_uplinks + spec.peer_links
    )
    if num_cables > _MAX_CABLES:
        raise click.UsageError(
            f"this fabric has {num_cables:,} cables; at most {_MAX_CABLES:,} can be simulated: "
            "use fewer hosts, rails or switches"
        )
    return spec


def parse_fault_spec(options: Mapping[str, Any]) -> FaultSpec:
    """Return the faults that the options describe.

    Raises:
        click.UsageError: --lose-rank is given without --lose-switch.
    """
    if options["lose_rank"] and not options["lose_switch"]:
        raise click.UsageError("--lose-rank needs --lose-switch, the number of switches to remove")
    return FaultSpec(
        lose_links=options["lose_links"],
        num_swaps=options["swap"].pairs,
        silent=options["silent"],
        lose_switches=options["lose_switch"],
        lose_hosts=options["lose_host"],
        swap=options["swap"].share,
        lose_rank=options["lose_rank"],
        lost=options["lose"],
        shuffle=options["shuffle_hosts"],
    )
