"""The known objects of one kind: values by name, and the changes of each event.

Only the parsed values are kept. An object that the parser refuses becomes a problem and affects no
other object. If an earlier version of it was good, that value is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from generator.kube.quota import Quota, QuotaLedger
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
    """An object was added, modified or deleted."""

    kind: ChangeKind
    name: str
    """`NAMESPACE/NAME`, or the name alone for a cluster-scoped object."""
    value: Value
    """The new value; for a deleted object the last one."""


class _CacheEntry(NamedTuple, Generic[Value]):
    version: str
    value: Value | None
    problem: ParseError | None


class _EntryQuota(Generic[Value]):
    """What the quota keeps and refuses of a kind's entries."""

    def __init__(self, quota: Quota[Value], known: _EntryQuota[Value] | None = None) -> None:
        """Start with what is known from the last list."""
        self.quota = quota
        self.ledger: QuotaLedger[Value] = QuotaLedger(quota, known.ledger.sizes if known else {})
        self.refused: set[str] = set(known.refused if known else ())
        """The names of the values that were dropped."""

    def is_owed(self, name: str) -> bool:
        """Return whether the value of an object was dropped, and would fit now."""
        return name in self.refused and self.ledger.keeps(name)

    def enforce(
        self, entries: dict[str, _CacheEntry[Value]], name: str
    ) -> dict[str, _CacheEntry[Value] | None]:
        """Drop the values above the quota after an entry changed; return them as they were."""
        entry = entries.get(name)
        self.refused.discard(name)
        lost: dict[str, _CacheEntry[Value] | None] = {}
        for dropped in self.ledger.record(name, None if entry is None else entry.value):
            known = entries.get(dropped)
            if known is None or known.value is None:
                continue
            if dropped != name:
                lost[dropped] = known
            problem = ParseError(self.ledger.explain(dropped), source=show(dropped, 400))
            entries[dropped] = known._replace(value=None, problem=problem)
            self.refused.add(dropped)
        return lost


class Cache(Generic[Value]):
    """Objects of one kind by name. One thread writes, any thread reads."""

    def __init__(self, parse: Parse[Value], quota: Quota[Value] | None = None) -> None:
        """Start empty, which means that the objects are not known yet.

        Args:
            parse: makes a value of a decoded object.
            quota: how much memory the values may take; None if nothing bounds it.
        """
        self._parse = parse
        self._quota = None if quota is None else _EntryQuota(quota)
        self._lock = Lock()
        self._entries: dict[str, _CacheEntry[Value]] = {}
        self._values: tuple[Value, ...] | None = None

    @property
    def values(self) -> tuple[Value, ...]:
        """The known values, sorted by name. Cost: O(n) after a change."""
        with self._lock:
            if self._values is None:
                values = (self._entries[name].value for name in sorted(self._entries))
                self._values = tuple(value for value in values if value is not None)
            return self._values

    @property
    def problems(self) -> tuple[ParseError, ...]:
        """One problem for each refused object, sorted by name."""
        with self._lock:
            problems = (self._entries[name].problem for name in sorted(self._entries))
            return tuple(problem for problem in problems if problem is not None)

    def version_of(self, name: str) -> str:
        """Return the known version of an object; empty if the object is not known."""
        with self._lock:
            entry = self._entries.get(name)
            return "" if entry is None else entry.version

    @property
    def has_room(self) -> bool:
        """Whether values that were dropped would fit now: only a new list brings them back."""
        with self._lock:
            entry_quota = self._quota
            return entry_quota is not None and any(
                map(entry_quota.ledger.keeps, entry_quota.refused)
            )

    def replace(self, objects: Iterable[Mapping[str, Any]]) -> list[ObjectChange[Value]]:
        """Replace all objects by a complete list, and return the changes.

        Objects that are not in the list count as deleted. If the iterable raises, nothing changes.
        Objects of a known version are not parsed again, unless their dropped value would fit now.
        The sizes of the last list count until an object is read, so a second list of the same
        objects decides by all of them from the start.
        """
        entry_quota = None if self._quota is None else _EntryQuota(self._quota.quota, self._quota)
        fresh: dict[str, _CacheEntry[Value]] = {}
        for document in objects:
            name, version = _parse_identity(document)
            known = self._entries.get(name)
            is_same = known is not None and known.version == version
            if (
                known is None
                or not is_same
                or (entry_quota is not None and entry_quota.is_owed(name))
            ):
                known = self._parse_entry(document, name, version)
            elif entry_quota is not None and name in entry_quota.refused:
                fresh[name] = known
                continue
            fresh[name] = known
            if entry_quota is not None:
                entry_quota.enforce(fresh, name)
        if entry_quota is not None:
            for gone in entry_quota.ledger.sizes.keys() - fresh.keys():
                entry_quota.enforce(fresh, gone)
        changes = [
            change
            for name in sorted({*self._entries, *fresh})
            if (change := _compare_entries(name, self._entries.get(name), fresh.get(name)))
            is not None
        ]
        with self._lock:
            self._entries, self._values, self._quota = fresh, None, entry_quota
        return changes

    def put(self, document: Mapping[str, Any]) -> list[ObjectChange[Value]]:
        """Store an added or modified object, and return the change."""
        name, version = _parse_identity(document)
        return self._set_entry(name, self._parse_entry(document, name, version))

    def remove(self, document: Mapping[str, Any]) -> list[ObjectChange[Value]]:
        """Remove a deleted object, and return the change."""
        return self._set_entry(_parse_identity(document)[0], None)

    def _set_entry(self, name: str, new: _CacheEntry[Value] | None) -> list[ObjectChange[Value]]:
        with self._lock:
            old = self._entries.pop(name, None)
            if new is not None:
                self._entries[name] = new
            before = {name: old}
            if self._quota is not None:
                before |= self._quota.enforce(self._entries, name)
            self._values = None
            after = {changed: self._entries.get(changed) for changed in before}
        changes = (_compare_entries(one, before[one], after[one]) for one in sorted(before))
        return [change for change in changes if change is not None]

    def _parse_entry(
        self, document: Mapping[str, Any], name: str, version: str
    ) -> _CacheEntry[Value]:
        try:
            return _CacheEntry(version, self._parse(document), None)
        except (ConfigError, ParseError, ReportError) as error:
            return _CacheEntry(version, None, ParseError(str(error), source=show(name, 400)))


def _parse_identity(document: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and version of an object.

    Raises:
        KubeUnavailable: it has none, so it does not come from the API server.
    """
    metadata = document.get("metadata")
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
    """Return the change of the value between two entries, or None if the value is the same."""
    before = None if old is None else old.value
    after = None if new is None else new.value
    if before == after:
        return None
    if after is None:
        return None if before is None else ObjectChange(ChangeKind.DELETED, name, before)
    return ObjectChange(ChangeKind.ADDED if before is None else ChangeKind.MODIFIED, name, after)
