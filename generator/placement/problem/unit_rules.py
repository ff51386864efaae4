"""Rules on the pods of a group in each unit of a tier: from multiples and from slices."""

from __future__ import annotations

from typing import NamedTuple

from generator.placement.cluster.snapshot import Snapshot
from generator.placement.cluster.tiers import tier_index
from generator.placement.request import PlacementRequest


class UnitRule(NamedTuple):
    """A rule on the pods of a group, running ones included, in each unit of a tier."""

    tier: int
    multiple: int
    max_pods: int | None
    group: int


class ShortSliceRule(NamedTuple):
    """A layer of slices of which one may be short.

    Pods beyond whole slices, summed over the units of the tier, must not exceed those beyond whole
    slices of the group; running pods are included.
    """

    tier: int
    size: int
    group: int


def build_unit_rules(
    snapshot: Snapshot, request: PlacementRequest, *, is_growth: bool
) -> tuple[UnitRule, ...]:
    """Return the rules on the pods of a group in each unit of a tier.

    If pods already run, new pods may complete a running slice. A rule then replaces the tier of a
    part.
    """
    rules: list[UnitRule] = []
    for index, group in enumerate(request.groups):
        rules += [
            UnitRule(tier_index(snapshot, tier), multiple_of, None, index)
            for tier, multiple_of in group.multiples
        ]
        for layer_index, layer in enumerate(group.slices):
            if layer.tier is None:
                continue
            is_part_tier = layer_index == len(group.slices) - 1 and not is_growth
            is_covered_by_index = layer.is_indexed and is_growth
            multiple = 1 if layer.has_short or is_part_tier or is_covered_by_index else layer.size
            max_pods = layer.size if layer.is_spread else None
            if multiple > 1 or max_pods is not None:
                rules.append(UnitRule(tier_index(snapshot, layer.tier), multiple, max_pods, index))
    return tuple(rules)


def build_short_slice_rules(
    snapshot: Snapshot, request: PlacementRequest, *, is_growth: bool
) -> tuple[ShortSliceRule, ...]:
    """Return the layers with a short slice that the tiers of parts do not bound."""
    return tuple(
        ShortSliceRule(tier_index(snapshot, layer.tier), layer.size, index)
        for index, group in enumerate(request.groups)
        for layer_index, layer in enumerate(group.slices)
        if layer.tier is not None and layer.has_short and not layer.is_indexed
        if is_growth or layer_index < len(group.slices) - 1
    )
