"""Validation errors in plain words for the author of a YAML or JSON document. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from topology.model.errors import show

if TYPE_CHECKING:
    import msgspec
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_EXPECTED: Final = {
    "missing": "is missing",
    "extra_forbidden": "is not a known field",
    "string_type": "expected a text",
    "int_type": "expected an integer",
    "int_from_float": "expected an integer",
    "float_type": "expected a number",
    "bool_type": "expected true or false",
    "list_type": "expected a list",
    "tuple_type": "expected a list",
    "dict_type": "expected a mapping",
    "model_type": "expected a mapping",
    "mapping_type": "expected a mapping",
}
"""Text by pydantic's error type; other types have pydantic's own text."""

_REFUSAL: Final = re.compile(r"(.*?)(?: - at `(?:key` in `)?\$\.?(.*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_WRONG_TYPE: Final = re.compile(r"Expected `(\w+)(?: \| null)?`, got `.*`")
_WRONG_LENGTH: Final = re.compile(r"Expected `(str|array)(?: \| null)?` of length (.*)")
_TYPES: Final = {
    "str": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
}
"""Words by msgspec's names of types."""


def check_object(document: object, kind: str, version: str) -> Mapping[str, Any] | str:
    """Return the document if it has the kind and version, else the problem as text."""
    if not isinstance(document, Mapping):
        return f"expected a {kind} object, got {type(document).__name__}"
    kind_and_version = document.get("kind"), document.get("apiVersion")
    if kind_and_version == (kind, version):
        return document
    if kind_and_version == (None, None):
        return f"expected {kind} of {version}, got an object without kind and apiVersion"
    shown_kind = show("{} of {}".format(*kind_and_version))
    return f"expected {kind} of {version}, got {shown_kind}"


def describe_fault(fault: ErrorDetails) -> str:
    """Return a sentence that says which value is expected, or why the value is refused."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "too_short":
        minimum = context["min_length"]
        return f"expected at least {minimum} item{'' if minimum == 1 else 's'}"
    return _EXPECTED.get(kind, fault["msg"].replace("Input should be", "expected"))


def describe_validation(error: ValidationError, limit: int = 5) -> list[str]:
    """Return one `path: problem` line per fault of a pydantic validation, at most `limit`.

    A list that is too short only because its items were refused gets no line.
    """
    details = error.errors(include_url=False, include_input=False)
    refused = {fault["loc"][:depth] for fault in details for depth in range(len(fault["loc"]))}
    faults = [
        fault for fault in details if fault["type"] != "too_short" or fault["loc"] not in refused
    ]
    lines = [_line(fault) for fault in faults[:limit]]
    more = len(faults) - limit
    return [*lines, f"and {more} more"] if more > 0 else lines


def _line(fault: ErrorDetails) -> str:
    path = ".".join(str(part) for part in fault["loc"])
    return show(f"{path}: {describe_fault(fault)}" if path else describe_fault(fault))


def describe_refusal(error: msgspec.ValidationError) -> str:
    """Return the `path: problem` line of the fault at which msgspec stopped."""
    problem, place = str(error), ""
    if found := _REFUSAL.fullmatch(problem):
        problem, place = found[1], (found[2] or "").replace("[", ".").replace("]", "")
    field = _MISSING.fullmatch(problem) or _UNKNOWN.fullmatch(problem)
    if field:
        place = f"{place}.{field[1]}".removeprefix(".")
        problem = "is missing" if field.re is _MISSING else "is not a known field"
    elif wrong := _WRONG_TYPE.fullmatch(problem):
        problem = f"expected {_TYPES.get(wrong[1], wrong[1])}"
    elif wrong := _WRONG_LENGTH.fullmatch(problem):
        items = "characters" if wrong[1] == "str" else "items"
        problem = f"expected {wrong[2].replace('<=', 'at most').replace('>=', 'at least')} {items}"
    elif problem.startswith("Expected `"):
        problem = problem.replace("Expected", "expected").replace(" | null", "").replace("`", "")
        problem = problem.replace("expected int <=", "expected less than or equal to")
        problem = problem.replace("expected int >=", "expected greater than or equal to")
        problem = problem.replace("expected int <", "expected less than")
    else:
        problem = problem.replace("Invalid enum value", "expected one of the known values, got")
    return show(f"{place}: {problem}" if place else problem)
