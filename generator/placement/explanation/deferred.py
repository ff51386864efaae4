"""What an answer tells beside the placement, worked out when it is first read.

Most callers want the nodes and nothing else. What is worked out depends on frozen values alone, so
that it does not matter when; two threads that read at once both work it out, and get the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

Item = TypeVar("Item")


class LazyMapping(Mapping[str, Item]):
    """A mapping that is made when it is first read."""

    def __init__(self, make: Callable[[], Mapping[str, Item]]) -> None:
        """Keep what makes it."""
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
        """Return what it holds."""
        return repr(dict(self._read()))


class LazySequence(Sequence[Item]):
    """A sequence that is made when it is first read."""

    def __init__(self, make: Callable[[], Sequence[Item]]) -> None:
        """Keep what makes it."""
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
        """Return a row, or some."""
        return self._read()[index]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        """Return whether another sequence has the same rows."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the rows."""
        return hash(tuple(self))

    def __repr__(self) -> str:
        """Return what it holds."""
        return repr(tuple(self))
