"""Devices that are cabled to the same switches above, and the ports that they use for it.

The leaves of a pod, the n-th spines of all pods and the hosts of a leaf group each form a cohort.
One cohort is compared with others to find what all of its members lack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from topology.model.fabric import Fabric, Flags, Index
from topology.model.pair_counts import count_pairs
from topology.planes.cables import Edge
from topology.planes.plane import Plane
from topology.tiers.tier_groups import TierGroups

NO_GROUP = -1
"""Stands for a missing group."""


class GroupColumns(NamedTuple):
    """The groups of devices as arrays; NO_GROUP for a device without a group."""

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


class UplinkUse(NamedTuple):
    """How the members of a cohort use the port of one name."""

    num: int
    """Members with a cable to a switch above there."""
    far: int
    """The switch to which most of them lead."""
    num_far: int
    """Members with a cable to that switch there."""


@dataclass(frozen=True)
class Cohort:
    """Devices that are cabled to the same switches above."""

    rank: int
    """Rank of the members; 0 for hosts."""
    group: int
    """The group of the switches above."""
    members: Sequence[int]
    """Device numbers, ascending."""
    uppers: Sequence[int]
    """The switches above, ascending."""
    uses: Mapping[str, UplinkUse]
    """By port name of the members."""

    @cached_property
    def usual(self) -> Mapping[str, UplinkUse]:
        """The ports that at least half of the members use."""
        return {port: use for port, use in self.uses.items() if 2 * use.num >= len(self.members)}

    @cached_property
    def num_absent(self) -> int:
        """Cables that members lack at usual ports."""
        return sum(len(self.members) - use.num for use in self.usual.values())


def find_cohorts(fabric: Fabric, plane: Plane, groups: GroupColumns) -> list[Cohort]:
    """Return the cohorts of hosts, then those of switches. Cost: O(links log links)."""
    hosts, switches = _list_host_uplinks(plane, groups), _list_switch_uplinks(plane, groups)
    own, cluster_of = _cluster(switches, groups)
    inside = switches.where(own[switches.near] == cluster_of[switches.far])
    return [
        *_build_cohorts(fabric, hosts, groups.host_group[hosts.near], groups),
        *_build_cohorts(fabric, inside, own[inside.near], groups),
    ]


class _Uplinks(NamedTuple):
    """Cables from devices to the group above them, one entry per cable."""

    near: Index
    far: Index
    ports: Index
    """The port of the near device."""
    far_ports: Index

    def where(self, is_chosen: Flags) -> _Uplinks:
        return _Uplinks(*(column[is_chosen] for column in self))


def _list_host_uplinks(plane: Plane, groups: GroupColumns) -> _Uplinks:
    a, b, a_port, b_port = plane.host_edges.columns
    is_own = (groups.host_group[a] != NO_GROUP) & (groups.host_group[a] == groups.switch_group[b])
    return _Uplinks(a, b, a_port, b_port).where(is_own)


def _list_switch_uplinks(plane: Plane, groups: GroupColumns) -> _Uplinks:
    """Return the cables from each switch to the parent group of its group.

    Each cable is tried in both directions.
    """
    a, b, a_port, b_port = plane.switch_edges.columns
    sides = ((a, b), (b, a), (a_port, b_port), (b_port, a_port))
    both = _Uplinks(*(np.concatenate(columns) for columns in sides))
    above = groups.parents[groups.switch_group[both.near]]
    return both.where((above != NO_GROUP) & (above == groups.switch_group[both.far]))


def find_odd_uplinks(
    fabric: Fabric, plane: Plane, groups: GroupColumns
) -> Iterator[tuple[Edge, int]]:
    """Yield up-links that lead to another switch than the same port of most peers.

    Each comes with the switch to which it should lead. The lower switch is the first end. Cost:
    O(links log links).
    """
    uplinks = _list_switch_uplinks(plane, groups)
    if not len(uplinks.near):
        return
    own, cluster_of = _cluster(uplinks, groups)
    numbers, is_inside = own[uplinks.near], own[uplinks.near] == cluster_of[uplinks.far]
    codes, _ = fabric.columns.port_names.code(uplinks.ports)
    uses = _count_uses(numbers[is_inside], codes[is_inside], uplinks.far[is_inside])
    members = count_pairs(numbers, uplinks.near).left
    sizes = dict(
        zip(*(row.tolist() for row in np.unique(members, return_counts=True)), strict=True)
    )
    keys = np.stack((numbers, codes))
    _, first, which = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    expected = np.array(
        [
            use.far if use is not None and 2 * use.num_far > sizes[number] else NO_GROUP
            for number, code in zip(numbers[first].tolist(), codes[first].tolist(), strict=True)
            for use in (uses.get(number, {}).get(code),)
        ],
        np.intp,
    )[which.ravel()]
    is_odd = (expected != NO_GROUP) & (expected != uplinks.far)
    odd = uplinks.where(is_odd)
    for near, far, port, far_port, right in zip(
        *(column.tolist() for column in (*odd, expected[is_odd])), strict=True
    ):
        yield Edge(near, far, port, far_port), right


def _cluster(uplinks: _Uplinks, groups: GroupColumns) -> tuple[Index, Index]:
    """Return the cohort of each switch as a lower switch, and as an upper switch; else NO_GROUP.

    Switches above that have mostly the same switches below are one side of a cohort. So two cables
    that are swapped between cohorts do not join them.
    """
    cluster_of = np.full(len(groups.switch_group), NO_GROUP)
    for number, uppers in enumerate(_cluster_uppers(uplinks, groups)):
        cluster_of[uppers] = number
    pairs = count_pairs(uplinks.near, cluster_of[uplinks.far])
    order = np.argsort(pairs.counts, kind="stable")  # the last one of a switch counts
    own = np.full(len(groups.switch_group), NO_GROUP)
    own[pairs.left[order]] = pairs.right[order]
    return own, cluster_of


def _cluster_uppers(uplinks: _Uplinks, groups: GroupColumns) -> Iterator[list[int]]:
    if not len(uplinks.far):
        return
    pairs = count_pairs(uplinks.far, uplinks.near)
    starts = np.flatnonzero(np.diff(pairs.left, prepend=-1))
    equal: dict[int, dict[bytes, list[int]]] = defaultdict(dict)
    for upper, lowers in zip(
        pairs.left[starts].tolist(), np.split(pairs.right, starts[1:]), strict=True
    ):
        of_group = equal[int(groups.switch_group[upper])]
        of_group.setdefault(lowers.tobytes(), []).append(upper)
    for of_group in equal.values():
        sets = [
            (frozenset(np.frombuffer(lowers, np.intp).tolist()), uppers)
            for lowers, uppers in of_group.items()
        ]
        yield from _join_similar(sets)


def _join_similar(sets: Iterable[tuple[frozenset[int], list[int]]]) -> list[list[int]]:
    """Return groups of switches with mostly the same switches below; the input has exact groups."""
    clusters: list[tuple[frozenset[int], list[int]]] = []
    for lowers, uppers in sorted(sets, key=lambda row: (-len(row[0]), row[1])):
        similar = (members for known, members in clusters if 2 * len(known & lowers) > len(lowers))
        first = next(similar, None)
        if first is None:
            clusters.append((lowers, [*uppers]))
        else:
            first += uppers
    return [members for _, members in clusters]


def _build_cohorts(
    fabric: Fabric, uplinks: _Uplinks, numbers: Index, groups: GroupColumns
) -> Iterator[Cohort]:
    """Yield the cohorts, given the cohort number of each cable."""
    if not len(numbers):
        return
    codes, texts = fabric.columns.port_names.code(uplinks.ports)
    uses = _count_uses(numbers, codes, uplinks.far)
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for chosen in np.split(order, starts[1:]):
        near = np.unique(uplinks.near[chosen])
        group = int(groups.switch_group[uplinks.far[chosen[0]]])
        is_host = groups.switch_group[near[0]] == NO_GROUP
        yield Cohort(
            rank=0 if is_host else int(groups.ranks[groups.switch_group[near[0]]]),
            group=group,
            members=near.tolist(),
            uppers=np.unique(uplinks.far[chosen]).tolist(),
            uses={str(texts[code]): use for code, use in uses[int(numbers[chosen[0]])].items()},
        )


def _count_uses(numbers: Index, codes: Index, fars: Index) -> Mapping[int, Mapping[int, UplinkUse]]:
    """Return the uses of ports by cohort and port code."""
    order = np.lexsort((fars, codes, numbers))
    keys = np.stack((numbers[order], codes[order], fars[order]))
    starts = np.flatnonzero(np.diff(keys, axis=1, prepend=-1).any(axis=0))
    counts = np.diff(starts, append=len(order))
    found: dict[int, dict[int, UplinkUse]] = defaultdict(dict)
    for number, code, far, count in zip(*keys[:, starts].tolist(), counts.tolist(), strict=True):
        last = found[number].get(code, UplinkUse(0, far, 0))
        most = max((last.num_far, last.far), (count, far), key=lambda row: row[0])
        found[number][code] = UplinkUse(last.num + count, most[1], most[0])
    return found
