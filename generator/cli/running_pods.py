"""Pods that run: those of a file or a cluster, and lists of gangs.

`where`, `describe`, `findings`, `place` and `compare` read them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
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

from generator.cli.options import PodOptions
from generator.kube.access import ClusterAccess
from generator.objects.pods import has_ended, list_gang_nodes, parse_gang_pod
from generator.objects.yaml_document import parse_document, parse_documents
from generator.placement.cluster.nodes import RunningGang, RunningPods
from generator.placement.wire import PodRequest, Tier
from generator.store.file_kinds import FileKind, expect_kind
from generator.store.local_files import read_input
from topology.model.errors import ConfigError, ParseError
from topology.model.validation import describe_validation
from topology.model.wire_model import DEFERRED

_MAX_BYTES: Final = 64 << 20
NodesByGang = Mapping[str, Collection[str]]


class LoadedPods(NamedTuple):
    """Pods that run, and the input that was skipped."""

    source: str
    """The name to show."""
    documents: tuple[Mapping[str, Any], ...] = ()
    """Objects; one may be a map from pods to nodes."""
    gangs: tuple[RunningGang, ...] | None = None
    """The key that a list of gangs has instead of objects."""
    problems: tuple[ParseError, ...] = ()

    def list_gang_nodes(self) -> NodesByGang:
        """Return the nodes of each gang that has not ended."""
        if self.gangs is not None:
            return {row.gang: {pod.node for pod in row.pods} for row in self.gangs}
        present = [document for document in self.documents if not has_ended(document)]
        return list_gang_nodes(filter(None, map(parse_gang_pod, present)))


def read_pods(given: PodOptions, cluster: ClusterAccess | None) -> LoadedPods | None:
    """Read the pods of a list of gangs, of a file, or of the cluster; None without any of them.

    Raises:
        ConfigError: the file cannot be read, or has no pods.
        KubeError: the pods of the cluster cannot be listed.
    """
    if given.running:
        return LoadedPods(str(given.running), gangs=read_running_gangs(given.running))
    if given.pods:
        with expect_kind(Path(given.pods), FileKind.PODS):
            return _read_pod_file(given.pods)
    if cluster is None:
        return None
    from generator.store.cluster_store import open_cluster
    from generator.store.kinds import WHOLE_PODS

    with open_cluster(cluster, os.environ) as store:
        return LoadedPods("the cluster", tuple(store.objects.read(WHOLE_PODS).values))


def _read_pod_file(file: str) -> LoadedPods:
    source, raw = read_input(file, _MAX_BYTES)
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
    return LoadedPods(source, tuple(documents), problems=tuple(problems))


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
    source, raw = read_input(str(file), _MAX_BYTES)
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
