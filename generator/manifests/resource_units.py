"""Converts resource requests of pods to slots, if the nodes list only slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from generator.manifests.fields import Note
from generator.manifests.gang_pods.running_pods import RunningRow
from generator.placement.cluster.nodes import PODS

SLOTS: Final = "slots"
ONE_SLOT: Final = {SLOTS: 1}
_GPU_SUFFIXES: Final = ("/gpu", "/gpu.shared", ".gpu")


def fit_units(
    spec: Mapping[str, Any], room: Mapping[str, int], *, uses_whole_nodes: bool
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return a spec with resource requests in slots if the nodes list only slots.

    A pod takes a slot per GPU if nodes have several slots, else one; a whole node takes all slots.

    Args:
        spec: of a translated request.
        room: the largest quantity on any node, by resource.
        uses_whole_nodes: whether a slot means a whole node.
    """
    notes: list[Note] = []
    max_slots = max(room.get(SLOTS, 1), 1)
    if uses_whole_nodes:
        groups = [
            group | {"request": {SLOTS: max_slots}} if group["request"] == ONE_SLOT else group
            for group in spec["groups"]
        ]
        spec = dict(spec) | {"groups": groups}
    if not set(room) <= {SLOTS, PODS}:
        return dict(spec), ()
    groups = [
        _convert_to_slots(group, max_slots, f"groups[{index}]", notes)
        for index, group in enumerate(spec["groups"])
    ]
    return dict(spec) | {"groups": groups}, tuple(notes)


def fit_running(rows: Sequence[RunningRow], room: Mapping[str, int]) -> tuple[RunningRow, ...]:
    """Return running pods in slots if the nodes list only slots, as `fit_units` does."""
    if not set(room) <= {SLOTS, PODS}:
        return tuple(rows)
    max_slots = max(room.get(SLOTS, 1), 1)
    return tuple(
        row._replace(request={SLOTS: _count_slots(row.request, max_slots)})
        if row.group is not None or SLOTS in row.request
        else row._replace(request={})
        for row in rows
    )


def _convert_to_slots(
    group: dict[str, Any], max_slots: int, path: str, notes: list[Note]
) -> dict[str, Any]:
    if "children" in group:
        children = [
            _convert_to_slots(child, max_slots, f"{path}.children[{index}]", notes)
            for index, child in enumerate(group["children"])
        ]
        return group | {"children": children}
    request = group.get("request", ONE_SLOT)
    if set(request) == {SLOTS}:
        return group
    slots = _count_slots(request, max_slots)
    notes.append(Note(path, f"nodes list slots but no devices: each pod takes {slots}"))
    return group | {"request": {SLOTS: slots}}


def _count_slots(request: Mapping[str, int | str], max_slots: int) -> int:
    return max(_count_gpus(request), 1) if max_slots > 1 else 1


def _count_gpus(request: Mapping[str, int | str]) -> int:
    return sum(int(quantity) for name, quantity in request.items() if name.endswith(_GPU_SUFFIXES))
