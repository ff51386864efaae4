"""Faults of shell wildcards: patterns that Python accepts, and that match nothing. Pure."""

from __future__ import annotations

import re
from typing import Final

_RANGE: Final = re.compile("(.)-(.)", re.DOTALL)


def find_glob_fault(glob: str) -> str | None:
    """Return the fault of a pattern; None if the pattern is valid.

    A bracket that is not closed would be taken literally, and a range from high to low is empty.
    """
    start = glob.find("[")
    while start >= 0:
        first = start + (2 if glob[start + 1 : start + 2] == "!" else 1)
        end = glob.find("]", first + 1)
        if end < 0:
            return "has a [ without a ]; write [[] for the character ["
        for low, high in _RANGE.findall(glob[first:end]):
            if low > high:
                return f"has the range {low}-{high}, which is empty; expected {high}-{low}"
        start = glob.find("[", end + 1)
    return None
