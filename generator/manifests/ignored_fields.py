"""The fields that had no effect, and whether they may matter for the answer.

A field is without effect only if the table of its kind says so, with the reason. Any other field
that no reader read may matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from generator.manifests.fields import ROOT, Field, Note

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
    """Why it has no effect on placement, or why it may."""

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
        field: with all that readers have read of it.
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
