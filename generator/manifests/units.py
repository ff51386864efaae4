"""Pods' resources in the units that the nodes list, where that list is poorer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from generator.manifests.fields import Note
from generator.manifests.sbatch import WHOLE_NODE

SLOTS: Final = "slots"
_GPUS: Final = ("/gpu", "/gpu.shared", ".gpu")


def fit_units(spec: Mapping[str, Any], room: Mapping[str, int]) -> list[Note]:
    """Write the pods' resources in slots where the nodes list nothing else; in place.

    A pod takes a slot per GPU where nodes have several slots, else one; a whole node all slots.

    Args:
        spec: of a request as just made.
        room: per resource the most that a node lists.
    """
    notes = []
    most = max(room.get(SLOTS, 1), 1)
    for path, group in _leaves(spec["groups"], "groups"):
        request = group.get("request", {SLOTS: 1})
        if WHOLE_NODE in request:
            group["request"] = {SLOTS: most}
        elif not request:
            group["request"] = {SLOTS: 1}
            notes.append(Note(path, "asks for nothing, and takes one slot"))
        elif set(room) <= {SLOTS} and set(request) != {SLOTS}:
            taken = _gpus(request) if most > 1 else 1
            group["request"] = {SLOTS: max(taken, 1)}
            notes.append(Note(path, f"nodes list slots alone: a pod takes {max(taken, 1)}"))
    return notes


def _gpus(request: Mapping[str, int]) -> int:
    return sum(need for name, need in request.items() if name.endswith(_GPUS))


def _leaves(groups: list[dict[str, Any]], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, group in enumerate(groups):
        if "children" in group:
            yield from _leaves(group["children"], f"{path}[{at}].children")
        else:
            yield f"{path}[{at}]", group
