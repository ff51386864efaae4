"""What we wrote and the watch has not told yet, laid over what it has told.

A round that planned from objects as they were before its own writes would write again, and in the
order of a state that is gone. Versions of objects grow (Kubernetes 1.35 promises that they can be
compared), so what the watch tells later counts, and what it told before does not.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class _OwnWrite(NamedTuple, Generic[Value]):
    version: int
    """After the write; of a deleted object that at which it was deleted."""
    value: Value | None
    """None where it was deleted."""


class OwnWrites(Generic[Value]):
    """Our latest writes to the objects of one kind; any thread may ask."""

    def __init__(self, version_of: Callable[[str], str], latest: Callable[[], str]) -> None:
        """Nothing was written yet.

        Args:
            version_of: tells at which version the watch knows an object, empty where it does not.
            latest: tells the version up to which the watch has told everything.
        """
        self._version_of = version_of
        self._latest = latest
        self._lock = Lock()
        self._written: dict[str, _OwnWrite[Value]] = {}

    def record(self, name: str, version: str, value: Value | None) -> None:
        """Take note of a write.

        Args:
            name: of the object.
            version: that the server answered with; of a deleted object the last one.
            value: None where it was deleted.
        """
        with self._lock:
            self._written[name] = _OwnWrite(_parse_version(version), value)

    def pending(self) -> dict[str, Value | None]:
        """Return by name what the watch has not told yet; None for what we have deleted."""
        with self._lock:
            self._written = {
                name: one
                for name, one in self._written.items()
                if not self._is_confirmed(name, one)
            }
            return {name: one.value for name, one in self._written.items()}

    def _is_confirmed(self, name: str, written: _OwnWrite[Value]) -> bool:
        known = _parse_version(self._version_of(name))
        if written.value is not None:
            return known >= written.version or self._is_superseded(written.version, known)
        return known > written.version or self._is_superseded(written.version, known)

    def _is_superseded(self, version: int, known: int) -> bool:
        """Return whether an object that is not known any more was seen to go."""
        return not known and _parse_version(self._latest()) > version


def _parse_version(version: str) -> int:
    return int(version) if version.isdecimal() else 0
