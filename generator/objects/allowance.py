"""How much of a whole may change, or may disagree, before a person has to look. Pure."""

from __future__ import annotations


def compute_allowance(num: int, percent: int, *, always_allowed: int) -> int:
    """Return how many of `num` are allowed: `percent` of them, but at least `always_allowed`.

    That minimum stays below half of `num`, and is 0 if `percent` is 0.
    """
    minimum = min(always_allowed, (num - 1) // 2) if percent and num else 0
    return max(num * percent // 100, minimum)
