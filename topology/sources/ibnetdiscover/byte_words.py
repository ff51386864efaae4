"""Numbers, GUIDs and fixed words in an array of characters: eight characters at a time, with numpy.

Eight characters are one 64-bit word, so a comparison or the value of a digit costs one operation
per word instead of one per character. The functions take and return columns, one entry per offset.
They never guess: they refuse other input with `NonCanonicalInput`.

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
"""Characters after the end of a chunk that may be read."""
GUID_DIGITS: Final = 16
WORD: Final = 8
"""Characters of a word."""


class NonCanonicalInput(Exception):  # noqa: N818 - control flow of the numpy parser, never an error
    """The input is not exactly as the tool prints it, so it needs the line parser."""


@cache
def _each(byte: int) -> np.uint64:
    """Return a word that repeats a byte eight times."""
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
"""Number of bits by number of characters."""
_NIBBLES: Final = np.arange(0, 36, 4, dtype=np.uint64)
"""Number of bits by number of hex digits, up to eight."""
_KEEP: Final = np.array([(1 << WORD * count) - 1 for count in range(WORD + 1)], np.uint64)
"""By number of characters, a mask of so many first characters of a word."""


class Window:
    """A chunk of a dump, and the words that start at each of its characters."""

    def __init__(self, characters: Characters, size: int) -> None:
        """View a chunk.

        Args:
            characters: the chunk and at least PAD more characters.
            size: length of the chunk alone.
        """
        self.characters = characters
        self.size = size
        self._words = self._strided("V8")
        self._pairs = self._strided("V16")

    def _strided(self, kind: str) -> NDArray[np.void]:
        """View the characters as overlapping items, one starting at each character."""
        width = np.dtype(kind).itemsize
        return np.ndarray((len(self.characters) - width + 1,), kind, self.characters, strides=(1,))

    def words(self, offsets: Index) -> Words:
        """Return the eight characters at each offset; the first is the lowest byte."""
        return self._words[offsets].view("<u8")

    def starts_with(self, word: str, offsets: Index) -> Flags:
        """Return whether a word of at most eight characters is at each offset."""
        return starts_with(self.words(offsets), word)

    def guids(self, offsets: Index) -> Words:
        """Return the values of GUIDs of 16 lower-case digits.

        Raises:
            NonCanonicalInput: there is another character at an offset.
        """
        halves = self._pairs[offsets].view("<u8")
        digits = _digits(halves)
        if np.bitwise_or.reduce(_mark_non_hex(halves, digits)):
            raise NonCanonicalInput
        return _joined(_pack(digits))

    def hex_runs(self, offsets: Index) -> tuple[Words, Index]:
        """Return the values of up to 16 lower-case hex digits at each offset.

        Returns:
            The values and the numbers of digits; 0 and 0 without a digit.
        """
        masked_pairs = self._pairs[offsets].view("<u8")
        digits = _digits(masked_pairs)
        odd = _mark_non_hex(masked_pairs, digits)
        halves, size = _runs(digits, odd)
        high, low = size[0::2], size[1::2]
        low[high < WORD] = 0
        values = halves[0::2].copy()
        is_long = np.flatnonzero(low)
        values[is_long] = (values[is_long] << _NIBBLES[low[is_long]]) | halves[1::2][is_long]
        return values, high + low


def require_all(is_canonical: Flags) -> None:
    """Raise unless all flags are true.

    Raises:
        NonCanonicalInput: a flag is false.
    """
    if np.count_nonzero(is_canonical) < len(is_canonical):  # much faster than `all` on few entries
        raise NonCanonicalInput


def starts_with(words: Words, word: str) -> Flags:
    """Return which words start with `word`, which has at most eight characters."""
    mask, expected_word = _masked(word)
    is_equal: Flags = (words & mask) == expected_word
    return is_equal


@cache
def _masked(word: str) -> tuple[np.uint64, np.uint64]:
    """Return a mask of the characters of a word, and the word."""
    return np.uint64(_KEEP[len(word)]), np.uint64(int.from_bytes(word.encode("ascii"), "little"))


def byte_at(words: Words, position: int | Index) -> Words:
    """Return the character at a position of each word."""
    shift = _SHIFTS[position] if isinstance(position, int) else (position << 3).astype(np.uint64)
    return (words >> shift) & _LOWEST


def drop_first(words: Words, num_characters: int) -> Words:
    """Return words without their first characters; the end is filled with NUL."""
    return words >> _SHIFTS[num_characters]


def num_digits_before(words: Words, stop: str, most: int) -> Index:
    """Return the number of decimal digits at the start of each word.

    Args:
        words: characters.
        stop: the character directly after the number.
        most: maximum number of digits, 1 to 7.

    Raises:
        NonCanonicalInput: a word does not start with such a number.
    """
    matches = _equal(words, stop)
    lowest = matches & (~matches + np.uint64(1))
    num_digits = (np.bitwise_count(lowest - np.uint64(1)) >> 3).astype(np.intp)
    masked_words = (words ^ _DIGIT) & ((lowest >> np.uint64(7)) - np.uint64(1))
    is_odd = ((masked_words + _NOT_A_DIGIT) | masked_words) & _HIGH
    require_all((lowest != 0) & (num_digits > 0) & (num_digits <= most) & (is_odd == 0))
    return num_digits


_TWO_DIGITS: Final = 128


def _two_characters() -> NDArray[np.int16]:
    codes = np.full(1 << 16, -1, np.int16)
    for first in range(10):
        codes[(ord("]") << 8) | (ord("0") + first)] = first
        for second in range(10):
            number = 10 * first + second
            codes[((ord("0") + second) << 8) | (ord("0") + first)] = number + _TWO_DIGITS
    return codes


_TWO_CHARACTERS: Final = _two_characters()
"""By two characters: a digit before a bracket, two digits plus `_TWO_DIGITS`, or -1."""


def parse_bracketed(words: Words) -> tuple[NDArray[np.int16], Index]:
    """Return the number of one to three digits at the start of each word, and the digit count.

    Raises:
        NonCanonicalInput: a word does not start with such a number and a closing bracket.
    """
    codes = _TWO_CHARACTERS[(words & np.uint64(0xFFFF)).astype(np.intp)]
    require_all(codes >= 0)
    has_two_digits = codes >= _TWO_DIGITS
    numbers = codes & np.int16(_TWO_DIGITS - 1)
    num_digits = has_two_digits.astype(np.intp) + 1
    three_digits = np.flatnonzero(has_two_digits & (byte_at(words, 2) != ord("]")))
    next_words = words[three_digits] >> np.uint64(2 * WORD)
    digits = (next_words & np.uint64(0xFF)) - np.uint64(ord("0"))
    require_all((digits <= _NINE) & (byte_at(next_words, 1) == ord("]")))
    numbers[three_digits] = numbers[three_digits] * np.int16(10) + digits.astype(np.int16)
    num_digits[three_digits] += 1
    return numbers, num_digits


def parse_short_hex(words: Words) -> tuple[Words, Index]:
    """Return the value of the lower-case hex digits at the start of each word, and their number.

    More digits may follow if there are eight.
    """
    digits = _digits(words)
    return _runs(digits, _mark_non_hex(words, digits))


def _runs(digits: Words, odd: Words) -> tuple[Words, Index]:
    flags = _nonzero(odd)
    lowest = flags & (~flags + np.uint64(1))
    num_digits = (np.bitwise_count(lowest - np.uint64(1)) >> 3).astype(np.intp)
    packed = _pack(digits & _KEEP[num_digits])
    return packed >> (np.uint64(32) - _NIBBLES[num_digits]), num_digits


def last_tokens(words: Words) -> tuple[Words, Index]:
    """Return the text after the last blank of each word, and its length.

    Raises:
        NonCanonicalInput: a word has no blank, or no text after it.
    """
    size = after_last(words, " ")
    require_all((size > 0) & (size < WORD))
    return words >> ((WORD - size) << 3).astype(np.uint64), size


def after_last(words: Words, character: str) -> Index:
    """Return the number of characters after the last `character` of each word; 8 without one."""
    return _AFTER_LAST[_gather(_equal(words, character))]


def are_decimal(words: Words, num_digits: Index) -> Flags:
    """Return which words start with so many decimal digits."""
    masked_words = (words ^ _DIGIT) & _KEEP[num_digits]
    flags: Flags = (((masked_words + _NOT_A_DIGIT) | masked_words) & _HIGH) == 0
    return flags


def _nonzero(words: Words) -> Words:
    """Return words with the highest bit set in each byte that is not zero."""
    return (((words & _LOW7) + _LOW7) | words) & _HIGH


def _equal(words: Words, character: str) -> Words:
    """Return words with the highest bit set in each byte that equals the character."""
    return ~(_nonzero(words ^ _each(ord(character))) | _LOW7)


def _gather(flags: Words) -> Index:
    """Return the highest bits of the eight bytes of each word as one number."""
    together = (flags >> np.uint64(7)) * np.uint64(0x0102040810204080)
    return (together >> np.uint64(WORD * (WORD - 1))).astype(np.intp)


_AFTER_LAST: Final = np.array([WORD - flags.bit_length() for flags in range(256)], np.intp)
"""By flags of the characters of a word, the number of characters after the last flag; 8 without
one."""


def _digits(words: Words) -> Words:
    """Return the value of each hex digit; undefined for other characters."""
    return (words & _NIBBLE) + _NINE * ((words >> np.uint64(6)) & _ONES)


def _mark_non_hex(words: Words, digits: Words) -> Words:
    """Return words with a byte of 0 for each lower-case hex digit."""
    is_letter = ((digits + _SIX) >> np.uint64(4)) & _ONES
    return ((digits + _DIGIT + is_letter * _LETTER) ^ words) | (digits & _UPPER)


def _pack(digits: Words) -> Words:
    """Return the value of the eight hex digits of each word; the first digit is the highest."""
    pairs = ((digits << np.uint64(4)) | (digits >> np.uint64(8))) & _PAIRS
    fours = ((pairs << np.uint64(8)) | (pairs >> np.uint64(16))) & _FOURS
    return ((fours << np.uint64(16)) | (fours >> np.uint64(32))) & _EIGHT


def _joined(halves: Words) -> Words:
    """Return one value for each two words; the first word is the high half."""
    values: Words = (halves[0::2] << np.uint64(32)) | halves[1::2]
    return values
