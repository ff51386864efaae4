"""Eight characters at a time give the same result as one character at a time."""

import numpy as np
import pytest

from topology.sources.ibnetdiscover.byte_words import (
    PAD,
    Index,
    NonCanonicalInput,
    Window,
    Words,
    after_last,
    are_decimal,
    byte_at,
    drop_first,
    last_tokens,
    num_digits_before,
    parse_bracketed,
    parse_short_hex,
    starts_with,
)

HEX = b"0123456789abcdef"
DIGITS = b"0123456789"
EVERY_BYTE = range(256)


def window(text: bytes) -> Window:
    return Window(np.frombuffer(text + b"\n" * PAD, np.uint8), len(text))


def words(*texts: bytes) -> Words:
    return np.array([int.from_bytes(text.ljust(8, b"\0"), "little") for text in texts], np.uint64)


def places(*found: int) -> Index:
    return np.array(found, np.intp)


@pytest.mark.parametrize("at", [0, 6, 7, 8, 15])
def test_it_reads_hex_digits_up_to_the_first_other_character(at: int) -> None:
    for character in EVERY_BYTE:
        text = HEX[:at] + bytes([character]) + HEX[at + 1 :]
        size = 16 if character in HEX else at
        values, num_digits = window(text).hex_runs(places(0))
        assert (values[0], num_digits[0]) == (int(text[:size] or b"0", 16), size)
        if character in HEX:
            assert window(text).guids(places(0))[0] == int(text, 16)
        else:
            with pytest.raises(NonCanonicalInput):
                window(text).guids(places(0))


@pytest.mark.parametrize("size", range(9))
def test_it_reads_short_hex_numbers(size: int) -> None:
    text = HEX[16 - size :] if size else b""
    values, num_digits = parse_short_hex(words(text + b"\n"[: 8 - size]))
    assert (values[0], num_digits[0]) == (int(text or b"0", 16), size)


def test_it_reads_every_port_number() -> None:
    values, num_digits = parse_bracketed(words(*(f"{number}](".encode() for number in range(1000))))
    assert values.tolist() == list(range(1000))
    assert num_digits.tolist() == [len(str(number)) for number in range(1000)]


@pytest.mark.parametrize("text", [b"]", b"1", b"1234]", b"1a]", b"a]", b"12a]", b"-1]", b"1 ]"])
def test_it_refuses_text_without_a_port_number(text: bytes) -> None:
    with pytest.raises(NonCanonicalInput):
        parse_bracketed(words(b"7]", text))


def test_it_counts_decimal_digits_only() -> None:
    for character in EVERY_BYTE:
        found = words(bytes([character]) + b"12 ")
        assert are_decimal(found, places(3))[0] == (character in DIGITS)
        if character in DIGITS:
            assert num_digits_before(found, " ", most=3)[0] == 3
        else:
            with pytest.raises(NonCanonicalInput):
                num_digits_before(found, " ", most=3)
    with pytest.raises(NonCanonicalInput):
        num_digits_before(words(b"1234 "), " ", most=3)


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize("usual", [0, 5])
def test_it_returns_the_last_word_of_a_line(size: int, usual: int) -> None:
    token = b"4xFDR10"[:size]
    found, sizes = last_tokens(words((b"x" * 8 + b" " + token)[-8:]), usual)
    assert (found[0], sizes[0]) == (words(token)[0], size)
    assert after_last(words(b"no-blank"), " ")[0] == 8


@pytest.mark.parametrize("text", [b"12345678", b"1234567 "])
def test_it_refuses_a_line_without_a_last_word(text: bytes) -> None:
    with pytest.raises(NonCanonicalInput):
        last_tokens(words(text))


def test_it_finds_words_and_characters_at_any_place() -> None:
    found = window(b"abc[7]\t").words(places(0, 3))
    assert starts_with(found, "abc").tolist() == [True, False]
    assert starts_with(drop_first(found, 2), "c[7]").tolist() == [True, False]
    assert [int(byte_at(found, 1)[0]), int(byte_at(found, places(2, 2))[1])] == [ord("b"), ord("]")]
