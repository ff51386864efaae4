"""Input from a file or stdin: its bytes, and lists of running gangs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from generator.objects.yaml_document import parse_document, parse_documents
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.wire import PodRequest, Tier
from generator.store.local_files import read_whole_file
from topology.model.errors import ConfigError, ParseError, show
from topology.model.validation import describe_validation
from topology.model.wire_model import DEFERRED

MAX_REQUEST_BYTES: Final = 4 << 20
MAX_RUNNING_BYTES: Final = 64 << 20
_STDIN: Final = "-"


class _RunningModel(BaseModel):
    model_config = ConfigDict(**DEFERRED, extra="forbid", frozen=True)


Name = Annotated[str, Field(min_length=1)]
Natural = Annotated[int, Field(ge=0, strict=True)]


class _PodsRow(_RunningModel):
    node: Name
    request: PodRequest = {"slots": 1}
    count: Annotated[int, Field(ge=1, strict=True)] | None = None
    group: Name | None = None
    indices: tuple[Natural, ...] = ()

    @field_validator("indices")
    @classmethod
    def _check_indices(cls, indices: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        count = info.data.get("count")
        if indices and count not in {None, len(indices)}:
            raise ValueError(f"expected {count}, got {len(indices)}")
        return indices

    def to_running_pods(self) -> RunningPods:
        """Return the pods: `count` of them, else one per index, else one."""
        count = self.count or len(self.indices) or 1
        return RunningPods(self.node, self.request, count, self.group, self.indices)


class _GangRow(_RunningModel):
    gang: Name
    priority: int = 0
    preemptible: bool = True
    min: Natural | None = None
    exclusive: Tier | None = None
    pods: tuple[_PodsRow, ...]


class _RunningDocument(_RunningModel):
    running: tuple[_GangRow, ...]


_GANG_LIST: Final = TypeAdapter(tuple[_GangRow, ...], config=DEFERRED)


def read_running_gangs(file: Path) -> tuple[RunningGang, ...]:
    """Read the running gangs: a list, or an object `running: […]`.

    Raises:
        ConfigError: the file holds no such list; the message names the file and the wrong fields.
    """
    source, document = _read_document(str(file), MAX_RUNNING_BYTES)
    try:
        if isinstance(document, dict):
            rows = _RunningDocument.model_validate(document).running
        else:
            rows = _GANG_LIST.validate_python(document)
    except ValidationError as error:
        raise ConfigError(f"{source}: {'; '.join(describe_validation(error))}") from error
    return tuple(
        RunningGang(
            gang=row.gang,
            pods=tuple(pods.to_running_pods() for pods in row.pods),
            priority=row.priority,
            preemptible=row.preemptible,
            min_pods=row.min,
            exclusive=row.exclusive,
        )
        for row in rows
    )


def _read_document(file: str, limit: int) -> tuple[str, object]:
    """Return the name to show, and the only document in a file."""
    source, raw = read_input(file, limit)
    return source, parse_document(raw, source=source).value


class LoadedPods(NamedTuple):
    """The objects in a file of pods, and those that cannot be read."""

    source: str
    """The name to show."""
    documents: tuple[Mapping[str, Any], ...]
    problems: tuple[ParseError, ...]


def read_pods(file: str) -> LoadedPods:
    """Read the objects in a file of pods; `-` is stdin.

    Raises:
        ConfigError: the file cannot be read, or holds no object.
    """
    source, raw = read_input(file, MAX_RUNNING_BYTES)
    documents: list[Mapping[str, Any]] = []
    problems: list[ParseError] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            problems.append(document)
        elif isinstance(document.value, dict):
            documents.append(document.value)
        else:
            problems.append(ParseError("expected pods", source=source, line=document.line))
    if not documents:
        raise ConfigError(str(problems[0]) if problems else f"{source}: expected pods")
    return LoadedPods(source, tuple(documents), tuple(problems))


def read_input(file: str, limit: int) -> tuple[str, bytes]:
    """Return the name to show and the bytes of a file, or of stdin if its name is `-`.

    Raises:
        ConfigError: the file cannot be read, or is larger than the limit.
    """
    source = "stdin" if file == _STDIN else show(file, 1024)
    raw = _read_stdin(limit) if file == _STDIN else read_whole_file(Path(file), limit)
    if isinstance(raw, ParseError):
        raise ConfigError(str(raw))
    return source, raw


def _read_stdin(limit: int) -> bytes | ParseError:
    try:
        raw = sys.stdin.buffer.read(limit + 1)
    except OSError as error:  # it is closed, or a folder
        return ParseError(f"cannot be read: {error.strerror}", source="stdin")
    return ParseError(f"larger than {limit} bytes", source="stdin") if len(raw) > limit else raw
