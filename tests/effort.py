"""How much the tests try: a tenth by default, all of it with EXAMPLES=all.

`make test` draws few examples of each law and leaves out what the marker `long` names.
`make test-all` draws every example and leaves nothing out.
"""

import os
from collections.abc import Iterable

import pytest

IS_ALL = os.environ.get("EXAMPLES") == "all"
FEWEST = 5
"""A law is never tried with fewer examples, unless it has fewer even in a long run."""


def examples(count: int) -> int:
    """Return how many examples to draw of a law that a long run tries `count` times."""
    return count if IS_ALL else max(min(count, FEWEST), count // 10)


def first_of(cases: Iterable[object], num_quick: int = 1) -> list[object]:
    """Return parameters for a test; all but the first `num_quick` of them are `long`."""
    return [
        case if at < num_quick else pytest.param(case, marks=pytest.mark.long)
        for at, case in enumerate(cases)
    ]
