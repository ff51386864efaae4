"""Rows made on demand out of columns, for whoever looks at single ones or at all of them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Final, Generic, TypeVar, overload

_Row = TypeVar("_Row")
_MANY: Final = 8
"""One row in so many asked for singly: then all are made, because the rest will be, too."""
_PIECE: Final = 512
"""Rows in a piece: about as many pieces in a large fabric."""


class LazyRows(Sequence[_Row], Generic[_Row]):
    """A sequence that compares and hashes as the tuple of its rows."""

    def __init__(self, size: int, make: Callable[[Sequence[int]], Iterator[_Row]]) -> None:
        """Keep how rows are made.

        Args:
            size: how many there are.
            make: yields the rows at some places, in their order; must always yield the same.
        """
        self._size = size
        self._make = make
        self._rows: tuple[_Row, ...] | None = None
        self._num_asked = 0

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
        self._num_asked += 1
        return (
            self._all()[at] if self._num_asked * _MANY > self._size else next(self._make((places,)))
        )

    def at(self, places: Sequence[int]) -> Sequence[_Row]:
        """Return the rows at some places; makes those alone."""
        if self._rows is not None:
            return [self._rows[at] for at in places]
        return list(self._make(places))

    def __iter__(self) -> Iterator[_Row]:
        """Yield all rows."""
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        """Compare with any sequence of rows, as tuples compare."""
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        """Return the hash of the rows as a tuple."""
        return hash(self._all())


class SplicedRows(LazyRows[_Row]):
    """Rows in pieces, which those with other rows in some places share. Hashes all as a tuple."""

    def __init__(self, pieces: Iterable[Sequence[_Row]]) -> None:
        """Keep the pieces, none of which is empty."""
        self._pieces = tuple(pieces)
        *self._starts, size = accumulate(map(len, self._pieces), initial=0)
        super().__init__(size, self._make_rows)

    def _all(self) -> tuple[_Row, ...]:
        if self._rows is None:
            self._rows = tuple(chain.from_iterable(self._pieces))
        return self._rows

    def _make_rows(self, places: Sequence[int]) -> Iterator[_Row]:
        start, piece = 0, self._pieces[0] if self._pieces else ()
        for at in places:
            if not start <= at < start + len(piece):
                number = bisect_right(self._starts, at) - 1
                start, piece = self._starts[number], self._pieces[number]
            yield piece[at - start]

    def splice(self, start: int, stop: int, rows: Sequence[_Row]) -> SplicedRows[_Row]:
        """Return these rows with others from `start` to `stop`. Cost: O(pieces + rows)."""
        if not self._pieces:
            return SplicedRows(_cut(rows))
        first = bisect_right(self._starts, start) - 1
        last = max(bisect_left(self._starts, stop), first + 1)
        old, before = tuple(chain(*self._pieces[first:last])), self._starts[first]
        own = (*old[: start - before], *rows, *old[stop - before :])
        fresh = _cut(own) if len(own) > 2 * _PIECE or not own else (own,)
        return SplicedRows((*self._pieces[:first], *fresh, *self._pieces[last:]))


def _cut(rows: Sequence[_Row]) -> Iterator[Sequence[_Row]]:
    return (rows[at : at + _PIECE] for at in range(0, len(rows), _PIECE))


def splice_rows(rows: Sequence[_Row], span: tuple[int, int], own: Sequence[_Row]) -> Sequence[_Row]:
    """Return rows with others in a span. Cost: O(rows) the first time, then of those alone."""
    pieces = rows if isinstance(rows, SplicedRows) else SplicedRows(_cut(rows))
    return pieces.splice(*span, own)


def rows_at(rows: Sequence[_Row], places: Sequence[int]) -> Sequence[_Row]:
    """Return the rows at some places; of lazy ones those alone are made."""
    return rows.at(places) if isinstance(rows, LazyRows) else [rows[at] for at in places]
