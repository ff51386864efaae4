"""Names in the form of Slurm's hostlists: `node-[0001-0032,0040]`. Pure.

Only the number at the end of a name forms a range, because older Slurm accepts nothing after the
closing bracket. A number keeps its leading zeros: the bounds of a padded range are equally long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, product
from math import prod
from typing import Final, NamedTuple

from topology.model.ids import natural_key

_LAST_NUMBER: Final = re.compile(r"(.*?)(?<![0-9])([0-9]{1,9})\Z", re.ASCII | re.DOTALL)
"""Longer numbers, such as GUIDs, stay as they are: Slurm reads a bound as a machine integer."""
_PART: Final = re.compile(r"((?:[^\[\],]|\[[^\[\]]*\])+)(?:,|\Z)")
_PIECE: Final = re.compile(r"([^\[\]]+)|\[([0-9,-]*)\]", re.ASCII)
_DIGITS: Final = re.compile(r"([0-9]{1,9})", re.ASCII)
_MAX_SHOWN: Final = 200
"""Characters of the names in a sentence."""
MAX_NAMES: Final = 1_000_000


class _Name(NamedTuple):
    prefix: str
    digits: str
    """Empty for a name that ends in no number."""


def fold_names(names: Iterable[str]) -> str:
    """Return names as a list of ranges, in the given order; sort them first for the shortest list.

    Two names join if the second has the next number after the same prefix: a-09, a-10 or a-9, a-10.
    A name must hold no comma and no bracket. Cost: O(n).
    """
    pieces: list[str] = []
    split = _split_all(names)
    for (prefix, is_numbered), group in groupby(
        split, key=lambda name: (name.prefix, name.digits != "")
    ):
        numbers = [name.digits for name in group]
        if is_numbered:
            pieces.append(_render_group(prefix, list(_join_runs(numbers))))
        else:
            pieces += [prefix] * len(numbers)
    return ",".join(pieces)


def fold_texts(names: Sequence[str]) -> str:
    """Return names as ranges, cut after a comma if they are long: `spine-p[01-32]-19`."""
    ordered = sorted(names, key=natural_key)
    text = _fold_inner(ordered) or fold_names(ordered)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN].rpartition(',')[0]},…"


def _fold_inner(names: Sequence[str]) -> str:
    """Return names as `leaf-g[1-4]-r[1-8]` if they are all names with these numbers."""
    rows = [_DIGITS.split(name) for name in names]
    if len({len(row) for row in rows}) != 1:
        return ""
    choices = [sorted({*parts}, key=natural_key) for parts in zip(*rows, strict=True)]
    texts, numbers = choices[::2], choices[1::2]
    if prod(map(len, numbers)) != len(names) or any(len(text) > 1 for text in texts):
        return ""
    return "".join(parts[0] if len(parts) == 1 else fold_names(parts) for parts in choices)


def find_gap(names: Sequence[str]) -> str:
    """Return the one name that a sequence lacks: `leaf-2` of `leaf-1`, `leaf-3`; else nothing."""
    rows, place = _align(names)
    numbers = {int(row[place]) for row in rows} if place else set()
    absent = {*range(min(numbers), max(numbers))} - numbers if numbers else set()
    if len(absent) != 1:
        return ""
    digits = str(absent.pop()).zfill(min(len(row[place]) for row in rows))
    return "".join([*rows[0][:place], digits, *rows[0][place + 1 :]])


def _align(names: Sequence[str]) -> tuple[list[list[str]], int]:
    """Return names in parts, and the place of the only part, a number, in which they differ.

    The place is 0 if they differ otherwise.
    """
    rows = [_DIGITS.split(name) for name in names]
    if len({len(row) for row in rows}) != 1:
        return rows, 0
    odd = [at for at, parts in enumerate(zip(*rows, strict=True)) if len({*parts}) > 1]
    return rows, odd[0] if len(odd) == 1 and odd[0] % 2 else 0


def expand_names(text: str, *, limit: int = MAX_NAMES) -> tuple[str, ...]:
    """Return the names of a list of ranges: `n[1-4,7]`, also with several brackets in a name.

    It is the reverse of `fold_names`, and reads what Slurm reads.

    Raises:
        ValueError: the text is not such a list, or has more names than the limit.
    """
    names: list[str] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(f"no name at character {at + 1}")
        names += _expand_part(part[1], limit - len(names))
        at = part.end()
    return tuple(names)


def _split_all(names: Iterable[str]) -> Iterator[_Name]:
    for name in names:
        match = _LAST_NUMBER.match(name)
        yield _Name(match[1], match[2]) if match else _Name(name, "")


def _join_runs(numbers: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the first and last number of each run."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != _next_number(last):
            yield first, last
            first = number
        last = number
    yield first, last


def _next_number(digits: str) -> str:
    """Return the next number with the same leading zeros; 99 continues with 100, 099 with 100."""
    return str(int(digits) + 1).zfill(len(digits))


def _render_group(prefix: str, runs: Sequence[tuple[str, str]]) -> str:
    if len(runs) == 1 and runs[0][0] == runs[0][1]:
        return f"{prefix}{runs[0][0]}"
    ranges = [first if first == last else f"{first}-{last}" for first, last in runs]
    return f"{prefix}[{','.join(ranges)}]"


def _expand_part(part: str, limit: int) -> list[str]:
    choices: list[Sequence[str]] = []
    at = num_names = 0
    while at < len(part):
        piece = _PIECE.match(part, at)
        if piece is None:
            raise ValueError(f"'{part}' has a bracket that holds no numbers")
        ranges = [] if piece[1] else [_parse_range(part) for part in piece[2].split(",")]
        num_choices = sum(row.stop - row.start for row, _ in ranges) if ranges else 1
        num_names = num_choices * (num_names or 1)
        if num_names > limit:
            raise ValueError(f"expected at most {limit} names")
        choices.append([piece[1]] if piece[1] else [*_render_numbers(ranges)])
        at = piece.end()
    return ["".join(pieces) for pieces in product(*choices)]


def _parse_range(text: str) -> tuple[range, int]:
    """Return the numbers of a range, and their width."""
    first, dash, last = text.partition("-")
    if not first or (dash and not last) or "-" in last or int(last or first) < int(first):
        raise ValueError(f"'{text}' is not a number or a range")
    return range(int(first), int(last or first) + 1), len(first)


def _render_numbers(ranges: Sequence[tuple[range, int]]) -> Iterator[str]:
    for numbers, width in ranges:
        for number in numbers:
            yield str(number).zfill(width)
