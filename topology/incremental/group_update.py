"""Groups of leaves after cables of hosts moved: the same leaves together, with other hosts."""

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
    """A part of a plane, and its leaves in groups."""

    part: PlanePart
    grouping: TierGroups
    """Of leaves alone, by the part's numbers."""
    ranks: Ranks
    """Of nothing but its hosts on spines, by the part's numbers."""

    def groups(self) -> dict[tuple[int, ...], tuple[tuple[int, ...], float]]:
        """Return switches to hosts and margin of each group, by numbers of the whole."""
        return {
            self._to_whole(group.switches): (self._to_whole(group.hosts), group.margin)
            for group in self.grouping.groups
        }

    def set_aside(self) -> set[tuple[int, tuple[int, ...]]]:
        """Return what is set aside, by numbers of the whole."""
        return {(rank, self._to_whole(switches)) for rank, switches in self.grouping.set_aside}

    def ties(self) -> list[Tie]:
        """Return the undecided hosts, by numbers of the whole."""
        return [
            Tie(self._to_whole((tie.unit,))[0], tuple(map(self._to_whole, tie.groups)), tie.counts)
            for tie in self.grouping.host_ties
        ]

    def _to_whole(self, devices: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.part.devices[list(devices)].tolist())


def group_part(
    fabric: Fabric, plane: Plane, ranks: Ranks, devices: tuple[Index, Index]
) -> GroupedPart:
    """Return a part of a plane with its leaves in groups.

    Args:
        fabric: all devices and links.
        plane: of this fabric.
        ranks: of its switches.
        devices: hosts and switches that stand alone, see `plane_part.find_part`.
    """
    hosts, switches = devices
    part = cut_part(fabric, plane, hosts, switches)
    leaves = part.to_part_numbers(at for at in switches.tolist() if ranks.rank.get(at) == 1)
    grouping = group_switches(part.plane, Ranks(dict.fromkeys(leaves, 1), ()))
    own = set(hosts.tolist())
    strays = [part.to_part_numbers(pair) for pair in ranks.hosts_on_spines if pair[0] in own]
    return GroupedPart(part, grouping, Ranks({}, tuple((host, leaf) for host, leaf in strays)))


def update_groups(last: TierGroups, old: GroupedPart, new: GroupedPart) -> TierGroups | None:
    """Return the groups of a plane of which a part changed; None where more than hosts moved.

    Args:
        last: of the whole plane before.
        old: the part as it was.
        new: the part as it is.
    """
    was, now = old.groups(), new.groups()
    by_switch = last.by_switch()
    places = {switches: by_switch.get(switches[0], -1) for switches in was}
    is_same = all(
        at >= 0
        and (last.groups[at].switches, last.groups[at].hosts, last.groups[at].margin)
        == (switches, *was[switches])
        for switches, at in places.items()
    )
    keeps_leaves = was.keys() == now.keys() and old.set_aside() == new.set_aside()
    if not (is_same and keeps_leaves and old.set_aside() <= set(last.set_aside)):
        return None
    if _may_be_thin(last):
        return None
    groups = [*last.groups]
    for switches, at in places.items():
        hosts, margin = now[switches]
        groups[at] = replace(groups[at], hosts=hosts, margin=margin)
    ties = _update_ties(last.host_ties, old.ties(), new.ties())
    return None if ties is None else replace(last, groups=tuple(groups), host_ties=ties)


def _update_ties(
    last: Sequence[Tie], old: Sequence[Tie], new: Sequence[Tie]
) -> tuple[Tie, ...] | None:
    known = {tie.unit: tie for tie in last}
    if any(known.pop(tie.unit, None) != tie for tie in old):
        return None
    return tuple(sorted([*known.values(), *new], key=lambda tie: tie.unit))


def _may_be_thin(grouping: TierGroups) -> bool:
    """Return whether the number of hosts of a leaf group may decide about a top above it."""
    groups = grouping.groups
    children = Counter(group.parent for group in groups)
    return any(rank > SPINE_RANK for rank, _ in grouping.set_aside) or any(
        group.rank == 1
        and group.parent is not None
        and children[group.parent] == 1
        and groups[group.parent].rank > SPINE_RANK
        for group in groups
    )
