"""Groups of leaves after host cables moved: the same leaves in each group, with other hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from topology.incremental.partial_plane import PlanePart, cut_part
from topology.model.fabric import Fabric
from topology.model.fabric_columns import Index
from topology.planes.plane import Plane
from topology.tiers.group_membership import Tie
from topology.tiers.ranks import Ranks
from topology.tiers.tier_groups import SPINE_RANK, TierGroups, group_switches


@dataclass(frozen=True, slots=True)
class GroupedPart:
    """A part of a plane, with its leaves in groups."""

    part: PlanePart
    grouping: TierGroups
    """The groups of leaves, in device numbers of the part."""
    ranks: Ranks
    """Only the hosts on spines, in device numbers of the part."""

    def groups(self) -> dict[tuple[int, ...], tuple[tuple[int, ...], float]]:
        """Return hosts and margin of each group by its switches, in the fabric's device numbers."""
        return {
            self._to_whole(group.switches): (self._to_whole(group.hosts), group.margin)
            for group in self.grouping.groups
        }

    def set_aside(self) -> set[tuple[int, tuple[int, ...]]]:
        """Return the switches that are set aside, in the fabric's device numbers."""
        return {(rank, self._to_whole(switches)) for rank, switches in self.grouping.set_aside}

    def ties(self) -> list[Tie]:
        """Return the undecided hosts, in the fabric's device numbers."""
        return [self._tie_to_whole(tie) for tie in self.grouping.host_ties]

    def divided(self) -> list[Tie]:
        """Return the hosts with many links to another group, in the fabric's device numbers."""
        return [self._tie_to_whole(tie) for tie in self.grouping.divided_hosts]

    def _tie_to_whole(self, tie: Tie) -> Tie:
        unit, groups = self._to_whole((tie.unit,))[0], tuple(map(self._to_whole, tie.groups))
        return Tie(unit, groups, tie.counts)

    def _to_whole(self, devices: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.part.devices[list(devices)].tolist())


def group_part(
    fabric: Fabric, plane: Plane, ranks: Ranks, devices: tuple[Index, Index]
) -> GroupedPart:
    """Return a part of a plane with its leaves in groups.

    Args:
        fabric: all devices and links.
        plane: a plane of this fabric.
        ranks: the ranks of its switches.
        devices: independent hosts and switches, see `partial_plane.find_part`.
    """
    hosts, switches = devices
    part = cut_part(fabric, plane, hosts, switches)
    leaves = part.to_part_numbers(at for at in switches.tolist() if ranks.rank.get(at) == 1)
    grouping = group_switches(part.plane, Ranks(dict.fromkeys(leaves, 1), ()))
    part_hosts = set(hosts.tolist())
    hosts_on_spines = [
        part.to_part_numbers(pair) for pair in ranks.hosts_on_spines if pair[0] in part_hosts
    ]
    return GroupedPart(
        part, grouping, Ranks({}, tuple((host, leaf) for host, leaf in hosts_on_spines))
    )


def update_groups(last: TierGroups, old: GroupedPart, new: GroupedPart) -> TierGroups | None:
    """Return the groups of a plane after a part changed; None if they must be derived again.

    This updates only the hosts of groups. The groups must be derived again if their leaves changed,
    or if a number of hosts may decide a tier.

    Args:
        last: the groups of the full plane before the change.
        old: the part before the change.
        new: the part after the change.
    """
    old_groups, new_groups = old.groups(), new.groups()
    by_switch = last.by_switch()
    index_by_switches = {switches: by_switch.get(switches[0], -1) for switches in old_groups}
    is_same = all(
        group_index >= 0
        and (
            last.groups[group_index].switches,
            last.groups[group_index].hosts,
            last.groups[group_index].margin,
        )
        == (switches, *old_groups[switches])
        for switches, group_index in index_by_switches.items()
    )
    keeps_leaves = old_groups.keys() == new_groups.keys() and old.set_aside() == new.set_aside()
    if not (is_same and keeps_leaves and old.set_aside() <= set(last.set_aside)):
        return None
    if _may_be_thin(last):
        return None
    groups = [*last.groups]
    for switches, group_index in index_by_switches.items():
        hosts, margin = new_groups[switches]
        groups[group_index] = replace(groups[group_index], hosts=hosts, margin=margin)
    ties = _update_ties(last.host_ties, old.ties(), new.ties())
    divided = _update_ties(last.divided_hosts, old.divided(), new.divided())
    if ties is None or divided is None:
        return None
    return replace(last, groups=tuple(groups), host_ties=ties, divided_hosts=divided)


def _update_ties(
    last: Sequence[Tie], old: Sequence[Tie], new: Sequence[Tie]
) -> tuple[Tie, ...] | None:
    tie_by_unit = {tie.unit: tie for tie in last}
    if any(tie_by_unit.pop(tie.unit, None) != tie for tie in old):
        return None
    return tuple(sorted([*tie_by_unit.values(), *new], key=lambda tie: tie.unit))


def _may_be_thin(grouping: TierGroups) -> bool:
    """Return whether the number of hosts of a leaf group may decide if a top above it is a tier."""
    groups = grouping.groups
    children = Counter(group.parent for group in groups)
    return any(rank > SPINE_RANK for rank, _ in grouping.set_aside) or any(
        group.rank == 1
        and group.parent is not None
        and children[group.parent] == 1
        and groups[group.parent].rank > SPINE_RANK
        for group in groups
    )
