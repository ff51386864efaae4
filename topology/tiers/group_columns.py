"""Groups as arrays: for each device the group that it is in, to count links by groups at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from topology.model.fabric import Fabric
from topology.model.fabric_columns import Index
from topology.tiers.tier_groups import Grouping

NONE = -1
"""No group."""


class GroupColumns(NamedTuple):
    """By device or by group; NONE where there is no such group."""

    group_of: Index
    """By device the group that it is a switch of."""
    home: Index
    """By device the group that it is a host of."""
    ranks: Index
    """By group its rank."""
    parents: Index
    """By group the one above it; the last entry, which NONE finds, is NONE."""


def group_columns(fabric: Fabric, grouping: Grouping) -> GroupColumns:
    """Return the groups of a fabric's devices as arrays. Cost: O(devices)."""
    groups = grouping.groups
    home = {host: at for at, group in enumerate(groups) for host in group.hosts}
    size = len(fabric.devices)
    return GroupColumns(
        group_of=_column(grouping.by_switch(), size),
        home=_column(home, size),
        ranks=np.array([*(group.rank for group in groups), NONE], np.intp),
        parents=np.array(
            [*(NONE if group.parent is None else group.parent for group in groups), NONE], np.intp
        ),
    )


def _column(found: Mapping[int, int], size: int) -> Index:
    column = np.full(size, NONE)
    column[list(found)] = list(found.values())
    return column
