"""What the benchmarks share."""

from __future__ import annotations

import math
import multiprocessing
import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
_SLOTS = 8


class WrongResultError(Exception):
    """What would be timed does not do its work."""


def alone(
    work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
) -> Result:
    """Run in a fresh process, so that peak memory is that of this work alone."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(work, *args, **kwargs).result()


def exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of log y over log x by least squares, None for fewer than two sizes."""
    if len({x for x, _ in points}) < 2:
        return None
    logs = [(math.log(x), math.log(y)) for x, y in points]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def whole_nodes(count: int, *, unit: str) -> dict[str, Any]:
    """Return the document that requests so many nodes for a gang, each with eight of a unit."""
    group: dict[str, Any] = {"name": "workers", "count": count, "request": {unit: _SLOTS}}
    return {
        "apiVersion": "toponaut.io/v1alpha1",
        "kind": "PlacementRequest",
        "spec": {"groups": [group]},
    }
