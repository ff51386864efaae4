"""Values that are computed once per key, within a bound of bytes.

Reports come from nodes that may lie, so neither the number of different parts nor their size says
how much memory a cache of them takes. A cache is therefore bounded by the sum of what its entries
weigh. What many reports share is computed again soon after the cache was emptied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

_MIN_ENTRIES: Final = 16


class BoundedCache(dict[KeyT, ValueT], Generic[KeyT, ValueT]):
    """Computes the value of a missing key; is emptied when it is full.

    Read values as `cache[key]`. Any thread may read; two threads may compute one value twice.
    """

    def __init__(
        self,
        build: Callable[[KeyT], ValueT],
        *,
        weigh: Callable[[KeyT, ValueT], int],
        max_bytes: int,
    ) -> None:
        """Start empty.

        Args:
            build: returns the value of a key.
            weigh: returns the bytes that a key and its value take.
            max_bytes: of all entries. An entry that takes more than a sixteenth is not stored, so
                that single large ones do not displace those that many reports share.
        """
        super().__init__()
        self._build, self._weigh, self._max_bytes = build, weigh, max_bytes
        self._num_bytes = 0

    def __missing__(self, key: KeyT) -> ValueT:
        """Return the value of a key that is not stored."""
        value = self._build(key)
        num_bytes = self._weigh(key, value)
        if num_bytes * _MIN_ENTRIES > self._max_bytes:
            return value
        if self._num_bytes + num_bytes > self._max_bytes:
            self.clear()
            self._num_bytes = 0
        self._num_bytes += num_bytes
        self[key] = value
        return value
