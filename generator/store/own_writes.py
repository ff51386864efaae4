"""Our writes that the watch has not reported yet, to be laid over the objects of the watch.

A round that planned from objects before its own writes would write again, and in an order for an
outdated state. Versions of objects grow (Kubernetes 1.35 promises that they can be compared), so a
later version from the watch replaces our write, and an earlier version does not.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class _OwnWrite(NamedTuple, Generic[Value]):
    version: int
    """The version after the write; for a deleted object the version that was deleted."""
    value: Value | None
    """None for a deleted object."""


class OwnWrites(Generic[Value]):
    """Our latest writes to the objects of one kind; any thread may use it."""

    def __init__(self, version_of: Callable[[str], str], latest: Callable[[], str]) -> None:
        """Start without writes.

        Args:
            version_of: returns the version of an object in the watch; empty if it is unknown there.
            latest: returns the version up to which the watch has reported all changes.
        """
        self._version_of = version_of
        self._latest = latest
        self._lock = Lock()
        self._written: dict[str, _OwnWrite[Value]] = {}

    def record(self, name: str, version: str, value: Value | None) -> None:
        """Record a write.

        Args:
            name: the name of the object.
            version: the version in the server's answer; for a deleted object its last version.
            value: the value; None for a deleted object.
        """
        with self._lock:
            self._written[name] = _OwnWrite(_parse_version(version), value)

    def pending(self) -> dict[str, Value | None]:
        """Return the writes that the watch has not reported yet, by name; None for a deletion."""
        with self._lock:
            self._written = {
                name: write
                for name, write in self._written.items()
                if not self._is_confirmed(name, write)
            }
            return {name: write.value for name, write in self._written.items()}

    def _is_confirmed(self, name: str, written: _OwnWrite[Value]) -> bool:
        known = _parse_version(self._version_of(name))
        if written.value is not None:
            return known >= written.version or self._is_superseded(written.version, known)
        return known > written.version or self._is_superseded(written.version, known)

    def _is_superseded(self, version: int, known: int) -> bool:
        """Return whether the watch has reported that a now unknown object was deleted."""
        return not known and _parse_version(self._latest()) > version


def _parse_version(version: str) -> int:
    return int(version) if version.isdecimal() else 0
