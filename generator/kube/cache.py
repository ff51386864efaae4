"""What is known of the objects of one kind: values by name, and what changed with each event.

Only what the parser makes of an object is kept. An object that it refuses costs itself alone and
is told as a problem; so is one that was good once, whose last good value goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from topology.model.errors import ConfigError, KubeUnavailable, ParseError, ReportError, show

Value = TypeVar("Value")
Parse = Callable[[Mapping[str, Any]], Value]
"""Makes a value of a decoded object; refuses it by ConfigError, ParseError or ReportError."""


class ChangeKind(StrEnum):
    """What happened to an object."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"


class ObjectChange(NamedTuple, Generic[Value]):
    """One object came, changed or went."""

    kind: ChangeKind
    name: str
    """With its namespace before a slash, where it has one."""
    value: Value
    """The new one; of a deleted object the last."""


class _CacheEntry(NamedTuple, Generic[Value]):
    version: str
    value: Value | None
    problem: ParseError | None


class Cache(Generic[Value]):
    """Objects of one kind by name. One thread writes, any thread reads."""

    def __init__(self, parse: Parse[Value]) -> None:
        """Start empty, which is to say: unknown."""
        self._parse = parse
        self._lock = Lock()
        self._entries: dict[str, _CacheEntry[Value]] = {}
        self._values: tuple[Value, ...] | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that are known, in order of their names. Cost: O(n) after a change."""
        with self._lock:
            if self._values is None:
                found = (self._entries[name].value for name in sorted(self._entries))
                self._values = tuple(value for value in found if value is not None)
            return self._values

    @property
    def problems(self) -> tuple[ParseError, ...]:
        """One for each object that was refused, in order of their names."""
        with self._lock:
            found = (self._entries[name].problem for name in sorted(self._entries))
            return tuple(problem for problem in found if problem is not None)

    def version_of(self, name: str) -> str:
        """Return the version at which an object is known, empty where it is not."""
        with self._lock:
            found = self._entries.get(name)
            return "" if found is None else found.version

    def replace(self, objects: Iterable[Mapping[str, Any]]) -> list[ObjectChange[Value]]:
        """Take a complete list and return what it changes; what is not in it is deleted.

        Where the iterable raises, nothing is changed. Objects of a known version are not parsed.
        """
        fresh: dict[str, _CacheEntry[Value]] = {}
        for found in objects:
            name, version = _parse_identity(found)
            known = self._entries.get(name)
            same = known is not None and known.version == version
            fresh[name] = (
                known if known is not None and same else self._parse_entry(found, name, version)
            )
        changes = [
            change
            for name in sorted({*self._entries, *fresh})
            if (change := _compare_entries(name, self._entries.get(name), fresh.get(name)))
            is not None
        ]
        with self._lock:
            self._entries, self._values = fresh, None
        return changes

    def put(self, found: Mapping[str, Any]) -> list[ObjectChange[Value]]:
        """Take an object that was added or modified."""
        name, version = _parse_identity(found)
        return self._set_entry(name, self._parse_entry(found, name, version))

    def remove(self, found: Mapping[str, Any]) -> list[ObjectChange[Value]]:
        """Take an object that was deleted."""
        return self._set_entry(_parse_identity(found)[0], None)

    def _set_entry(self, name: str, new: _CacheEntry[Value] | None) -> list[ObjectChange[Value]]:
        with self._lock:
            old = self._entries.pop(name, None)
            if new is not None:
                self._entries[name] = new
            self._values = None
        change = _compare_entries(name, old, new)
        return [] if change is None else [change]

    def _parse_entry(self, found: Mapping[str, Any], name: str, version: str) -> _CacheEntry[Value]:
        try:
            return _CacheEntry(version, self._parse(found), None)
        except (ConfigError, ParseError, ReportError) as error:
            return _CacheEntry(version, None, ParseError(str(error), source=show(name, 400)))


def _parse_identity(found: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and version of an object.

    Raises:
        KubeUnavailable: it has none: this is no answer of the API server.
    """
    metadata = found.get("metadata")
    if not isinstance(metadata, Mapping):
        raise KubeUnavailable("an object without metadata")
    name, version = metadata.get("name"), metadata.get("resourceVersion")
    if not isinstance(name, str) or not isinstance(version, str):
        raise KubeUnavailable("an object without name or version")
    namespace = metadata.get("namespace")
    return (f"{namespace}/{name}" if namespace else name), version


def _compare_entries(
    name: str, old: _CacheEntry[Value] | None, new: _CacheEntry[Value] | None
) -> ObjectChange[Value] | None:
    """Return what the change of an entry is to those who only see values."""
    before = None if old is None else old.value
    after = None if new is None else new.value
    if before == after:
        return None
    if after is None:
        return None if before is None else ObjectChange(ChangeKind.DELETED, name, before)
    return ObjectChange(ChangeKind.ADDED if before is None else ChangeKind.MODIFIED, name, after)
