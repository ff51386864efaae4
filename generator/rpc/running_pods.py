"""Pods of a gang that run already, as its caller tells: new ones go near them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from generator.placement.cluster.snapshot import (
    ONE_SLOT,
    RunningGang,
    RunningPods,
    Snapshot,
    with_running,
)
from generator.placement.request import PlacementRequest
from generator.placement.wire import MOST_PODS, MOST_QUANTITY
from generator.rpc.status_errors import FailureKind, RefusedError, refused
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from topology.model.errors import show

MOST_ROWS: Final = 4096


def anchored(
    snapshot: Snapshot, asked: PlacementRequest, message: pb.PlaceRequest | pb.CandidatesRequest
) -> Snapshot:
    """Return the snapshot with the gang's pods that run already; the same where it names none.

    Raises:
        RefusedError: a row makes no sense.
    """
    if not message.running:
        return snapshot
    if len(message.running) > MOST_ROWS:
        raise _wrong("running", f"expected at most {MOST_ROWS}, got {len(message.running)}")
    names = {group.name for group in asked.groups}
    pods = tuple(_pods_of(row, names, f"running[{at}]") for at, row in enumerate(message.running))
    gang = RunningGang(asked.gang, pods, asked.priority)
    if message.take_running:
        return with_running(snapshot, gang)
    running = {**snapshot.running, gang.gang: gang}
    return replace(snapshot, running=MappingProxyType(running))


def running_messages(gang: RunningGang | None) -> list[pb.RunningPods]:
    """Return the pods of a gang as messages."""
    return [
        pb.RunningPods(
            node=row.node,
            request=pb.Resources(quantities=dict(row.request)),
            count=row.count,
            group=row.group,
            indices=row.indices,
        )
        for row in (gang.pods if gang else ())
    ]


def _pods_of(row: pb.RunningPods, groups: Iterable[str], path: str) -> RunningPods:
    if not row.node:
        raise _wrong(f"{path}.node", "expected the name of a node")
    if not 0 <= row.count <= MOST_PODS:
        raise _wrong(f"{path}.count", f"expected 0 to {MOST_PODS}, got {row.count}")
    if row.HasField("group") and row.group not in groups:
        raise _wrong(f"{path}.group", f"no group is named {show(row.group)}")
    request = dict(row.request.quantities) if row.HasField("request") else dict(ONE_SLOT)
    for name, quantity in request.items():
        if not name or not 0 <= quantity <= MOST_QUANTITY:
            problem = f"expected names with 0 to {MOST_QUANTITY}, got {quantity}"
            raise _wrong(f"{path}.request.{show(name)}", problem)
    group = row.group if row.HasField("group") else None
    return RunningPods(row.node, request, _count_of(row, path), group, tuple(row.indices))


def _count_of(row: pb.RunningPods, path: str) -> int:
    """Return how many pods there are; they tell an index each, or none does."""
    if not row.indices:
        return row.count or 1
    if row.count not in {0, len(row.indices)}:
        raise _wrong(f"{path}.indices", f"expected {row.count}, got {len(row.indices)}")
    if any(index < 0 for index in row.indices) or len(row.indices) > MOST_PODS:
        raise _wrong(f"{path}.indices", f"expected at most {MOST_PODS} of 0 or more")
    return len(row.indices)


def _wrong(field: str, problem: str) -> RefusedError:
    return refused(FailureKind.INVALID_REQUEST, problem, field)
