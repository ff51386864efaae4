"""How much memory the objects of one kind may take: the senders of the most are refused first.

The API server limits each object, not how many a client writes. Objects above the quota are
refused as objects that cannot be parsed are: by name, and with no effect on other senders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Generic, NamedTuple, TypeVar

Value = TypeVar("Value")


class Quota(NamedTuple, Generic[Value]):
    """The limit of one kind."""

    limit_bytes: int
    find_sender: Callable[[str], str]
    """Returns who wrote an object, by its name."""
    weigh: Callable[[Value], int]
    """Returns the memory that a value takes, in bytes."""


class QuotaLedger(Generic[Value]):
    """The memory that values take, by sender."""

    def __init__(self, quota: Quota[Value]) -> None:
        """Start without values."""
        self._quota = quota
        self._bytes: dict[str, int] = {}
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._by_sender: defaultdict[str, int] = defaultdict(int)
        self._total = 0
        self._lost: dict[str, int] = {}
        """By name: the size of each value that was dropped."""

    @property
    def lost(self) -> Collection[str]:
        """The names of the values that were dropped."""
        return self._lost.keys()

    @property
    def has_room(self) -> bool:
        """Whether all dropped values of a sender would fit now. Cost: O(dropped values)."""
        wanted: defaultdict[str, int] = defaultdict(int)
        for name, size in self._lost.items():
            wanted[self._quota.find_sender(name)] += size
        return bool(wanted) and self._total + min(wanted.values()) <= self._quota.limit_bytes

    def record(self, name: str, value: Value | None) -> tuple[str, ...]:
        """Record a value, or None for one that is gone; return the names that must be dropped.

        While the limit is exceeded, all values of the sender with the most are dropped. Cost: O(1)
        below the limit, O(senders) above.
        """
        sender = self._quota.find_sender(name)
        self._forget(sender, name)
        self._lost.pop(name, None)
        if value is not None:
            size = self._bytes[name] = self._quota.weigh(value)
            self._names[sender].add(name)
            self._by_sender[sender] += size
            self._total += size
        dropped: list[str] = []
        while self._total > self._quota.limit_bytes:
            largest = max(sorted(self._by_sender), key=self._by_sender.__getitem__)
            names = sorted(self._names[largest])
            for lost in names:
                self._lost[lost] = self._bytes[lost]
                self._forget(largest, lost)
            dropped += names
        return tuple(dropped)

    def explain(self, name: str) -> str:
        """Return why an object was dropped."""
        limit = self._quota.limit_bytes >> 20
        return (
            f"all objects take more than {limit} MiB, and {self._quota.find_sender(name)} "
            "has written the most"
        )

    def _forget(self, sender: str, name: str) -> None:
        size = self._bytes.pop(name, None)
        if size is None:
            return
        self._total -= size
        self._by_sender[sender] -= size
        self._names[sender].discard(name)
        if not self._names[sender]:
            del self._names[sender], self._by_sender[sender]
