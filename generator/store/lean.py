"""Reports as they are kept in memory: equal parts of one are one object, and nothing is kept twice.

An agent names each GUID up to six times, and pydantic notes for every object which of its fields
were set, which nobody asks of a report that is only read. Without both, ten thousand reports take
half the memory, and a third less again where switches report and all that hear one name it.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from topology.report import NeighborReport, ReportId
from topology.stored_reports import parse_stored_report

_FIELDS: Final = "__pydantic_fields_set__"
_UNTOLD: Final[set[str]] = set()
"""Stands in every lean object; never changed, since copies copy it."""


_MAX_POOLED: Final = 1 << 14
"""Ids and texts to find again in later reports. What many name, such as a switch, soon is there
anew after the pool was emptied; what one names is not worth a place for longer."""


class LeanReader:
    """Parses reports, and shares equal parts within each and with those parsed before it."""

    def __init__(self) -> None:
        """Nothing was parsed yet."""
        self._pool: dict[object, Any] = {}

    def __call__(self, document: object) -> NeighborReport:
        """Return the report in a decoded object, as `parse_stored_report` does.

        Raises:
            ReportError: as `parse_stored_report`.
        """
        report = parse_stored_report(document)
        if len(self._pool) > _MAX_POOLED:
            self._pool = {}
        _share(report, self._pool)
        return report


def _share(model: BaseModel, pool: dict[object, Any]) -> None:
    """Put one object in place of all equal ones, within a model that nobody else has seen yet."""
    fields = model.__dict__
    for name, value in fields.items():
        fields[name] = _shared(value, pool)
    object.__setattr__(model, _FIELDS, _UNTOLD)


def _shared(value: object, pool: dict[object, Any]) -> object:
    """Return what stands for a value: ids and texts once, models and tuples of what is shared."""
    if isinstance(value, tuple):
        return tuple([_shared(one, pool) for one in value])
    if isinstance(value, ReportId):
        known = pool.get(value)
        if known is not None:
            return known
        _share(value, pool)
        return pool.setdefault(value, value)
    if isinstance(value, BaseModel):
        _share(value, pool)
        return value
    return pool.setdefault(value, value) if type(value) is str else value
