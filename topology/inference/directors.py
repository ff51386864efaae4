"""Directors: many switch chips in one box, which the system-image GUID tells.

A line module with hosts on it is a leaf like any other. The rest of the box, its spine modules
and line modules with other switches on them, is one switch: where in the box a cable ends tells
nothing about which leaves are near each other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from topology.model.fabric import Fabric, columns_of
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import rows_at
from topology.planes.cables import Edge, EdgeRows
from topology.planes.plane import Plane
from topology.tiers.ranks import mark_leaves


@dataclass(frozen=True, slots=True)
class FoldedPlane:
    """A plane in which the rest of each director is one switch."""

    plane: Plane
    members: Mapping[int, tuple[int, ...]]
    """The switch that stands for a box to all that it stands for, ascending; other switches are
    missing."""

    def unfold(self, switches: Iterable[int]) -> list[int]:
        """Return all chips of some switches."""
        return [chip for at in switches for chip in self.members.get(at, (at,))]


def fold_directors(fabric: Fabric, plane: Plane) -> FoldedPlane:
    """Return a plane with one switch for the rest of each director. Cost: O(links)."""
    boxes = _find_boxes(fabric, plane)
    if not boxes:
        return FoldedPlane(plane, {})
    members: dict[int, tuple[int, ...]] = {}
    stands_for: dict[int, int] = {}
    for chips in _find_inner_chips(plane, boxes):
        members[chips[0]] = tuple(chips)
        stands_for.update(dict.fromkeys(chips, chips[0]))
    folded = replace(
        plane,
        switches=tuple(at for at in plane.switches if stands_for.get(at, at) == at),
        host_edges=EdgeRows.of(_fold_edges(plane.host_edges, stands_for)),
        switch_edges=EdgeRows.of(_fold_edges(plane.switch_edges, stands_for)),
    )
    return FoldedPlane(folded, members)


def _find_boxes(fabric: Fabric, plane: Plane) -> dict[Id, list[int]]:
    """Return the chips of each box that has several; never of hosts, whose cards share it too."""
    boxes: dict[Id, list[int]] = defaultdict(list)
    are_boxed = columns_of(fabric).has_shared_image
    switches = [at for at in plane.switches if are_boxed is None or are_boxed[at]]
    for at, device in zip(switches, rows_at(fabric.devices, switches), strict=True):
        for found in device.ids:
            if found.kind is IdKind.SYSTEM_IMAGE_GUID:
                boxes[found].append(at)
    return {box: chips for box, chips in boxes.items() if len(chips) > 1}


def _find_inner_chips(plane: Plane, boxes: Mapping[Id, Sequence[int]]) -> Iterator[list[int]]:
    """Yield the chips of each director that are no leaves, ascending.

    A director's chips are cabled to each other. Boxes of a chip per lane have no such cables.
    """
    box_of = {chip: box for box, chips in boxes.items() for chip in chips}
    cabled = {
        end
        for edge in plane.switch_edges
        if edge.a in box_of and box_of[edge.a] == box_of.get(edge.b)
        for end in (edge.a, edge.b)
    }
    is_leaf = mark_leaves(plane)
    for _, chips in sorted(boxes.items()):
        inner = [chip for chip in chips if not is_leaf[chip]]
        if len(inner) > 1 and 2 * len(cabled.intersection(inner)) > len(inner):
            yield inner


def _fold_edges(edges: Sequence[Edge], stands_for: Mapping[int, int]) -> Iterator[Edge]:
    for edge in edges:
        a, b = stands_for.get(edge.a, edge.a), stands_for.get(edge.b, edge.b)
        if a != b:
            yield edge._replace(a=a, b=b)
