"""Directors: many switch chips in one chassis, recognized by their common system-image GUID.

A line module with hosts is a leaf like any other. The rest of the chassis (spine modules, and line
modules with other switches) is treated as one switch, because the position of a cable in the
chassis does not show which leaves are near each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from topology.model.fabric import Fabric
from topology.model.ids import Id, IdKind
from topology.planes.cables import Edge, EdgeRows
from topology.planes.plane import Plane
from topology.tiers.ranks import mark_leaves


@dataclass(frozen=True, slots=True)
class FoldedPlane:
    """A plane in which the chips of each director, except its leaves, are one switch."""

    plane: Plane
    members: Mapping[int, tuple[int, ...]]
    """The switch that represents a director to all chips it represents, ascending. Other switches
    are missing."""

    def unfold(self, switches: Iterable[int]) -> list[int]:
        """Return these switches, with each director replaced by all its chips."""
        return [chip for switch in switches for chip in self.members.get(switch, (switch,))]


def fold_directors(fabric: Fabric, plane: Plane) -> FoldedPlane:
    """Return a plane with one switch for the chips of each director. Cost: O(links)."""
    chips_by_chassis = _find_boxes(fabric, plane)
    if not chips_by_chassis:
        return FoldedPlane(plane, {})
    members: dict[int, tuple[int, ...]] = {}
    representative: dict[int, int] = {}
    for chips in _find_inner_chips(plane, chips_by_chassis):
        members[chips[0]] = tuple(chips)
        representative.update(dict.fromkeys(chips, chips[0]))
    folded = replace(
        plane,
        switches=tuple(
            switch for switch in plane.switches if representative.get(switch, switch) == switch
        ),
        host_edges=EdgeRows.of(_fold_edges(plane.host_edges, representative)),
        switch_edges=EdgeRows.of(_fold_edges(plane.switch_edges, representative)),
    )
    return FoldedPlane(folded, members)


def _find_boxes(fabric: Fabric, plane: Plane) -> dict[Id, list[int]]:
    """Return the switch chips of each chassis that has several; HCAs of a host share a GUID too."""
    chips_by_chassis: dict[Id, list[int]] = defaultdict(list)
    has_shared_image = fabric.columns.has_shared_image
    switches = [switch for switch in plane.switches if has_shared_image[switch]]
    for switch, device in zip(switches, [fabric.devices[index] for index in switches], strict=True):
        for identifier in device.ids:
            if identifier.kind is IdKind.SYSTEM_IMAGE_GUID:
                chips_by_chassis[identifier].append(switch)
    return {chassis: chips for chassis, chips in chips_by_chassis.items() if len(chips) > 1}


def _find_inner_chips(
    plane: Plane, chips_by_chassis: Mapping[Id, Sequence[int]]
) -> Iterator[list[int]]:
    """Yield the chips of each director that are not leaves, ascending.

    The chips of a director are cabled to each other. A chassis with one chip per lane has no such
    cables and is not a director.
    """
    chassis_of = {chip: chassis for chassis, chips in chips_by_chassis.items() for chip in chips}
    cabled = {
        end
        for edge in plane.switch_edges
        if edge.a in chassis_of and chassis_of[edge.a] == chassis_of.get(edge.b)
        for end in (edge.a, edge.b)
    }
    is_leaf = mark_leaves(plane)
    for _, chips in sorted(chips_by_chassis.items()):
        inner = [chip for chip in chips if not is_leaf[chip]]
        if len(inner) > 1 and 2 * len(cabled.intersection(inner)) > len(inner):
            yield inner


def _fold_edges(edges: Sequence[Edge], representative: Mapping[int, int]) -> Iterator[Edge]:
    for edge in edges:
        a, b = representative.get(edge.a, edge.a), representative.get(edge.b, edge.b)
        if a != b:
            yield edge._replace(a=a, b=b)
