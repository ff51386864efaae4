"""Characters of a dump by numpy, eight at a time: numbers, GUIDs and fixed words at many places.

Eight characters are one 64-bit word, so that a comparison or a digit's value costs one operation
per word and not one per character. Every function takes a column of places and returns columns;
what it cannot read it refuses by `NonCanonicalInput`, because nothing here may guess.

Source of the word tricks: H. S. Warren, Hacker's Delight, 2nd ed., 6-1 (find a byte) and 2-18.
"""

from __future__ import annotations

from functools import cache
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Characters: TypeAlias = NDArray[np.uint8]
Index: TypeAlias = NDArray[np.intp]
Words: TypeAlias = NDArray[np.uint64]
Flags: TypeAlias = NDArray[np.bool_]

PAD: Final = 64
"""Characters after the last place of interest that may be looked at."""
GUID_DIGITS: Final = 16
WORD: Final = 8
"""Characters of a word."""


class NonCanonicalInput(Exception):  # noqa: N818 - control flow among the fast readers, never an error
    """Something is not exactly as the tool prints it, so it is for the careful reader."""


@cache
def _each(byte: int) -> np.uint64:
    """Return a word that holds a byte eight times."""
    return np.uint64(int.from_bytes(bytes([byte] * WORD), "little"))


_ONES, _LOW7, _HIGH = _each(0x01), _each(0x7F), _each(0x80)
_NIBBLE, _UPPER, _SIX, _DIGIT = _each(0x0F), _each(0xF0), _each(0x06), _each(ord("0"))
_LETTER: Final = np.uint64(ord("a") - ord("0") - 10)
_NINE: Final = np.uint64(9)
_NOT_A_DIGIT: Final = _each(0x80 - 10)
_PAIRS, _FOURS, _EIGHT = (
    np.uint64(0x00FF00FF00FF00FF),
    np.uint64(0x0000FFFF0000FFFF),
    np.uint64(0xFFFFFFFF),
)
_LOWEST: Final = np.uint64(0xFF)
_SHIFTS: Final = tuple(np.uint64(WORD * count) for count in range(WORD))
"""By number of characters: their bits."""
_NIBBLES: Final = np.arange(0, 36, 4, dtype=np.uint64)
"""By number of hex digits up to eight: their bits."""
_KEEP: Final = np.array([(1 << WORD * count) - 1 for count in range(WORD + 1)], np.uint64)
"""By number of characters: a mask of the first ones of a word."""


class Window:
    """A piece of a dump, and the words that start at each of its characters."""

    def __init__(self, characters: Characters, size: int) -> None:
        """Look at a piece.

        Args:
            characters: the piece and at least PAD more characters.
            size: length of the piece alone.
        """
        self.characters = characters
        self.size = size
        self._words = self._strided("V8")
        self._pairs = self._strided("V16")

    def _strided(self, kind: str) -> NDArray[np.void]:
        """View the characters as overlapping items, one from each character on."""
        width = np.dtype(kind).itemsize
        return np.ndarray((len(self.characters) - width + 1,), kind, self.characters, strides=(1,))

    def words(self, at: Index) -> Words:
        """Return the eight characters from each place on, the first one lowest."""
        return self._words[at].view("<u8")

    def starts_with(self, word: str, at: Index) -> Flags:
        """Tell where a word of at most eight characters stands."""
        return starts_with(self.words(at), word)

    def guids(self, at: Index) -> Words:
        """Return the values of GUIDs of 16 lower-case digits."""
        found = self._pairs[at].view("<u8")
        digits = _digits(found)
        if np.bitwise_or.reduce(_mark_non_hex(found, digits)):
            raise NonCanonicalInput
        return _joined(_pack(digits))

    def hex_runs(self, at: Index) -> tuple[Words, Index]:
        """Return the values of the up to 16 lower-case hex digits from each place on.

        Returns:
            The values, and how many digits there are; 0 and 0 where there are none.
        """
        found = self._pairs[at].view("<u8")
        digits = _digits(found)
        odd = _mark_non_hex(found, digits)
        equal = _equal_runs(digits, odd) if len(at) else None
        if equal is not None:
            return equal
        halves, size = _runs(digits, odd)
        high, low = size[0::2], size[1::2]
        low[high < WORD] = 0
        values = halves[0::2].copy()
        is_long = np.flatnonzero(low)
        values[is_long] = (values[is_long] << _NIBBLES[low[is_long]]) | halves[1::2][is_long]
        return values, high + low


def require_all(is_plain: Flags) -> None:
    """Refuse what is not plain at every place.

    Raises:
        NotPlain: somewhere it is not.
    """
    if np.count_nonzero(is_plain) < len(is_plain):  # much quicker than `all` on few places
        raise NonCanonicalInput


def starts_with(words: Words, word: str) -> Flags:
    """Tell which words start with at most eight characters."""
    mask, wanted = _masked(word)
    found: Flags = (words & mask) == wanted
    return found


@cache
def _masked(word: str) -> tuple[np.uint64, np.uint64]:
    """Return a mask of as many characters as a word has, and the word under it."""
    return np.uint64(_KEEP[len(word)]), np.uint64(int.from_bytes(word.encode("ascii"), "little"))


def byte_at(words: Words, at: int | Index) -> Words:
    """Return the character at a place of each word."""
    shift = _SHIFTS[at] if isinstance(at, int) else (at << 3).astype(np.uint64)
    return (words >> shift) & _LOWEST


def drop_first(words: Words, num_characters: int) -> Words:
    """Return words without their first characters; the end is filled up with NUL."""
    return words >> _SHIFTS[num_characters]


def num_digits_before(words: Words, stop: str, most: int) -> Index:
    """Return how many decimal digits each word starts with.

    Args:
        words: characters.
        stop: the character right after the number.
        most: digits that it may have, 1 to 7.

    Raises:
        NotPlain: a word that starts with no such number.
    """
    found = _equal(words, stop)
    lowest = found & (~found + np.uint64(1))
    num_digits = (np.bitwise_count(lowest - np.uint64(1)) >> 3).astype(np.intp)
    kept = (words ^ _DIGIT) & ((lowest >> np.uint64(7)) - np.uint64(1))
    is_odd = ((kept + _NOT_A_DIGIT) | kept) & _HIGH
    require_all((lowest != 0) & (num_digits > 0) & (num_digits <= most) & (is_odd == 0))
    return num_digits


def parse_bracketed(words: Words) -> tuple[NDArray[np.int16], Index]:
    """Return the number of one to three digits that each word starts with, and how many they are.

    Raises:
        NotPlain: a word without such a number and a closing bracket after it.
    """
    codes = _TWO_CHARACTERS[(words & np.uint64(0xFFFF)).astype(np.intp)]
    require_all(codes >= 0)
    is_longer = codes >= _LONGER
    found = codes & np.int16(_LONGER - 1)
    num_digits = is_longer.astype(np.intp) + 1
    open_still = np.flatnonzero(is_longer & (byte_at(words, 2) != ord("]")))
    rest = words[open_still] >> np.uint64(2 * WORD)
    digits = (rest & np.uint64(0xFF)) - np.uint64(ord("0"))
    require_all((digits <= _NINE) & (byte_at(rest, 1) == ord("]")))
    found[open_still] = found[open_still] * np.int16(10) + digits.astype(np.int16)
    num_digits[open_still] += 1
    return found, num_digits


_LONGER: Final = 128


def _two_characters() -> NDArray[np.int16]:
    codes = np.full(1 << 16, -1, np.int16)
    for first in range(10):
        codes[(ord("]") << 8) | (ord("0") + first)] = first
        for second in range(10):
            number = 10 * first + second
            codes[((ord("0") + second) << 8) | (ord("0") + first)] = number + _LONGER
    return codes


_TWO_CHARACTERS: Final = _two_characters()
"""By two characters: a digit before a bracket; two digits, marked; or -1."""


def parse_short_hex(words: Words) -> tuple[Words, Index]:
    """Return the value of the lower-case hex digits that each word starts with, and their number.

    More digits may follow where there are eight.
    """
    digits = _digits(words)
    return _runs(digits, _mark_non_hex(words, digits))


def _runs(digits: Words, odd: Words) -> tuple[Words, Index]:
    flags = _nonzero(odd)
    lowest = flags & (~flags + np.uint64(1))
    num_digits = (np.bitwise_count(lowest - np.uint64(1)) >> 3).astype(np.intp)
    packed = _pack(digits & _KEEP[num_digits])
    return packed >> (np.uint64(32) - _NIBBLES[num_digits]), num_digits


def _equal_runs(digits: Words, odd: Words) -> tuple[Words, Index] | None:
    """Return what `hex_runs` does where all have as many digits, at least eight; else None.

    GUIDs of one vendor start with as many zeros, which the tool leaves out, and a fabric has the
    GUIDs of few vendors.

    Args:
        digits: values of characters, two words for each run.
        odd: words whose bytes are 0 where the character is a digit.
    """
    size = next((at for at, is_odd in enumerate(odd[:2].tobytes()) if is_odd), GUID_DIGITS)
    if size < WORD:
        return None
    keep, low = _KEEP[size - WORD], odd[1::2]
    if np.bitwise_or.reduce(odd[0::2]) or np.bitwise_or.reduce(low & keep):
        return None
    if size < GUID_DIGITS and not byte_at(low, size - WORD).min():
        return None
    digits[1::2] &= keep
    return _joined(_pack(digits)) >> _NIBBLES[GUID_DIGITS - size], np.full(len(low), size)


def last_tokens(words: Words, usual: int = 0) -> tuple[Words, Index]:
    """Return what stands after the last blank of each word, and how many characters that is.

    Args:
        words: characters.
        usual: a size that is tried first; where there is a blank before as many characters in
            every word these are returned, although they may hold another blank.

    Raises:
        NotPlain: a word without a blank, or with nothing after it.
    """
    if usual and (byte_at(words, WORD - usual - 1) == ord(" ")).all():
        return drop_first(words, WORD - usual), np.full(len(words), usual)
    size = after_last(words, " ")
    require_all((size > 0) & (size < WORD))
    return words >> ((WORD - size) << 3).astype(np.uint64), size


def after_last(words: Words, character: str) -> Index:
    """Return how many characters follow the last such one of each word; 8 without any."""
    return _AFTER_LAST[_gather(_equal(words, character))]


def are_decimal(words: Words, num_digits: Index) -> Flags:
    """Tell which words start with so many decimal digits."""
    kept = (words ^ _DIGIT) & _KEEP[num_digits]
    flags: Flags = (((kept + _NOT_A_DIGIT) | kept) & _HIGH) == 0
    return flags


def _nonzero(words: Words) -> Words:
    """Return the highest bit of each byte that is not zero."""
    return (((words & _LOW7) + _LOW7) | words) & _HIGH


def _equal(words: Words, character: str) -> Words:
    """Return the highest bit of each byte that is the character."""
    return ~(_nonzero(words ^ _each(ord(character))) | _LOW7)


def _gather(flags: Words) -> Index:
    """Return the highest bits of the bytes as one number each."""
    together = (flags >> np.uint64(7)) * np.uint64(0x0102040810204080)
    return (together >> np.uint64(WORD * (WORD - 1))).astype(np.intp)


_AFTER_LAST: Final = np.array([WORD - flags.bit_length() for flags in range(256)], np.intp)
"""By flags of the characters of a word: how many follow the last flag, 8 without any."""


def _digits(words: Words) -> Words:
    """Return the value of each character that is a hex digit, and something else for others."""
    return (words & _NIBBLE) + _NINE * ((words >> np.uint64(6)) & _ONES)


def _mark_non_hex(words: Words, digits: Words) -> Words:
    """Return words whose bytes are 0 where the character is a lower-case hex digit."""
    is_letter = ((digits + _SIX) >> np.uint64(4)) & _ONES
    return ((digits + _DIGIT + is_letter * _LETTER) ^ words) | (digits & _UPPER)


def _pack(digits: Words) -> Words:
    """Return the value of eight hex digits each, the first one highest."""
    pairs = ((digits << np.uint64(4)) | (digits >> np.uint64(8))) & _PAIRS
    fours = ((pairs << np.uint64(8)) | (pairs >> np.uint64(16))) & _FOURS
    return ((fours << np.uint64(16)) | (fours >> np.uint64(32))) & _EIGHT


def _joined(halves: Words) -> Words:
    """Return one value for the values of two words each, the first one highest."""
    found: Words = (halves[0::2] << np.uint64(32)) | halves[1::2]
    return found
