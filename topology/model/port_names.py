"""Names of Ethernet ports in their spellings: `Hu1/0/1` and `HundredGigE 1/0/1` are one port.

A name is letters and then a number. Two names can be of one port if their numbers are equal and the
letters of one abbreviate those of the other. Whether they are is the caller's decision, which
knows the other ports of the device: `Fo1/0/1` may be short for FortyGigE and for FourHundredGigE.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

_MAX_LETTERS: Final = 64
_NAME: Final = re.compile(rf"([A-Za-z_-]{{0,{_MAX_LETTERS}}})(\d.*)", re.ASCII)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PADDING: Final = re.compile(r"(?<!\d)0+(?=\d)", re.ASCII)
_BLANK: Final = re.compile(r"\s+")


Words = tuple[str, ...]
"""The letters of a port name, split into words."""


class SpelledName(NamedTuple):
    """The parts of a port name, in the form for comparing."""

    words: Words
    """`HundredGigE` is hundred, gig and e; empty if the name begins with a digit."""
    number: str
    """All from the first digit on, without padding zeros."""

    @property
    def letters(self) -> str:
        """All letters before the number."""
        return "".join(self.words)


class NameSimilarity(IntEnum):
    """How well the letters of two names with one number agree; a higher value is better."""

    NONE = 0
    LETTERS = 1
    """The letters of one are in the other in this order, from its first letter on."""
    WORDS = 2
    """One has the beginnings of the first words of the other: `FH` of FourHundredGigE."""
    EQUAL = 3


@lru_cache(maxsize=1 << 14)  # switches repeat names; 4 µs without
def spell_port_name(name: str) -> SpelledName | None:
    """Return the parts of a port name, None if it has no number."""
    match = _NAME.fullmatch(_BLANK.sub("", name))
    if match is None:
        return None
    words = tuple(word.lower() for word in _WORD.findall(match[1]))
    return SpelledName(words, _PADDING.sub("", match[2].lower()))


def compare_names(first: SpelledName, second: SpelledName) -> NameSimilarity:
    """Return how well two names agree: NONE if their numbers differ or one has no letters."""
    if first.number != second.number or not first.words or not second.words:
        return NameSimilarity.NONE
    short, full = sorted((first, second), key=lambda spelled: len(spelled.letters))
    if short.letters == full.letters:
        return NameSimilarity.EQUAL
    if _begins_words(short.letters, full.words):
        return NameSimilarity.WORDS
    rest = iter(full.letters)
    is_in_order = short.letters[0] == full.letters[0] and all(
        letter in rest for letter in short.letters
    )
    return NameSimilarity.LETTERS if is_in_order else NameSimilarity.NONE


def _begins_words(short: str, words: Words) -> bool:
    """Whether a text joins the beginnings of the first words, without leaving out a word."""
    reached = {0}
    for word in words:
        reached = {
            start + length
            for start in reached
            for length in range(1, len(word) + 1)
            if short.startswith(word[:length], start)
        }
        if len(short) in reached:
            return True
    return False
