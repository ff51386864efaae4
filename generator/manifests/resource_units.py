"""Converts resource requests of pods to what the nodes list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from generator.manifests.fields import Note
from generator.manifests.gang_pods import RunningRow
from generator.manifests.kinds.unlisted_resources import is_port, parse_share_name
from generator.placement.cluster.nodes import PODS

SLOTS: Final = "slots"
ONE_SLOT: Final = {SLOTS: 1}
_GPU_SUFFIXES: Final = ("/gpu", "/gpu.shared", ".gpu")
Group: TypeAlias = dict[str, Any]


def fit_units(
    spec: Mapping[str, Any], room: Mapping[str, int]
) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return a spec with resource requests in slots if the nodes list only slots.

    A pod takes a slot per GPU if nodes have several slots, else one.

    Args:
        spec: the spec of a translated request.
        room: the largest quantity on any node, by resource.
    """
    if not set(room) <= {SLOTS, PODS}:
        return dict(spec), ()
    notes: list[Note] = []
    max_slots = max(room.get(SLOTS, 1), 1)

    def convert(group: Group, path: str) -> Group:
        request = group.get("request", ONE_SLOT)
        if set(request) == {SLOTS}:
            return group
        slots = _count_slots(request, max_slots)
        notes.append(Note(path, f"the nodes list no devices, only slots: each pod takes {slots}"))
        return group | {"request": {SLOTS: slots}}

    return _convert_groups(spec, convert), tuple(notes)


def fit_running(rows: Sequence[RunningRow], room: Mapping[str, int]) -> tuple[RunningRow, ...]:
    """Return running pods in slots if the nodes list only slots, as `fit_units` does."""
    if not set(room) <= {SLOTS, PODS}:
        return tuple(rows)
    max_slots = max(room.get(SLOTS, 1), 1)
    fitted = []
    for row in rows:
        takes_slots = row.group is not None or SLOTS in row.request
        num_slots = {SLOTS: _count_slots(row.request, max_slots)} if takes_slots else {}
        fitted.append(row._replace(request=num_slots))
    return tuple(fitted)


def leave_out_ports(spec: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Return a spec without ports of the host, for nodes that do not count them."""
    notes: list[Note] = []

    def convert(group: Group, path: str) -> Group:
        ports = sorted(filter(is_port, group.get("request", ())))
        if not ports:
            return group
        request = {name: need for name, need in group["request"].items() if name not in ports}
        text = f"ports of the host are not counted: {', '.join(ports)}"
        notes.append(Note(path, text, is_warning=True))
        return group | {"request": request or dict(ONE_SLOT)}

    return _convert_groups(spec, convert), tuple(notes)


def _convert_groups(
    spec: Mapping[str, Any], convert: Callable[[Group, str], Group]
) -> dict[str, Any]:
    """Return a spec with each leaf group replaced by `convert(group, path)`."""

    def descend(group: Group, path: str) -> Group:
        if "children" not in group:
            return convert(group, path)
        children = [
            descend(child, f"{path}.children[{index}]")
            for index, child in enumerate(group["children"])
        ]
        return group | {"children": children}

    groups = [descend(group, f"groups[{index}]") for index, group in enumerate(spec["groups"])]
    return dict(spec) | {"groups": groups}


def _count_slots(request: Mapping[str, int | str], max_slots: int) -> int:
    return max(_count_gpus(request), 1) if max_slots > 1 else 1


def _count_gpus(request: Mapping[str, int | str]) -> int:
    """Return the whole GPUs of a pod, and the GPUs of which the pod takes a share."""
    shares = filter(None, map(parse_share_name, request))
    whole = sum(int(need) for name, need in request.items() if name.endswith(_GPU_SUFFIXES))
    return whole + sum(share.num_devices for share in shares)
