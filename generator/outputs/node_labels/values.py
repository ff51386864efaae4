"""Names of domains as label values: valid, unique, and in text order where names count up.

Kueue and KAI compare values as text, so `leaf-2` and `leaf-10` become `leaf-0002` and `leaf-0010`.
A value depends on its own name alone, so that it stays when other domains come and go. Only two
names with one value, such as `leaf-1` and `leaf-01`, get a hash each.

Source: label values, https://kubernetes.io/docs/concepts/overview/working-with-objects/labels.
KAI splits paths of values at dots, so values hold none.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

MAX_VALUE: Final = 63
UNPLACED_PREFIX: Final = "unplaced-"
"""Starts the value of a node whose place is unknown: a domain of its own, shared with no node."""
_RESERVED: Final = frozenset({"root"})
"""KAI's own name of the whole tree."""
_NUM_DIGITS: Final = 4
"""Numbers up to 9,999 are in order; longer ones keep their length."""
_HASH_CHARS: Final = 8
_NUMBER: Final = re.compile(r"(?<![0-9])[0-9]{1,3}(?![0-9])", re.ASCII)
_INVALID: Final = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)


def build_label_values(
    names: Iterable[str], *, taken: AbstractSet[str] = frozenset(), is_padded: bool = True
) -> Mapping[str, str]:
    """Return the label value of each name; no two names have one value.

    Args:
        names: names of domains, or what else becomes a value.
        taken: values that no name may get, such as the names of nodes.
        is_padded: whether numbers get four digits, so that text order is their order.
    """
    values = {name: _build_value(name, is_padded=is_padded) for name in names}
    counts = Counter(values.values())
    used = taken | _RESERVED
    return {
        name: _shorten(value, name) if counts[value] > 1 or value in used else value
        for name, value in values.items()
    }


def hash_value(name: str) -> str:
    """Return a valid value that ends in a hash of the name."""
    return _shorten(_INVALID.sub("-", name).strip("-_"), name)


def _build_value(name: str, *, is_padded: bool) -> str:
    """Return a valid value; it ends in a hash if the name has characters that it cannot have."""
    padded = _NUMBER.sub(lambda number: number[0].zfill(_NUM_DIGITS), name) if is_padded else name
    cleaned = _INVALID.sub("-", padded).strip("-_")
    if cleaned and cleaned == padded and len(cleaned) <= MAX_VALUE:
        return cleaned
    return _shorten(cleaned, name)


def _shorten(value: str, name: str) -> str:
    suffix = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    start = value[: MAX_VALUE - _HASH_CHARS - 1].rstrip("-_")
    return f"{start}-{suffix}" if start else suffix
