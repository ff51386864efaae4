"""Sequences that build their rows from columns on demand: single rows, or all of them at once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar, overload

_Row = TypeVar("_Row")
_MAX_SINGLE_REQUESTS: Final = 8
"""After single requests for more than one row in eight, all rows are built at once: the caller is
likely to need the others, too."""


class LazyTuple(Sequence[_Row]):
    """A sequence that builds its rows on demand; compares and hashes like a tuple of its rows."""

    __slots__ = ()

    @abstractmethod
    def _all(self) -> tuple[_Row, ...]:
        """Return all rows; every call returns equal rows."""

    def __iter__(self) -> Iterator[_Row]:
        """Yield all rows."""
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence like a tuple."""
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the rows as a tuple."""
        return hash(self._all())

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._all())

    @overload
    def __getitem__(self, index: int) -> _Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Row, ...]: ...
    def __getitem__(self, index: int | slice) -> _Row | tuple[_Row, ...]:
        """Return one row, or the rows of a slice."""
        return self._all()[index]

    def __repr__(self) -> str:
        """Return the representation of a tuple of the rows."""
        return repr(self._all())


class LazyRows(LazyTuple[_Row]):
    """Rows that can be built singly; once all rows are built, they are stored."""

    def __init__(self, size: int, make: Callable[[Sequence[int]], Iterator[_Row]]) -> None:
        """Store the function that builds rows.

        Args:
            size: the number of rows.
            make: yields the rows at the given indices, in that order; must be deterministic.
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
        """Return the number of rows without building any."""
        return self._size

    @overload
    def __getitem__(self, index: int) -> _Row: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Row, ...]: ...
    def __getitem__(self, index: int | slice) -> _Row | tuple[_Row, ...]:
        """Return one row, or the rows of a slice."""
        if self._rows is not None:
            return self._rows[index]
        positions = range(self._size)[index]
        if isinstance(positions, range):
            return tuple(self._make(positions))
        self._num_requests += 1
        return (
            self._all()[index]
            if self._num_requests * _MAX_SINGLE_REQUESTS > self._size
            else next(self._make((positions,)))
        )

    def at(self, indices: Sequence[int]) -> Sequence[_Row]:
        """Return the rows at the given indices; builds only those."""
        if self._rows is not None:
            return [self._rows[index] for index in indices]
        return list(self._make(indices))
