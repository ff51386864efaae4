"""Run the engine on vectors, in process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from generator.placement.engine import place
from generator.placement.request import parse_request
from tests.vectors.scenes import document_of, snapshot_of
from topology.model.errors import PlacementRequestError


def answer_all(vectors: Iterable[Mapping[str, Any]], preset: str | None = None) -> dict[str, Any]:
    """Return answers by vector id."""
    return {vector["id"]: answer(vector, preset) for vector in vectors}


def answer(vector: Mapping[str, Any], preset: str | None = None) -> dict[str, Any]:
    """Return the answer to one vector, also for a malformed request."""
    snapshot = snapshot_of(vector)
    try:
        request = parse_request(document_of(vector, preset))
    except PlacementRequestError as error:
        return {"feasible": False, "reason": {"kind": "invalid", "field": error.field}}
    clock = None if request.deadline_s is None else time.monotonic
    return place(snapshot, request, clock=clock).render()
