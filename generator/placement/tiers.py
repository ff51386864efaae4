"""Tiers by name and by height, and which of them a request speaks of."""

from __future__ import annotations

from generator.placement.capacity import Snapshot
from generator.placement.levels import CLUSTER, NODE
from generator.placement.request import PlacementRequest


class UnknownTier(LookupError):  # noqa: N818 - reads as what it is; caught where it is answered
    """A tier that the tree lacks."""


def height(snapshot: Snapshot, tier: str | None) -> int:
    """Return the height of a tier by name, or by its integer in text form.

    Raises:
        UnknownTier: the tree has no such tier.
    """
    if tier == NODE:
        return 0
    if tier == CLUSTER:
        return snapshot.levels.root
    found = None if tier is None else snapshot.tree.tier_of(tier)
    if found is None:
        raise UnknownTier(tier)
    return found


def uses_tiers(request: PlacementRequest) -> bool:
    """Return whether a request speaks of tiers, so that nodes outside the tree are of no use."""
    of_groups = any(
        group.required or group.slices or group.preferred or group.multiples
        for group in request.groups
    )
    of_sets = any(row.required or row.preferred for row in request.sets)
    return (
        of_groups
        or of_sets
        or bool(request.required or request.preferred or request.strategies or request.limits)
    )


def named_tiers(request: PlacementRequest) -> list[str]:
    """Return all tiers that a request names, in the order of its fields."""
    found = [*filter(None, [request.required]), *request.preferred]
    found += [tier for pair in request.strategies for tier in pair]
    found += [tier for tier, _ in request.limits]
    for group in request.groups:
        found += [*filter(None, [group.required]), *group.preferred]
        found += [layer.tier for layer in group.slices if layer.tier is not None]
        found += [tier for tier, _ in group.multiples]
    for row in request.sets:
        found += [*filter(None, [row.required]), *row.preferred]
    return found
