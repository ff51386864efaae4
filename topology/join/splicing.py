"""Columns with some of their entries replaced, and shared where nothing is another."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

AnyT = TypeVar("AnyT", bound="np.generic[Any]")


def splice(column: NDArray[AnyT], span: tuple[int, int], own: NDArray[AnyT]) -> NDArray[AnyT]:
    """Return a column with other entries in a span; the very same where those are equal."""
    start, stop = span
    if np.array_equal(column[start:stop], own):
        return column
    return np.concatenate([column[:start], own.astype(column.dtype), column[stop:]])
