"""Mappings and sequences that are computed when they are first read.

Most callers need only the nodes, so explanations are computed on demand. The result depends on
frozen values alone, so the time does not matter. Two threads that read at once may both compute it,
with equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")


class LazyMapping(Mapping[str, Item]):
    """A mapping that is computed when it is first read."""

    def __init__(self, make: Callable[[], Mapping[str, Item]]) -> None:
        """Store the function that computes the mapping."""
        self._make: Callable[[], Mapping[str, Item]] | None = make
        self._made: Mapping[str, Item] = {}

    def _read(self) -> Mapping[str, Item]:
        make = self._make
        if make is not None:
            self._made = make()
            self._make = None
        return self._made

    def __getitem__(self, key: str) -> Item:
        """Return the value of a key."""
        return self._read()[key]

    def __iter__(self) -> Iterator[str]:
        """Yield the keys in order."""
        return iter(self._read())

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._read())

    def __repr__(self) -> str:
        """Return the text of the computed mapping."""
        return repr(dict(self._read()))


class LazySequence(Sequence[Item]):
    """A sequence that is computed when it is first read."""

    def __init__(self, make: Callable[[], Sequence[Item]]) -> None:
        """Store the function that computes the sequence."""
        self._make: Callable[[], Sequence[Item]] | None = make
        self._made: Sequence[Item] = ()

    def _read(self) -> Sequence[Item]:
        make = self._make
        if make is not None:
            self._made = make()
            self._make = None
        return self._made

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        """Return an item, or a slice."""
        return self._read()[index]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has equal items."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the items."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return the text of the computed sequence."""
        return repr(tuple(self))
