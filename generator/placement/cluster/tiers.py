"""Look up the height of a tier by its name."""

from __future__ import annotations

from generator.placement.cluster.levels import CLUSTER_TIER, NODE_TIER
from generator.placement.cluster.snapshot import Snapshot


class UnknownTier(LookupError):  # noqa: N818 - reads as what it is; caught where it is answered
    """A tier that the tree lacks."""


def tier_index(snapshot: Snapshot, tier: str | None) -> int:
    """Return the height of a tier by name, or by its integer in text form.

    Raises:
        UnknownTier: the tree has no such tier.
    """
    if tier == NODE_TIER:
        return 0
    if tier == CLUSTER_TIER:
        return snapshot.levels.root
    height = None if tier is None else snapshot.tree.tier_of(tier)
    if height is None:
        raise UnknownTier(tier)
    return height
