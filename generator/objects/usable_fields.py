"""The usable fields of a row: a field that is refused costs that field, not its row. Pure.

pydantic refuses a whole model for one wrong field. Here the refused part of the row is left out,
and the rest is validated again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from topology.model.errors import ConfigError, show
from topology.model.validation import describe_fault

Path = tuple[str | int, ...]
"""Where a value is in a row: keys of mappings and indexes of lists."""

_MAX_ROUNDS: Final = 8
"""Leaving out one fault may show another one below it, at most once per level."""
_UNKNOWN_KEY: Final = "extra_forbidden"
ModelT = TypeVar("ModelT", bound=BaseModel)


class FieldFault(NamedTuple):
    """A part of a row that is left out, and why."""

    path: Path
    """Of the part that is left out: a field, an entry of a mapping, or an item of a list."""
    problem: str
    """What is wrong, with the full path of the value: `ids.0.value: expected a text`."""


class UsableFields(NamedTuple, Generic[ModelT]):
    """A row without the fields that are refused."""

    model: ModelT
    faults: tuple[FieldFault, ...]


def validate_fields(
    model: type[ModelT], row: Mapping[str, Any], *, required: frozenset[Path]
) -> UsableFields[ModelT]:
    """Return the model of a row without its refused parts, and why they are refused.

    An item of a list is left out as a whole if one of its fields is wrong, but not for an unknown
    key in it.

    Args:
        model: its fields have defaults, apart from the required ones.
        row: the decoded row; not changed.
        required: paths of the fields without which the row means nothing.

    Raises:
        ConfigError: a required field is missing or wrong.
    """
    faults: list[FieldFault] = []
    remaining: Any = row
    for _ in range(_MAX_ROUNDS):
        try:
            return UsableFields(model.model_validate(remaining), tuple(faults))
        except ValidationError as error:
            found = [_build_fault(fault, remaining) for fault in _list_errors(error)]
        essential = [
            fault.problem
            for fault in found
            if any(path[: len(fault.path)] == fault.path for path in required)
        ]
        if essential:
            raise ConfigError("; ".join(essential))
        faults += found
        remaining = _without(remaining, [fault.path for fault in found])
    raise ConfigError("; ".join(fault.problem for fault in faults[:_MAX_ROUNDS]))


def _list_errors(error: ValidationError) -> Sequence[Mapping[str, Any]]:
    return error.errors(include_url=False, include_input=False)


def _build_fault(fault: Any, row: object) -> FieldFault:  # noqa: ANN401 - pydantic's TypedDict
    path: Path = tuple(fault["loc"])
    shown = ".".join(map(str, path))
    problem = show(f"{shown}: {describe_fault(fault)}" if path else describe_fault(fault))
    return FieldFault(_find_part(path, row, is_key=fault["type"] == _UNKNOWN_KEY), problem)


def _find_part(path: Path, row: object, *, is_key: bool) -> Path:
    """Return the path of the smallest part whose absence is allowed.

    This is the innermost item of a list on the path; else the innermost value that exists.
    """
    if is_key:
        return path
    values = row
    end, item_end = 0, 0
    for depth, key in enumerate(path, 1):
        if isinstance(values, Mapping) and key in values:
            values = values[key]
        elif isinstance(values, list) and isinstance(key, int) and key < len(values):
            values, item_end = values[key], depth
        else:
            break
        end = depth
    return path[: item_end or end or len(path)]


def _without(value: Any, paths: Sequence[Path]) -> Any:  # noqa: ANN401 - any JSON
    """Return a copy of a value without the parts at these paths."""
    leaving = {path[0] for path in paths if len(path) == 1}
    deeper: dict[str | int, list[Path]] = {}
    for path in paths:
        if len(path) > 1:
            deeper.setdefault(path[0], []).append(path[1:])
    if isinstance(value, Mapping):
        return {
            key: _without(item, deeper[key]) if key in deeper else item
            for key, item in value.items()
            if key not in leaving
        }
    return [
        _without(item, deeper[index]) if index in deeper else item
        for index, item in enumerate(value)
        if index not in leaving
    ]
