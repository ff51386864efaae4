"""Placement questions from files: the request, and the gangs that run already."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from generator.inputs import read_bytes
from generator.placement.capacity import RunningGang, RunningPods
from generator.placement.request import PlacementRequest, parse_request
from generator.store.documents import parse_document
from topology.errors import ConfigError, ParseError, PlacementRequestError, show
from topology.tree import API_VERSION
from topology.validation import describe_validation

KIND: Final = "PlacementRequest"
MAX_REQUEST_BYTES: Final = 4 << 20
MAX_RUNNING_BYTES: Final = 64 << 20
_STDIN: Final = "-"


def read_request(file: str, *, preset: str | None = None) -> PlacementRequest:
    """Read the request in a YAML or JSON file, or on stdin where the name is `-`.

    Args:
        file: its name.
        preset: takes the place of the request's own, where given.

    Raises:
        ConfigError: no request of ours is in it; says the file, and the field that is wrong.
    """
    source, document = _read_document(file, MAX_REQUEST_BYTES)
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected a {KIND} of {API_VERSION}")
    _check_kind(document, source)
    spec = document.get("spec")
    if preset is not None and isinstance(spec, dict):
        document = document | {"spec": spec | {"preset": preset}}
    try:
        return parse_request(document)
    except PlacementRequestError as error:
        raise ConfigError(f"{source}: {error}") from error


def _check_kind(document: dict[str, Any], source: str) -> None:
    """Tell other systems' objects, and other versions of ours, from malformed requests."""
    version, kind = document.get("apiVersion"), document.get("kind")
    if (version, kind) == (API_VERSION, KIND):
        return
    if kind == KIND or kind is None:
        raise ConfigError(
            f"{source}: apiVersion: expected kind {KIND} of {API_VERSION}, "
            f"got {show(str(kind))} of {show(str(version))}"
        )
    raise ConfigError(
        f"{source}: kind: {show(str(kind))} of {show(str(version))} is not available yet; "
        f"ask with a {KIND} of {API_VERSION}"
    )


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Name = Annotated[str, Field(min_length=1)]
Natural = Annotated[int, Field(ge=0, strict=True)]


class _PodsRow(_Row):
    node: Name
    request: dict[Name, Natural] = {"slots": 1}
    count: Annotated[int, Field(ge=1, strict=True)] = 1
    group: Name | None = None


class _GangRow(_Row):
    gang: Name
    priority: int = 0
    preemptible: bool = True
    min: Natural | None = None
    pods: tuple[_PodsRow, ...]


class _Running(_Row):
    running: tuple[_GangRow, ...]


_EITHER: Final = TypeAdapter(tuple[_GangRow, ...])


def read_running(file: str) -> tuple[RunningGang, ...]:
    """Read the gangs that run: a list of them, or `running: […]`.

    Raises:
        ConfigError: it is no such list; says the file, and the fields that are wrong.
    """
    source, document = _read_document(file, MAX_RUNNING_BYTES)
    try:
        if isinstance(document, dict):
            rows = _Running.model_validate(document).running
        else:
            rows = _EITHER.validate_python(document)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(describe_validation(error))}") from error
    return tuple(
        RunningGang(
            gang=row.gang,
            pods=tuple(
                RunningPods(pods.node, pods.request, pods.count, pods.group) for pods in row.pods
            ),
            priority=row.priority,
            preemptible=row.preemptible,
            min=row.min,
        )
        for row in rows
    )


def _read_document(file: str, limit: int) -> tuple[str, object]:
    """Return the name to show and the only document of a file."""
    source = "stdin" if file == _STDIN else show(file, 1024)
    raw = _read_stdin(limit) if file == _STDIN else read_bytes(Path(file), limit)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    return source, parse_document(raw, source=source).value


def _read_stdin(limit: int) -> bytes | ParseError:
    raw = sys.stdin.buffer.read(limit + 1)
    return ParseError(f"larger than {limit} bytes", source="stdin") if len(raw) > limit else raw
