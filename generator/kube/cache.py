"""The known objects of one kind: what a list and a watch report, and what we wrote ourselves.

Only the parsed values are kept. An object that the parser refuses becomes a problem and affects no
other object. If an earlier version of it was good, that value is dropped.

A round that planned from objects before its own writes would write again, and in an order for an
outdated state. So the answer to a write is stored at once, and what the watch then reports of an
earlier version is ignored. Versions grow: Kubernetes 1.35 promises that they can be compared.

A quota limits the memory of a kind: the API server limits each object, not how many a client
writes. The senders are ordered by the size of all their objects, then by name. As many as fit are
kept, from the smallest on. This depends on the objects alone, not on their order, their times or
earlier rounds, so every replica decides the same, and no sender is refused because of one that
wrote more. Objects above the quota are refused as objects that cannot be parsed are: by name, and
with no effect on other senders.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

from topology.model.errors import ConfigError, KubeUnavailable, ParseError, ReportError, show

Value = TypeVar("Value")


class StoredObject(NamedTuple, Generic[Value]):
    """An object as it was read or written last."""

    name: str
    """`NAMESPACE/NAME`, or the name alone for a cluster-scoped object."""
    value: Value
    version: str = ""
    """Changes with each write; empty: a write does not depend on it."""
    uid: str = ""
    """Differs between objects that have had the same name; empty in a folder."""


class Listing(NamedTuple, Generic[Value]):
    """The known objects of a kind."""

    objects: tuple[StoredObject[Value], ...] = ()
    """Sorted by name."""
    refused: Mapping[str, ParseError] = MappingProxyType({})
    """Why objects cannot be used, by name; sorted."""
    problems: tuple[ParseError, ...] = ()
    """Problems of unusable objects that have no name."""
    num_objects: int = 0
    """The number of objects or files, good or bad."""
    is_missing: bool = False
    """Whether the kind does not exist here: there are no objects, and none can be written."""

    @property
    def values(self) -> tuple[Value, ...]:
        """The values of the objects. Cost: O(n)."""
        return tuple(row.value for row in self.objects)

    @property
    def all_problems(self) -> tuple[ParseError, ...]:
        """Why the kind, or some of its objects, cannot be used."""
        return (*self.refused.values(), *self.problems)

    def with_object(self, row: StoredObject[Value]) -> Listing[Value]:
        """Return the listing after a write. Cost: O(n)."""
        objects = {known.name: known for known in self.objects} | {row.name: row}
        refused = {name: problem for name, problem in self.refused.items() if name != row.name}
        return self._replace(
            objects=tuple(objects[name] for name in sorted(objects)),
            refused=refused,
            num_objects=len(objects) + len(refused),
        )

    def without_object(self, name: str) -> Listing[Value]:
        """Return the listing after a deletion. Cost: O(n)."""
        objects = tuple(row for row in self.objects if row.name != name)
        return self._replace(objects=objects, num_objects=len(objects) + len(self.refused))

    def find(self, name: str) -> StoredObject[Value] | None:
        """Return the object of a name. Cost: O(n)."""
        return next((row for row in self.objects if row.name == name), None)


_NO_SIZES: Final[Mapping[str, int]] = MappingProxyType({})


class Quota(NamedTuple, Generic[Value]):
    """The limit of one kind."""

    limit_bytes: int
    find_sender: Callable[[str], str]
    """Returns who wrote an object, by its name."""
    weigh: Callable[[Value], int]
    """Returns the memory that a value takes, in bytes."""


class QuotaLedger(Generic[Value]):
    """The sizes of all objects, kept or refused, and which senders are kept."""

    def __init__(self, quota: Quota[Value], sizes: Mapping[str, int] = _NO_SIZES) -> None:
        """Start with the sizes in bytes of known objects. Cost: O(objects log objects)."""
        self._quota = quota
        self._bytes = dict(sizes)
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._by_sender: defaultdict[str, int] = defaultdict(int)
        for name, size in sizes.items():
            sender = quota.find_sender(name)
            self._names[sender].add(name)
            self._by_sender[sender] += size
        self._order = sorted((size, sender) for sender, size in self._by_sender.items())
        """Each sender with its size, sorted."""
        self._num_kept = 0
        """How many senders are kept: the first ones of the order."""
        self._kept_bytes = 0
        self._move_limit()

    @property
    def sizes(self) -> Mapping[str, int]:
        """The size of each object in bytes, by name."""
        return self._bytes

    def keeps(self, name: str) -> bool:
        """Return whether the quota keeps the sender of an object. Cost: O(log senders)."""
        if self._num_kept == len(self._order):
            return True
        sender = self._quota.find_sender(name)
        return (self._by_sender.get(sender, 0), sender) < self._order[self._num_kept]

    def record(self, name: str, value: Value | None) -> tuple[str, ...]:
        """Record a value, or None if the object is gone; return the names that are refused now.

        These are the objects of the senders that are no longer kept, and of this sender if it is
        not kept. Cost: O(log senders), and a copy of the order in the worst case.
        """
        sender = self._quota.find_sender(name)
        self._remove_sender(sender)
        self._by_sender[sender] -= self._bytes.pop(name, 0)
        self._names[sender].discard(name)
        if value is not None:
            self._bytes[name] = self._quota.weigh(value)
            self._by_sender[sender] += self._bytes[name]
            self._names[sender].add(name)
        if not self._names[sender]:  # its last object is gone
            del self._names[sender], self._by_sender[sender]
            return self._find_names(self._move_limit())
        refused = self._insert_sender(sender)
        return self._find_names([*refused, *self._move_limit()])

    def explain(self, name: str) -> str:
        """Return why an object was refused."""
        limit = self._quota.limit_bytes >> 20
        return (
            f"all objects take more than {limit} MiB, and {self._quota.find_sender(name)} "
            "has written more than each node whose objects are kept"
        )

    def _remove_sender(self, sender: str) -> None:
        if sender not in self._by_sender:
            return
        key = (self._by_sender[sender], sender)
        place = bisect_left(self._order, key)
        del self._order[place]
        if place < self._num_kept:
            self._num_kept -= 1
            self._kept_bytes -= key[0]

    def _insert_sender(self, sender: str) -> list[str]:
        """Insert a sender into the order; return it if it is not kept."""
        key = (self._by_sender[sender], sender)
        if self._num_kept < len(self._order) and key > self._order[self._num_kept]:
            insort(self._order, key)
            return [sender]
        insort(self._order, key)
        self._num_kept += 1
        self._kept_bytes += key[0]
        return []

    def _move_limit(self) -> list[str]:
        """Keep as many senders as fit; return the senders that are dropped."""
        refused: list[str] = []
        while self._kept_bytes > self._quota.limit_bytes:
            self._num_kept -= 1
            size, sender = self._order[self._num_kept]
            self._kept_bytes -= size
            refused.append(sender)
        while self._num_kept < len(self._order):
            size = self._order[self._num_kept][0]
            if self._kept_bytes + size > self._quota.limit_bytes:
                break
            self._num_kept += 1
            self._kept_bytes += size
        return refused

    def _find_names(self, senders: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for sender in senders for name in sorted(self._names[sender]))


Parse = Callable[[Mapping[str, Any]], Value]
"""Makes a value of a decoded object; refuses it by ConfigError, ParseError or ReportError."""


class _CacheEntry(NamedTuple, Generic[Value]):
    version: str
    uid: str
    value: Value | None
    problem: ParseError | None
    is_own: bool = False
    """Whether it is the answer to a write of ours, which the watch has not reported yet."""


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

    def enforce(self, entries: dict[str, _CacheEntry[Value]], name: str) -> bool:
        """Drop the values above the quota after an entry changed; return whether more were lost."""
        entry = entries.get(name)
        self.refused.discard(name)
        has_dropped_others = False
        for dropped in self.ledger.record(name, None if entry is None else entry.value):
            known = entries.get(dropped)
            if known is None or known.value is None:
                continue
            has_dropped_others |= dropped != name
            problem = ParseError(self.ledger.explain(dropped), source=show(dropped, 400))
            entries[dropped] = known._replace(value=None, problem=problem)
            self.refused.add(dropped)
        return has_dropped_others


class Cache(Generic[Value]):
    """Objects of one kind by name; any thread may use it, and one thread lists and watches."""

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
        self._deleted: dict[str, int] = {}
        """By name of an object that we deleted: its last version, until the watch reports it."""
        self._latest = 0
        """The version up to which list and watch have reported every change."""
        self._listing: Listing[Value] | None = None

    @property
    def listing(self) -> Listing[Value]:
        """The known objects; the identical value if none changed. Cost: O(n) after a change."""
        with self._lock:
            if self._listing is None:
                self._listing = _build_listing(self._entries)
            return self._listing

    @property
    def values(self) -> tuple[Value, ...]:
        """The known values, sorted by name."""
        return self.listing.values

    @property
    def has_room(self) -> bool:
        """Whether values that were dropped would fit now: only a new list brings them back."""
        with self._lock:
            entry_quota = self._quota
            return entry_quota is not None and any(
                map(entry_quota.ledger.keeps, entry_quota.refused)
            )

    def replace(
        self, objects: Iterable[Mapping[str, Any]], find_version: Callable[[], str]
    ) -> bool:
        """Replace all objects by a complete list; return whether a value changed.

        Objects that are not in the list count as deleted, unless we wrote them after it. If the
        iterable raises, nothing changes. Objects of a known version are not parsed again, unless
        their dropped value would fit now. The sizes of the last list count until an object is read,
        so a second list of the same objects decides by all of them from the start.

        Args:
            objects: the list.
            find_version: returns the version of the list, once it was iterated.
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
            fresh[name] = known._replace(is_own=False)
            if entry_quota is not None:
                entry_quota.enforce(fresh, name)
        with self._lock:
            self._latest = _parse_version(find_version())
            self._keep_own_writes(fresh)
            if entry_quota is not None:
                for gone in entry_quota.ledger.sizes.keys() - fresh.keys():
                    entry_quota.enforce(fresh, gone)
            before, self._entries, self._quota = self._entries, fresh, entry_quota
            self._listing = None
        return any(
            _value_of(before.get(name)) != _value_of(fresh.get(name))
            for name in before.keys() | fresh.keys()
        )

    def _keep_own_writes(self, fresh: dict[str, _CacheEntry[Value]]) -> None:
        """Put the writes that were made after a list into it."""
        fresh |= {
            name: entry
            for name, entry in self._entries.items()
            if entry.is_own and _version_of(entry) > self._latest
        }
        for name, version in tuple(self._deleted.items()):
            if name in fresh and _version_of(fresh[name]) <= version:
                del fresh[name]
            elif name in fresh or self._latest > version:
                del self._deleted[name]

    def put(self, document: Mapping[str, Any]) -> bool:
        """Store an object that the watch reports, unless we wrote or deleted a later version.

        Returns whether a value changed.
        """
        name, version = _parse_identity(document)
        entry = self._parse_entry(document, name, version)
        with self._lock:
            self._latest = number = _parse_version(version)
            known = self._entries.get(name)
            is_outdated = known is not None and known.is_own and number < _version_of(known)
            if is_outdated or number <= self._deleted.get(name, -1):
                return False
            self._deleted.pop(name, None)
            return self._set_entry(name, entry)

    def remove(self, document: Mapping[str, Any]) -> bool:
        """Remove an object whose deletion the watch reports; return whether a value changed."""
        name, version = _parse_identity(document)
        with self._lock:
            self._latest = number = _parse_version(version)
            self._deleted.pop(name, None)
            known = self._entries.get(name)
            if known is not None and known.is_own and number < _version_of(known):
                return False  # we have created it again since
            return self._set_entry(name, None)

    def advance(self, version: str) -> None:
        """Record that the watch has reported all changes up to a version."""
        with self._lock:
            self._latest = _parse_version(version)

    def record(self, document: Mapping[str, Any]) -> bool:
        """Store the answer to our write, unless the watch has reported this version or a later one.

        Returns whether a value changed.
        """
        name, version = _parse_identity(document)
        entry = self._parse_entry(document, name, version)._replace(is_own=True)
        with self._lock:
            number = _parse_version(version)
            if number <= max(self._latest, _version_of(self._entries.get(name))):
                return False
            self._deleted.pop(name, None)
            return self._set_entry(name, entry)

    def forget(self, name: str, version: str = "") -> bool:
        """Remove an object that we deleted; return whether a value changed.

        Args:
            name: the name of the object in the listing.
            version: the last version of the object; empty: the known one.
        """
        with self._lock:
            known = _version_of(self._entries.get(name))
            last = _parse_version(version) or known
            if known > last:
                return False  # it was created again
            self._deleted[name] = last
            return self._set_entry(name, None)

    def merge(self, objects: Iterable[Mapping[str, Any]], find_version: Callable[[], str]) -> None:
        """Add what a list knows and the watch has not reported yet; arguments as in `replace`."""
        documents = {_parse_identity(document)[0]: document for document in objects}
        version = find_version()
        if _parse_version(version) <= self._latest:
            return
        for document in documents.values():
            self.record(document)
        for name in [name for name in self._entries if name not in documents]:
            self.forget(name, version)

    def _set_entry(self, name: str, new: _CacheEntry[Value] | None) -> bool:
        """Replace an entry while the lock is held; return whether a value changed."""
        old = self._entries.pop(name, None)
        if new is not None:
            self._entries[name] = new
        has_dropped_others = self._quota is not None and self._quota.enforce(self._entries, name)
        is_changed = has_dropped_others or _value_of(old) != _value_of(self._entries.get(name))
        self._listing = None
        return is_changed

    def _parse_entry(
        self, document: Mapping[str, Any], name: str, version: str
    ) -> _CacheEntry[Value]:
        uid = str(document["metadata"].get("uid", ""))
        try:
            return _CacheEntry(version, uid, self._parse(document), None)
        except (ConfigError, ParseError, ReportError) as error:
            return _CacheEntry(version, uid, None, ParseError(str(error), source=show(name, 400)))


def _build_listing(entries: Mapping[str, _CacheEntry[Value]]) -> Listing[Value]:
    objects: list[StoredObject[Value]] = []
    refused: dict[str, ParseError] = {}
    for name in sorted(entries):
        version, uid, value, problem, _ = entries[name]
        if value is not None:
            objects.append(StoredObject(name, value, version, uid))
        if problem is not None:
            refused[name] = problem
    return Listing(tuple(objects), refused, num_objects=len(entries))


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


def _parse_version(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _version_of(entry: _CacheEntry[Value] | None) -> int:
    return 0 if entry is None else _parse_version(entry.version)


def _value_of(entry: _CacheEntry[Value] | None) -> Value | None:
    return None if entry is None else entry.value
