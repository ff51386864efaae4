"""How much memory the objects of one kind may take: the senders of the most are refused first.

The API server limits each object, not how many a client writes. The senders are ordered by the size
of all their objects, then by name. As many as fit are kept, from the smallest on. This depends on
the objects alone, not on their order, their times or earlier rounds, so every replica decides the
same, and no sender is refused because of one that wrote more. Objects above the quota are refused
as objects that cannot be parsed are: by name, and with no effect on other senders.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Generic, NamedTuple, TypeVar

Value = TypeVar("Value")

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
        """Return whether the objects of this object's sender are kept. Cost: O(log senders)."""
        if self._num_kept == len(self._order):
            return True
        sender = self._quota.find_sender(name)
        return (self._by_sender.get(sender, 0), sender) < self._order[self._num_kept]

    def record(self, name: str, value: Value | None) -> tuple[str, ...]:
        """Record a value, or None for one that is gone; return the names that are refused now.

        These are all objects of the senders that were kept before, or wrote this value, and are not
        kept now. Cost: O(log senders), and a copy of the order in the worst case.
        """
        sender = self._quota.find_sender(name)
        self._remove_sender(sender)
        self._by_sender[sender] -= self._bytes.pop(name, 0)
        self._names[sender].discard(name)
        if value is not None:
            size = self._bytes[name] = self._quota.weigh(value)
            self._names[sender].add(name)
            self._by_sender[sender] += size
        if not self._names[sender]:
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
        """Keep as many senders as fit; return those that are kept no longer."""
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
