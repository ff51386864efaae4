"""Rows made on demand out of columns, for whoever looks at single ones or at all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar, overload

_Row = TypeVar("_Row")
_MAX_SINGLE_REQUESTS: Final = 8
"""One row in so many asked for singly: then all are made, because the rest will be, too."""


class LazyTuple(Sequence[_Row]):
    """A sequence that makes its rows when asked; compares and hashes as the tuple of them."""

    __slots__ = ()

    @abstractmethod
    def _all(self) -> tuple[_Row, ...]:
        """Return all rows; always the same."""

    def __iter__(self) -> Iterator[_Row]:
        """Yield all rows."""
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence, as tuples compare."""
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the rows as a tuple."""
        return hash(self._all())


class LazyRows(LazyTuple[_Row]):
    """Rows of which some may be made alone, and all are kept once they are made."""

    def __init__(self, size: int, make: Callable[[Sequence[int]], Iterator[_Row]]) -> None:
        """Keep how rows are made.

        Args:
            size: how many there are.
            make: yields the rows at some places, in their order; must always yield the same.
        """
        self._size = size
        self._make = make
        self._rows: tuple[_Row, ...] | None = None
        self._num_requests = 0

    def _all(self) -> tuple[_Row, ...]:
        if self._rows is None:
            self._rows = tuple(self._make(range(self._size)))
        return self._rows

    def __len__(self) -> int:
        """Return the number of rows, without making any."""
        return self._size

    @overload
    def __getitem__(self, at: int) -> _Row: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[_Row, ...]: ...
    def __getitem__(self, at: int | slice) -> _Row | tuple[_Row, ...]:
        """Return one row or some."""
        if self._rows is not None:
            return self._rows[at]
        places = range(self._size)[at]
        if isinstance(places, range):
            return tuple(self._make(places))
        self._num_requests += 1
        return (
            self._all()[at]
            if self._num_requests * _MAX_SINGLE_REQUESTS > self._size
            else next(self._make((places,)))
        )

    def at(self, places: Sequence[int]) -> Sequence[_Row]:
        """Return the rows at some places; makes those alone."""
        if self._rows is not None:
            return [self._rows[at] for at in places]
        return list(self._make(places))


def rows_at(rows: Sequence[_Row], places: Sequence[int]) -> Sequence[_Row]:
    """Return the rows at some places; of lazy ones those alone are made."""
    return rows.at(places) if isinstance(rows, LazyRows) else [rows[at] for at in places]
