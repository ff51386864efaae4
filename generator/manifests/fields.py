"""`Field`: a value of a manifest with its path, which records whether it was read.

The unread fields are the ignored fields, so the list of ignored fields always matches the code that
reads fields. A field is without effect only if the table of its kind says so, with the reason. Any
other field that no reader read may matter.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from topology.model.errors import EXCERPT_CHARS, PlacementRequestError, show

ROOT: Final = ": "
"""Marks the end of a document's path: `Job 'train' (line 1): spec.parallelism`."""
MAX_INTEGER: Final = 1_000_000
"""Largest accepted count."""
_EXCERPT = reprlib.Repr()
"""Limits the depth of excerpts, because manifests may be nested deeply."""
_EXCERPT.maxlevel, _EXCERPT.maxstring, _EXCERPT.maxother = 2, EXCERPT_CHARS, EXCERPT_CHARS
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


class Note(NamedTuple):
    """How a field was read, where its value alone does not show it."""

    path: str
    text: str
    is_warning: bool = False
    """Whether the scheduler may read the field in another way."""

    def __str__(self) -> str:
        """Return `path: text`."""
        return f"{self.path.removesuffix(ROOT)}: {self.text}"


class Field:
    """A value at a path; an absent value is a field with the value None."""

    __slots__ = ("_children", "_is_read", "_notes", "path", "value")

    def __init__(self, value: object, path: str, notes: list[Note] | None = None) -> None:
        """Wrap a value; fields below it share its notes."""
        self.value = value
        self.path = path
        self._notes: list[Note] = [] if notes is None else notes
        self._children: dict[str | int, Field] = {}
        self._is_read = False

    def regroup(self, **parts: Field) -> Field:
        """Return a mapping of fields from anywhere in the document, which keep their paths.

        A part that is read here counts as read in the document.
        """
        found = Field({key: part.value for key, part in parts.items()}, self.path, self._notes)
        found._children.update(parts)
        return found

    def relist(self, items: Sequence[Field]) -> Field:
        """Return a list of fields, as `regroup` returns a mapping."""
        found = Field([item.value for item in items], self.path, self._notes)
        found._children.update(enumerate(items))
        return found

    @property
    def exists(self) -> bool:
        """Whether the document has a value at the path."""
        return self.value is not None

    @property
    def title(self) -> str:
        """The path, for messages."""
        return self.path.removesuffix(ROOT)

    @property
    def notes(self) -> list[Note]:
        """The notes on the whole document so far; the list grows as fields are read."""
        return self._notes

    def get(self, *keys: str) -> Field:
        """Return the nested field under a sequence of keys.

        Raises:
            PlacementRequestError: a value on the path is not a mapping.
        """
        field = self
        for key in keys:
            field = field._child(key)
        return field

    def entries(self) -> Iterator[tuple[str, Field]]:
        """Yield (key, field) of a mapping; nothing if it is absent."""
        for key in self._mapping():
            yield key, self._child(key)

    def items(self) -> list[Field]:
        """Return the items of a list; empty if it is absent."""
        if self.value is None:
            return []
        if not isinstance(self.value, list):
            raise self.build_error("expected a list")
        return [self._index(index, value) for index, value in enumerate(self.value)]

    def text(self, default: str = "") -> str:
        """Return a string."""
        if self.value is None:
            return default
        if not isinstance(self.value, str):
            raise self.build_error("expected a string")
        self._is_read = True
        return self.value

    def integer(self, default: int, *, minimum: int = 0) -> int:
        """Return an integer from `minimum` to a million."""
        number = self.optional_integer(minimum=minimum)
        return default if number is None else number

    def optional_integer(self, *, minimum: int = 0) -> int | None:
        """Return an integer as `integer` does; None if it is absent."""
        if self.value is None:
            return None
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.build_error("expected an integer")
        if not minimum <= self.value <= MAX_INTEGER:
            raise self.build_error(f"expected an integer from {minimum} to {MAX_INTEGER}")
        self._is_read = True
        return self.value

    def integer_from_text(self, *, minimum: int = 1) -> int | None:
        """Return an integer from a string, as in annotations; None if it is absent."""
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

    def decode_json(self, noun: str, kind: type[object]) -> Field:
        """Return the value that a text holds, as annotations do; `noun` says what is expected."""
        try:
            value = json.loads(self.text())
        except (ValueError, RecursionError) as error:
            raise self.build_error(f"expected {noun} in JSON") from error
        if not isinstance(value, kind):
            raise self.build_error(f"expected {noun} in JSON")
        return Field(value, self.path, self._notes)

    def raw(self) -> object:
        """Return the unchecked value; all of it counts as read."""
        self._is_read = True
        return self.value

    def note(self, text: str) -> None:
        """Add a note about this field for the user."""
        self._notes.append(Note(self.path, text))

    def warn(self, text: str) -> None:
        """Say how the scheduler may read this field in another way than Toponaut."""
        self._notes.append(Note(self.path, text, is_warning=True))

    def build_error(self, problem: str) -> PlacementRequestError:
        """Return the error for an invalid value."""
        return PlacementRequestError(
            self.path.removesuffix(ROOT), f"{problem}, got {show(repr(self.value))}"
        )

    @property
    def is_read(self) -> bool:
        """Whether the whole value was read."""
        return self._is_read

    @property
    def is_blank(self) -> bool:
        """Whether the value is empty at every depth."""
        pending = [self.value]
        while pending:
            item = pending.pop()
            if isinstance(item, dict):
                pending.extend(item.values())
            elif isinstance(item, list):
                pending.extend(item)
            elif item not in (None, ""):
                return False
        return True

    @property
    def is_entered(self) -> bool:
        """Whether a part of the value was looked up."""
        return bool(self._children)

    def parts(self) -> Iterator[tuple[str | int, Field]]:
        """Yield (key or index, field) of a mapping or a list, in document order."""
        if isinstance(self.value, dict):
            for key in self.value:
                yield key, self._child(key)
        elif isinstance(self.value, list):
            for index, value in enumerate(self.value):
                yield index, self._index(index, value)

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

    def _index(self, index: int, value: object) -> Field:
        if index not in self._children:
            self._children[index] = Field(value, f"{self.path}[{index}]", self._notes)
        return self._children[index]


Row: TypeAlias = "str | FieldTable | None"
"""Of one field: why it is without effect, or the table of its own fields; None: it may matter."""
FieldTable: TypeAlias = Mapping[str, Row] | Callable[[str, Field], Row]
"""The rows of fields by name; a field without a row may matter.

A table that depends on more than names is a function of the name and the field."""
ALL: Final = "*"
"""The row of every name without one of its own."""


class Relevance(StrEnum):
    """Whether an ignored field may affect placement."""

    NONE = "no effect on placement"
    POSSIBLE = "Toponaut does not read this; the scheduler may place the pods differently"


class IgnoredField(NamedTuple):
    """A field that had no effect on the request."""

    path: str
    relevance: Relevance
    num_objects: int = 1
    """Number of objects with the field; `path` is that of the first object."""
    reason: str = ""
    """Why the field has no effect on placement, or why it may have one."""

    def __str__(self) -> str:
        """Return the path, and the number of further objects with the field."""
        return (
            f"{self.path} (and in {self.num_objects - 1} more)"
            if self.num_objects > 1
            else self.path
        )


def collect_ignored(rows: Iterable[IgnoredField]) -> tuple[IgnoredField, ...]:
    """Return ignored fields; those that may matter come first.

    The same field of several objects, for example pods, is one row.
    """
    found: dict[str, IgnoredField] = {}
    for row in rows:
        key = row.path.partition(ROOT)[2] or row.path
        known = found.setdefault(key, row)
        if known is not row:
            found[key] = known._replace(num_objects=known.num_objects + 1)
    return tuple(sorted(found.values(), key=lambda row: row.relevance is Relevance.NONE))


def render_warning(note: Note) -> IgnoredField:
    """Return a warning as a row of the ignored fields, because it matters as much."""
    return IgnoredField(note.path.removesuffix(ROOT), Relevance.POSSIBLE, reason=note.text)


def find_ignored(field: Field, row: Row) -> Iterator[IgnoredField]:
    """Yield the topmost unread parts of a field, in document order.

    Args:
        field: the outermost field, after all readers have read their parts.
        row: its row in the table of its kind.
    """
    if field.is_read or field.is_blank:
        return
    is_entered, reason = field.is_entered, row if isinstance(row, str) else ""
    has_table = row is not None and not isinstance(row, str)
    if not (is_entered or has_table) or not isinstance(field.value, dict | list):
        relevance = Relevance.NONE if reason else Relevance.POSSIBLE
        yield IgnoredField(field.path.removesuffix(ROOT), relevance, reason=reason)
        return
    rows = [
        inner
        for key, part in field.parts()
        for inner in find_ignored(part, _find_row(row, key, part))
    ]
    if is_entered or len({inner.reason for inner in rows}) > 1:
        yield from rows
    else:
        yield IgnoredField(field.path, rows[0].relevance, reason=rows[0].reason)


def _find_row(row: Row, key: str | int, field: Field) -> Row:
    """Return the row of a part; the items of a list have the row of the list."""
    if row is None or isinstance(row, str):
        return row
    if isinstance(key, int):
        return None if isinstance(field.value, list) else row
    return row(key, field) if callable(row) else row.get(key, row.get(ALL))
