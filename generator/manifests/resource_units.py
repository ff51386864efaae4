"""Pods' resources in the units that the nodes list, where that list is poorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from generator.manifests.fields import Note

SLOTS: Final = "slots"
ONE_SLOT: Final = {SLOTS: 1}
_GPU_SUFFIXES: Final = ("/gpu", "/gpu.shared", ".gpu")


def fit_units(
    spec: Mapping[str, Any], room: Mapping[str, int], *, uses_whole_nodes: bool
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return a spec with the pods' resources in slots where the nodes list nothing else.

    A pod takes a slot per GPU where nodes have several slots, else one; a whole node all slots.

    Args:
        spec: of a request as it was just made.
        room: per resource the most that a node lists.
        takes_nodes: whether a slot stands for a whole node.
    """
    notes: list[Note] = []
    most = max(room.get(SLOTS, 1), 1)
    if uses_whole_nodes:
        groups = [
            group | {"request": {SLOTS: most}} if group["request"] == ONE_SLOT else group
            for group in spec["groups"]
        ]
        spec = dict(spec) | {"groups": groups}
    if not set(room) <= {SLOTS}:
        return dict(spec), ()
    groups = [
        _convert_to_slots(group, most, f"groups[{at}]", notes)
        for at, group in enumerate(spec["groups"])
    ]
    return dict(spec) | {"groups": groups}, tuple(notes)


def _convert_to_slots(
    group: dict[str, Any], most: int, path: str, notes: list[Note]
) -> dict[str, Any]:
    if "children" in group:
        children = [
            _convert_to_slots(child, most, f"{path}.children[{at}]", notes)
            for at, child in enumerate(group["children"])
        ]
        return group | {"children": children}
    request = group.get("request", ONE_SLOT)
    if set(request) == {SLOTS}:
        return group
    taken = max(_count_gpus(request), 1) if most > 1 else 1
    notes.append(Note(path, f"nodes list slots alone: a pod takes {taken}"))
    return group | {"request": {SLOTS: taken}}


def _count_gpus(request: Mapping[str, int]) -> int:
    return sum(need for name, need in request.items() if name.endswith(_GPU_SUFFIXES))
