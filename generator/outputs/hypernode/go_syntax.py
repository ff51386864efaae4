"""The syntax of Go's regular expressions: a pattern to a tree of expressions. Pure.

Node names have no line break, so the flags m and s and greediness change no match. Classes of
scripts other than Latin match nothing: names of nodes are ASCII.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

MAX_PATTERN: Final = 4096
_MAX_DEPTH: Final = 100
_MAX_REPEAT: Final = 1000


class PatternError(ValueError):
    """Go refuses the pattern; the text says why."""


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """One character: of ranges, of Unicode categories, or of none of them."""

    ranges: tuple[tuple[str, str], ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[CharacterSet, ...] = ()
    is_negated: bool = False
    ignores_case: bool = False

    def has(self, char: str) -> bool:
        """Return whether the set has a character."""
        forms = {char, char.lower(), char.upper()} if self.ignores_case else {char}
        return any(map(self._has, forms)) != self.is_negated

    def _has(self, char: str) -> bool:
        return (
            any(first <= char <= last for first, last in self.ranges)
            or any(unicodedata.category(char).startswith(name) for name in self.categories)
            or any(part.has(char) for part in self.parts)
        )


class Assertion(Enum):
    """A condition on a place in the text."""

    START = 1
    END = 2
    BOUNDARY = 4
    NO_BOUNDARY = 8

    def holds(self, context: int) -> bool:
        """Return whether it holds; bits of the context: at the start, at the end, at a boundary."""
        if self is Assertion.NO_BOUNDARY:
            return not context & Assertion.BOUNDARY.value
        return bool(context & self.value)


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One after the other."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of several."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, repeated."""

    part: Expression
    least: int
    most: int | None
    """None: without limit."""


Expression = CharacterSet | Assertion | Concatenation | Choice | Repeat

_DIGIT: Final = CharacterSet((("0", "9"),))
_SPACE: Final = CharacterSet((("\t", "\n"), ("\f", "\r"), (" ", " ")))
_WORD: Final = CharacterSet((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")))
_ANY: Final = CharacterSet((("\n", "\n"),), is_negated=True)
_PERL_SETS: Final = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_POSIX_SETS: Final = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": "".join(map(chr, range(128))),
    "blank": "\t ",
    "cntrl": "".join(map(chr, (*range(32), 127))),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": "\t\n\v\f\r ",
    "upper": string.ascii_uppercase,
    "word": string.ascii_letters + string.digits + "_",
    "xdigit": string.hexdigits,
}
_CONTROLS: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ASSERTIONS: Final = {
    "A": Assertion.START,
    "z": Assertion.END,
    "b": Assertion.BOUNDARY,
    "B": Assertion.NO_BOUNDARY,
}
_SIGNS: Final[Mapping[str, Assertion | CharacterSet]] = {
    "^": Assertion.START,
    "$": Assertion.END,
    ".": _ANY,
}
_OCTAL: Final = "01234567"


def parse_pattern(pattern: str) -> Expression:
    """Return the expression of a pattern.

    Raises:
        PatternError: Go refuses it.
    """
    if len(pattern) > MAX_PATTERN:
        raise PatternError(f"longer than {MAX_PATTERN} characters")
    parser = _Parser(pattern)
    expression = parser.parse_choice(0)
    if parser.rest:
        raise PatternError("unexpected )")
    return expression


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._ignores_case = False

    @property
    def rest(self) -> str:
        return self._text[self._at :]

    def parse_choice(self, depth: int) -> Expression:
        if depth > _MAX_DEPTH:
            raise PatternError("expression nests too deeply")
        parts = [self._parse_sequence(depth)]
        while self._take("|"):
            parts.append(self._parse_sequence(depth))
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _parse_sequence(self, depth: int) -> Expression:
        parts: list[Expression] = []
        while self.rest and self.rest[0] not in "|)":
            if self._take("\\Q"):
                literal, end, _ = self.rest.partition("\\E")
                parts += [self._set_of(char) for char in literal]
                self._at += len(literal) + len(end)
            elif (bounds := self._take_repeat()) is None:
                atom = self._parse_atom(depth)
                parts += [] if atom is None else [atom]
            elif parts:
                parts.append(Repeat(parts.pop(), *bounds))
            else:
                raise PatternError("missing argument to repetition operator")
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _take_repeat(self) -> tuple[int, int | None] | None:
        """Return the bounds of the repetition that follows; None if none does."""
        bounds = self._take_bounds()
        if bounds is not None:
            self._take("?")
            if self._take_bounds() is not None:
                raise PatternError("invalid nested repetition operator")
        return bounds

    def _take_bounds(self) -> tuple[int, int | None] | None:
        """Return the bounds of the repetition operator that follows; None if none does."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        inside, closing, _ = self.rest[1:].partition("}")
        first, comma, last = inside.partition(",")
        numbers = [number for number in (first, last) if number]
        if not (self.rest[:1] == "{" and closing and first) or not all(
            number.isascii() and number.isdigit() for number in numbers
        ):
            return None
        self._at += len(inside) + 2
        least = int(first)
        most = least if not comma else int(last) if last else None
        if max(least, most or 0) > _MAX_REPEAT or (most is not None and most < least):
            raise PatternError("invalid repeat count")
        return least, most

    def _parse_atom(self, depth: int) -> Expression | None:
        """Return the expression that follows; None for flags."""
        char = self._next()
        if char == "(":
            return self._parse_group(depth)
        if char == "[":
            return self._parse_class()
        if char == "\\":
            return self._parse_escape()
        return _SIGNS.get(char) or self._set_of(char)

    def _parse_group(self, depth: int) -> Expression | None:
        ignored_case = self._ignores_case
        if self._take("?") and not self._take_name() and self._take_flags():
            return None
        inside = self.parse_choice(depth + 1)
        if not self._take(")"):
            raise PatternError("missing closing )")
        self._ignores_case = ignored_case
        return inside

    def _take_name(self) -> bool:
        if not (self._take("P<") or (self.rest[:2] not in ("<=", "<!") and self._take("<"))):
            return False
        name, closing, _ = self.rest.partition(">")
        if not closing or not name or not all(map(_WORD.has, name)):
            raise PatternError("invalid named capture")
        self._at += len(name) + 1
        return True

    def _take_flags(self) -> bool:
        """Apply the flags of a group; return whether they stand alone, as in `(?i)`."""
        is_set = True
        while (char := self._next("missing closing )")) not in ":)":
            if char == "-" and is_set:
                is_set = False
            elif char == "i":
                self._ignores_case = is_set
            elif char not in "msU":
                raise PatternError(f"invalid or unsupported Perl syntax: (?{char}")
        return char == ")"

    def _parse_class(self) -> CharacterSet:
        is_negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        parts: list[CharacterSet] = []
        is_first = True
        while is_first or not self._take("]"):
            is_first = False
            found = self._take_set()
            if found is not None:
                parts.append(found)
                continue
            first = last = self._next_in_class()
            if self.rest[:1] == "-" and self.rest[1:2] not in ("]", ""):
                self._at += 1
                last = self._next_in_class()
            if last < first:
                raise PatternError(f"invalid character class range: {first}-{last}")
            ranges.append((first, last))
        return CharacterSet(
            tuple(ranges),
            parts=tuple(parts),
            is_negated=is_negated,
            ignores_case=self._ignores_case,
        )

    def _take_set(self) -> CharacterSet | None:
        """Return the named set that follows inside of a class, such as `[:alpha:]` or `d`."""
        if self._take("[:"):
            name, closing, _ = self.rest.partition(":]")
            chars = _POSIX_SETS.get(name.removeprefix("^"))
            if not closing or chars is None:
                raise PatternError(f"invalid character class range: [:{name}:]")
            self._at += len(name) + 2
            ranges = tuple((char, char) for char in chars)
            return CharacterSet(ranges, is_negated=name.startswith("^"))
        if self.rest[:1] == "\\" and self.rest[1:2] in tuple("dswDSWpP"):
            self._at += 1
            return self._parse_named_set(self._next())
        return None

    def _next_in_class(self) -> str:
        char = self._next("missing closing ]")
        return self._parse_character() if char == "\\" else char

    def _parse_escape(self) -> Expression:
        char = self.rest[:1]
        if char in _ASSERTIONS:
            self._at += 1
            return _ASSERTIONS[char]
        if char and char in "dswDSWpP":
            self._at += 1
            return self._parse_named_set(char)
        return self._set_of(self._parse_character())

    def _parse_named_set(self, char: str) -> CharacterSet:
        if char not in "pP":
            part = _PERL_SETS[char.lower()]
            return CharacterSet(parts=(part,), is_negated=char.isupper())
        name = self._next("invalid character class range: \\p")
        if name == "{":
            name, closing, _ = self.rest.partition("}")
            if not closing:
                raise PatternError("invalid character class range: \\p{")
            self._at += len(name) + 1
        is_negated = (char == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name == "Latin":
            return CharacterSet((("A", "Z"), ("a", "z")), is_negated=is_negated)
        is_category = len(name) <= 2  # noqa: PLR2004 - L or Lu; scripts have longer names
        return CharacterSet(
            categories=(name,) if is_category else (),
            is_negated=is_negated,
            ignores_case=self._ignores_case,
        )

    def _parse_character(self) -> str:
        """Return the character of an escape, after its backslash."""
        char = self._next("trailing backslash at end of expression")
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _OCTAL and (char == "0" or self.rest[:1] in tuple(_OCTAL)):
            digits = char
            while len(digits) < 3 and self.rest[:1] in tuple(_OCTAL):  # noqa: PLR2004 - as Go
                digits += self._next()
            return chr(int(digits, 8))
        if char == "x":
            return self._parse_hex()
        if char.isascii() and not char.isalnum():
            return char
        raise PatternError(f"invalid escape sequence: \\{char}")

    def _parse_hex(self) -> str:
        if self._take("{"):
            digits, closing, _ = self.rest.partition("}")
            self._at += len(digits) + len(closing)
        else:
            digits, closing = self.rest[:2], "}" if len(self.rest) > 1 else ""
            self._at += 2
        if not closing or not digits or not set(digits) <= set(string.hexdigits):
            raise PatternError("invalid escape sequence: \\x")
        if int(digits, 16) > 0x10FFFF:  # noqa: PLR2004 - the last code point
            raise PatternError("invalid escape sequence: \\x")
        return chr(int(digits, 16))

    def _set_of(self, char: str) -> CharacterSet:
        return CharacterSet(((char, char),), ignores_case=self._ignores_case)

    def _take(self, text: str) -> bool:
        """Consume a text if it follows."""
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _next(self, problem: str = "unexpected end of expression") -> str:
        if self._at >= len(self._text):
            raise PatternError(problem)
        self._at += 1
        return self._text[self._at - 1]
