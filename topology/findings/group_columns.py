"""The groups of devices as arrays, to compare both ends of many cables at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from topology.model.fabric import Fabric
from topology.model.fabric_columns import Index
from topology.tiers.tier_groups import TierGroups

NO_GROUP = -1
"""Stands for a missing group."""


class GroupColumns(NamedTuple):
    """The groups of devices as arrays, with NO_GROUP where there is none."""

    switch_group: Index
    """By device: the group of a switch."""
    host_group: Index
    """By device: the group of a host."""
    ranks: Index
    """By group: its rank, and a last entry for NO_GROUP."""
    parents: Index
    """By group: its parent; the last entry, which the index NO_GROUP selects, is NO_GROUP."""


def build_group_columns(fabric: Fabric, grouping: TierGroups) -> GroupColumns:
    """Return the groups of a fabric's devices as arrays. Cost: O(devices)."""
    groups = grouping.groups
    group_of_host = {
        host: group_index for group_index, group in enumerate(groups) for host in group.hosts
    }
    size = len(fabric.devices)
    return GroupColumns(
        switch_group=_column(grouping.by_switch(), size),
        host_group=_column(group_of_host, size),
        ranks=np.array([*(group.rank for group in groups), NO_GROUP], np.intp),
        parents=np.array(
            [*(NO_GROUP if group.parent is None else group.parent for group in groups), NO_GROUP],
            np.intp,
        ),
    )


def _column(group_by_device: Mapping[int, int], size: int) -> Index:
    column = np.full(size, NO_GROUP)
    column[list(group_by_device)] = list(group_by_device.values())
    return column
