"""Regular expressions as Go reads them: the patterns of regexMatch. Pure.

RE2 has the syntax of Go's regexp, and takes time in proportion to the text. Python's `re` reads
other syntax (look-ahead, back references) and can take exponential time on a hostile pattern.

Source: https://github.com/google/re2/wiki/Syntax, and the parser of Go's regexp/syntax.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re2

MAX_PATTERN: Final = 4096
_MAX_PROGRAM_BYTES: Final = 1 << 20
"""About 10,000 instructions. Compiling takes time and memory in proportion."""
_MAX_MATCH_BYTES: Final = 8 << 20
"""With less memory, RE2 remembers no states, and some patterns take a hundred times as long."""
_TOO_LARGE: Final = "pattern too large"
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
_ANY_BYTE: Final = r"\C"
"""RE2 reads it, and Go refuses it."""


class PatternError(ValueError):
    """The pattern cannot be used; the text says why."""


class GoPattern:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        """Compile a pattern.

        Raises:
            PatternError: Go refuses it, or it is larger than any list of names needs.
        """
        if len(pattern) > MAX_PATTERN:
            raise PatternError(f"is not matched: it is longer than {MAX_PATTERN} characters")
        if _ANY_BYTE in _ESCAPE.findall(pattern):
            raise PatternError(f"invalid escape sequence: {_ANY_BYTE}")
        _compile(pattern, _MAX_PROGRAM_BYTES)
        self._compiled = _compile(pattern, _MAX_MATCH_BYTES)

    def search(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in the text, as Volcano applies it."""
        return self._compiled.search(_encode(text)) is not None

    def fullmatch(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        return self._compiled.fullmatch(_encode(text)) is not None


def _compile(pattern: str, max_bytes: int) -> re2._Regexp:
    import re2  # noqa: PLC0415 - 10 ms, for the few commands that match patterns

    options = re2.Options()
    options.max_mem = max_bytes
    options.log_errors = False
    options.never_capture = True  # else a match lists a thousand empty groups
    try:
        return re2.compile(pattern.encode(), options)
    except UnicodeEncodeError as error:
        raise PatternError("invalid UTF-8") from error
    except re2.error as error:
        raise PatternError(_describe(error)) from error
    finally:
        re2.purge()  # a pattern is matched once, and RE2 would remember 128


def _describe(error: Exception) -> str:
    """Return the reason of RE2, which is given as bytes."""
    reason = error.args[0]
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    if text.startswith(_TOO_LARGE):  # Go allows more
        return f"is not matched: its program is larger than {_MAX_PROGRAM_BYTES} bytes"
    return text


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")
