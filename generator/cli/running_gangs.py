"""Lists of gangs that run, from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from generator.cli.input_files import MAX_RUNNING_BYTES, read_input
from generator.objects.yaml_document import parse_document
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.wire import PodRequest, Tier
from topology.model.errors import ConfigError
from topology.model.validation import describe_validation
from topology.model.wire_model import DEFERRED


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
    source, raw = read_input(str(file), MAX_RUNNING_BYTES)
    document = parse_document(raw, source=source).value
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
