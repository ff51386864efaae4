"""Running pods of a gang that a caller reports, so that new pods are placed near them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from generator.placement.cluster.nodes import ONE_SLOT, RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, with_counted, with_running
from generator.placement.quantities import count_request, render_quantities
from generator.placement.request import PlacementRequest
from generator.placement.wire import MAX_PODS
from generator.rpc.messages.resources import decode_resources, encode_resources
from generator.rpc.status_errors import CallAbortedError, FailureKind, build_abort
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import show

MAX_RUNNING_ROWS: Final = 4096


def with_running_pods(
    snapshot: Snapshot, request: PlacementRequest, message: pb.PlaceRequest | pb.CandidatesRequest
) -> Snapshot:
    """Return the snapshot with the gang's reported running pods; the same snapshot if none.

    Raises:
        CallAbortedError: a row is malformed.
    """
    if not message.running:
        return snapshot
    if len(message.running) > MAX_RUNNING_ROWS:
        raise _build_abort(
            "running", f"expected at most {MAX_RUNNING_ROWS}, got {len(message.running)}"
        )
    names = {group.name for group in request.groups}
    pods = tuple(
        _decode_pods(row, names, f"running[{row_index}]")
        for row_index, row in enumerate(message.running)
    )
    gang = RunningGang(request.gang, pods, request.priority)
    return with_running(snapshot, gang) if message.take_running else with_counted(snapshot, gang)


def encode_running_pods(gang: RunningGang | None) -> list[pb.RunningPods]:
    """Return the pods of a gang as messages."""
    return [
        pb.RunningPods(
            node=row.node,
            request=encode_resources(render_quantities(row.request.items())),
            count=row.count,
            group=row.group,
            indices=row.indices,
        )
        for row in (gang.pods if gang else ())
    ]


def _decode_pods(row: pb.RunningPods, groups: Iterable[str], path: str) -> RunningPods:
    if not row.node:
        raise _build_abort(f"{path}.node", "expected the name of a node")
    if not 0 <= row.count <= MAX_PODS:
        raise _build_abort(f"{path}.count", f"expected 0 to {MAX_PODS}, got {row.count}")
    if row.HasField("group") and row.group not in groups:
        raise _build_abort(f"{path}.group", f"no group is named {show(row.group)}")
    request = _decode_request(row.request, path) if row.HasField("request") else dict(ONE_SLOT)
    group = row.group if row.HasField("group") else None
    return RunningPods(row.node, request, _decode_count(row, path), group, tuple(row.indices))


def _decode_request(resources: pb.Resources, path: str) -> dict[str, int]:
    units: dict[str, int] = {}
    for name, quantity in decode_resources(resources).items():
        try:
            units |= count_request({name: quantity})
        except ValueError as error:
            raise _build_abort(f"{path}.request.{show(name)}", str(error)) from error
        if not name:
            raise _build_abort(f"{path}.request.", "expected the name of a resource")
    return units


def _decode_count(row: pb.RunningPods, path: str) -> int:
    """Return the number of pods of a row; either each pod has an index or none has."""
    if not row.indices:
        return row.count or 1
    if row.count not in {0, len(row.indices)}:
        raise _build_abort(f"{path}.indices", f"expected {row.count}, got {len(row.indices)}")
    if any(index < 0 for index in row.indices) or len(row.indices) > MAX_PODS:
        raise _build_abort(f"{path}.indices", f"expected at most {MAX_PODS} of 0 or more")
    return len(row.indices)


def _build_abort(field: str, problem: str) -> CallAbortedError:
    return build_abort(FailureKind.INVALID_REQUEST, problem, field)
