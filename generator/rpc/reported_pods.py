"""Running pods of a gang that a caller reports, so that new pods are placed near them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Final

from google.protobuf.json_format import MessageToDict
from pydantic import ValidationError

from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.cluster.snapshot import Snapshot, with_counted, with_running
from generator.placement.request import PlacementRequest, build_request_error
from generator.placement.wire import RunningRows, render_pod_request
from generator.rpc.status_errors import FailureKind, build_abort
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import PlacementRequestError, show

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
    try:
        names = {group.name for group in request.groups}
        pods = tuple(_decode_rows(message.running, names))
    except PlacementRequestError as error:
        raise build_abort(FailureKind.INVALID_REQUEST, error.problem, error.field) from error
    gang = RunningGang(request.gang, pods, request.priority)
    return with_running(snapshot, gang) if message.take_running else with_counted(snapshot, gang)


def encode_running_pods(gang: RunningGang | None) -> list[pb.RunningPods]:
    """Return the pods of a gang as messages."""
    return [
        pb.RunningPods(
            node=row.node,
            request=render_pod_request(row.request),
            count=row.count,
            group=row.group,
            indices=row.indices,
        )
        for row in (gang.pods if gang else ())
    ]


def _decode_rows(messages: Sequence[pb.RunningPods], groups: Container[str]) -> list[RunningPods]:
    if len(messages) > MAX_RUNNING_ROWS:
        problem = f"expected at most {MAX_RUNNING_ROWS}, got {len(messages)}"
        raise PlacementRequestError("running", problem)
    document = [MessageToDict(message, preserving_proto_field_name=True) for message in messages]
    try:
        rows = RunningRows.model_validate({"running": document}).running
    except ValidationError as error:
        raise build_request_error(error) from error
    for index, row in enumerate(rows):
        if row.group is not None and row.group not in groups:
            problem = f"no group is named {show(row.group)}"
            raise PlacementRequestError(f"running[{index}].group", problem)
    return [
        RunningPods(
            row.node,
            row.request,
            row.count or len(row.indices) or 1,
            row.group,
            tuple(row.indices),
        )
        for row in rows
    ]
