"""What to do if an object changed between the read and the write of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from topology.model.errors import KubeConflict

Value = TypeVar("Value")

_MAX_ATTEMPTS: Final = 4


class ForeignObject(KubeConflict):
    """The object is not ours to write, or not any more: reading it again does not help."""


def find_version(document: Mapping[str, Any] | None) -> str:
    """Return the version of an object; empty if there is none."""
    return "" if document is None else str(document["metadata"]["resourceVersion"])


def retry_on_conflict(attempt: Callable[[], Value]) -> Value:
    """Repeat a read and a write a few times if the object changed in between.

    Other clients write into our objects too: Volcano counts the nodes of each HyperNode in its
    status.

    Raises:
        KubeConflict: the object changed each time, or is a `ForeignObject`.
    """
    for _ in range(_MAX_ATTEMPTS - 1):
        try:
            return attempt()
        except ForeignObject:
            raise
        except KubeConflict:
            continue
    return attempt()
