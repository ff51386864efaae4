"""One value of a foreign document: where it stands, and which of its parts were read.

What nobody read is what was ignored; so the list of ignored fields cannot fall behind the readers.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from topology.model.errors import EXCERPT_CHARS, PlacementRequestError, show

ROOT: Final = ": "
"""Ends the path of a whole document: `Job 'train' (line 1): spec.parallelism`."""
MAX_INTEGER: Final = 1_000_000
"""Largest count that is believed."""
_EXCERPT = reprlib.Repr()
"""Goes no deeper than a few levels, as foreign documents may."""
_EXCERPT.maxlevel, _EXCERPT.maxstring, _EXCERPT.maxother = 2, EXCERPT_CHARS, EXCERPT_CHARS
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


class Note(NamedTuple):
    """What was made of a field beyond its plain meaning."""

    path: str
    text: str

    def __str__(self) -> str:
        """Return `path: text`."""
        return f"{self.path.removesuffix(ROOT)}: {self.text}"


class Field:
    """A value at a path; absent ones are fields too, of value None."""

    __slots__ = ("_children", "_is_read", "_notes", "path", "value")

    def __init__(self, value: object, path: str, notes: list[Note] | None = None) -> None:
        """Wrap a value; the fields below share its notes."""
        self.value = value
        self.path = path
        self._notes: list[Note] = [] if notes is None else notes
        self._children: dict[str | int, Field] = {}
        self._is_read = False

    @property
    def exists(self) -> bool:
        """Whether the document has a value there."""
        return self.value is not None

    @property
    def title(self) -> str:
        """The path as messages show it."""
        return self.path.removesuffix(ROOT)

    @property
    def notes(self) -> list[Note]:
        """What was noted in the whole document so far; grows as it is read."""
        return self._notes

    def get(self, *keys: str) -> Field:
        """Return the field under keys, one below the other.

        Raises:
            PlacementRequestError: something other than a mapping is on the way.
        """
        found = self
        for key in keys:
            found = found._child(key)
        return found

    def entries(self) -> Iterator[tuple[str, Field]]:
        """Yield (key, field) of a mapping; none where it is absent."""
        for key in self._mapping():
            yield key, self._child(key)

    def items(self) -> list[Field]:
        """Return the members of a list; none where it is absent."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.build_error("expected a list")
        return [self._index(at, value) for at, value in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        """Return a text."""
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            raise self.build_error("expected a text")
        self._is_read = True
        return self.value

    def integer(self, default: int, *, minimum: int = 0) -> int:
        """Return an integer from `least` to a million."""
        found = self.optional_integer(minimum=minimum)
        return default if found is None else found

    def optional_integer(self, *, minimum: int = 0) -> int | None:
        """Return the same; None where it is absent."""
        if self.value is None:
            return None
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.build_error("expected an integer")
        if not minimum <= self.value <= MAX_INTEGER:
            raise self.build_error(f"expected an integer from {minimum} to {MAX_INTEGER}")
        self._is_read = True
        return self.value

    def integer_from_text(self, *, minimum: int = 1) -> int | None:
        """Return an integer that stands in a text, as in annotations; None where it is absent."""
        if self.value is None:
            return None
        text = str(self.value).strip()
        if (
            not re.fullmatch(r"[0-9]{1,7}", text, re.ASCII)
            or not minimum <= int(text) <= MAX_INTEGER
        ):
            raise self.build_error(f"expected an integer from {minimum} to {MAX_INTEGER}")
        self._is_read = True
        return int(text)

    def raw(self) -> object:
        """Return the value as it is; all of it counts as read."""
        self._is_read = True
        return self.value

    def note(self, text: str) -> None:
        """Keep a remark about this field for the reader of the answer."""
        self._notes.append(Note(self.path, text))

    def build_error(self, problem: str) -> PlacementRequestError:
        """Return the error of a value that is no use."""
        return PlacementRequestError(
            self.path.removesuffix(ROOT), f"{problem}, got {show(repr(self.value))}"
        )

    def find_unread(self) -> Iterator[str]:
        """Yield the paths that nobody read, the topmost of each branch, in document order."""
        if self._is_read:
            return
        if not self._children:
            if not _is_blank(self.value):
                yield self.path
            return
        if isinstance(self.value, dict):
            for key in self.value:
                yield from self._child(key).find_unread()
        elif isinstance(self.value, list):
            for at, value in enumerate(self.value):
                yield from self._index(at, value).find_unread()

    def _mapping(self) -> dict[str, object]:
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self.build_error("expected a mapping")
        return self.value

    def _child(self, key: str) -> Field:
        value = self._mapping().get(key)
        if key not in self._children:
            dot = "" if self.path.endswith(ROOT) else "."
            shown = f"{dot}{key}" if _PLAIN_KEY.match(key) else f"['{show(key)}']"
            self._children[key] = Field(value, self.path + shown, self._notes)
        return self._children[key]

    def _index(self, at: int, value: object) -> Field:
        if at not in self._children:
            self._children[at] = Field(value, f"{self.path}[{at}]", self._notes)
        return self._children[at]


def _is_blank(value: object) -> bool:
    """Return whether a value says nothing, at any depth."""
    rest = [value]
    while rest:
        found = rest.pop()
        if isinstance(found, dict):
            rest.extend(found.values())
        elif isinstance(found, list):
            rest.extend(found)
        elif found not in (None, ""):
            return False
    return True
