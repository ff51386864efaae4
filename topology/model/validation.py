"""What pydantic finds wrong with a document, in the words of somebody who wrote YAML. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from topology.model.errors import show

if TYPE_CHECKING:
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
"""Texts by pydantic's error type; its own text for the others."""


def check_object(document: object, kind: str, version: str) -> Mapping[str, Any] | str:
    """Return a document that is an object of a kind and version, else why it is none."""
    if not isinstance(document, Mapping):
        return f"expected a {kind} object, got {type(document).__name__}"
    found = document.get("kind"), document.get("apiVersion")
    if found == (kind, version):
        return document
    if found == (None, None):
        return f"expected {kind} of {version}, got an object without kind and apiVersion"
    seen = show("{} of {}".format(*found))
    return f"expected {kind} of {version}, got {seen}"


def describe_fault(fault: ErrorDetails) -> str:
    """Return what a value should have been, or why it is refused."""
    kind, context = fault["type"], fault.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "too_short":
        return f"expected at least {context['min_length']} of them"
    return _EXPECTED.get(kind, fault["msg"].replace("Input should be", "expected"))


def describe_validation(error: ValidationError, limit: int = 5) -> list[str]:
    """Return one `path: problem` line per fault of a pydantic validation, at most `limit`.

    A list that is too short because its items were refused has no fault of its own.
    """
    found = error.errors(include_url=False, include_input=False)
    refused = {fault["loc"][:depth] for fault in found for depth in range(len(fault["loc"]))}
    faults = [one for one in found if one["type"] != "too_short" or one["loc"] not in refused]
    lines = [_line(fault) for fault in faults[:limit]]
    more = len(faults) - limit
    return [*lines, f"and {more} more"] if more > 0 else lines


def _line(fault: ErrorDetails) -> str:
    path = ".".join(str(part) for part in fault["loc"])
    return show(f"{path}: {describe_fault(fault)}" if path else describe_fault(fault))
