"""The outputs in the Fabric object: what the tree is written as, and the state of each output.

Every output follows the tree that was decided last, so the change budget, the approval and the wait
before a write are those of the tree and not of one output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints, model_validator

from generator.objects.plane_config import PlaneName
from generator.outputs.formats import (
    DEFAULT_PREFIX,
    MAX_FLAVOR_LABELS,
    ExportFormat,
    ExportSettings,
    FlavorSpec,
    LabelFamily,
)
from topology.model.errors import ConfigError
from topology.model.wire_model import Timestamp, WireModel
from topology.planes.policy import COMPUTE

MAX_OUTPUTS: Final = 16
_DEFAULT_NAME: Final = "toponaut"
_MAX_MESSAGE: Final = 1024
_NAME_PATTERN: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"

ObjectName = Annotated[str, StringConstraints(pattern=_NAME_PATTERN, max_length=63)]
LabelValue = Annotated[str, StringConstraints(max_length=63)]
Natural = Annotated[int, Field(ge=0)]


class OutputType(StrEnum):
    """The kind of object that a tree is written as."""

    HYPERNODE = "hypernode"
    LABELS = "labels"
    KUEUE = "kueue"
    KAI = "kai"
    KOORDINATOR = "koordinator"
    GROVE = "grove"
    SLURM_TREE = "slurm-tree"
    SLURM_BLOCK = "slurm-block"
    SLURM_YAML = "slurm-yaml"
    SLINKY = "slinky"
    NFD = "nfd"
    CONFIG_MAP = "configmap"
    TOPOGRAPH = "topograph"

    @property
    def export_format(self) -> ExportFormat:
        """The format that renders this output."""
        return ExportFormat.HYPERNODES if self is OutputType.HYPERNODE else ExportFormat(self.value)


class Flavor(WireModel):
    """A ResourceFlavor of Kueue that uses the Topology."""

    name: ObjectName
    node_labels: Annotated[dict[str, LabelValue], Field(min_length=1, max_length=MAX_FLAVOR_LABELS)]
    """The labels that its nodes have."""


_FIELDS_OF: Final[Mapping[str, frozenset[OutputType]]] = {
    "label_prefix": frozenset({OutputType.LABELS}),
    "compat": frozenset({OutputType.LABELS}),
    "padded": frozenset({OutputType.LABELS}),
    "flavor": frozenset({OutputType.KUEUE}),
    "aliases": frozenset({OutputType.KAI}),
    "name": frozenset(
        {
            OutputType.KUEUE,
            OutputType.KAI,
            OutputType.GROVE,
            OutputType.SLURM_TREE,
            OutputType.SLURM_BLOCK,
            OutputType.SLURM_YAML,
            OutputType.CONFIG_MAP,
            OutputType.TOPOGRAPH,
        }
    ),
}
"""The outputs that have a field; every output has those that are not listed."""


class Output(WireModel):
    """One kind of objects that a tree is written as."""

    type: OutputType
    plane: PlaneName = COMPUTE
    """The plane of the tree. All outputs have the same."""
    name: ObjectName | None = None
    """The name of an object of which there is one; absent: `toponaut`, with the type for Slurm."""
    label_prefix: ObjectName | None = None
    """The prefix of the keys of labels; absent: `topology.toponaut.io`."""
    compat: Annotated[tuple[LabelFamily, ...], Field(max_length=len(LabelFamily))] = ()
    """Tools whose label keys are written as well."""
    padded: Annotated[bool, Field(strict=True)] | None = None
    """Whether numbers in the values of labels get four digits; absent: yes."""
    flavor: Flavor | None = None
    aliases: Annotated[bool, Field(strict=True)] | None = None
    """Whether KAI's Topology names its levels by the tiers; absent: yes."""

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        for field, types in _FIELDS_OF.items():
            if field in self.model_fields_set and self.type not in types:
                alias = type(self).model_fields[field].alias or field
                raise ValueError(f"an output {self.type} has no field {alias}")
        return self


class OutputState(StrEnum):
    """How far an output agrees with the tree; `status.outputs` of the Fabric object has it."""

    WRITTEN = "Written"
    """Every object agrees with the tree."""
    PENDING = "Pending"
    """Some objects are not written yet: they wait for their turn, or for gangs that run."""
    CONFLICT = "Conflict"
    """Some objects, or fields of them, belong to another writer."""
    REFUSED = "Refused"
    """The API server refuses some objects, or they cannot be rendered."""
    NOT_SERVED = "NotServed"
    """The cluster does not serve the kind: its CRD is missing."""
    UNKNOWN = "Unknown"
    """The objects could not be read yet."""


class OutputStatus(WireModel):
    """The state of one output after the last round."""

    type: OutputType
    state: OutputState
    objects: Natural = 0
    """Objects, or nodes with labels or annotations, that agree with the tree."""
    pending: Natural = 0
    """Objects that are still to be written."""
    deferred: Natural = 0
    """Nodes whose labels change when their gangs have ended."""
    refused: Natural = 0
    """Objects that another writer owns, or that the API server refuses."""
    last_write: Timestamp | None = None
    """When an object of this output was written last; absent: not since its row exists."""
    message: Annotated[str, StringConstraints(max_length=_MAX_MESSAGE)] = ""


class LabelKey(WireModel):
    """The label key of a tier."""

    tier: Annotated[int, Field(ge=1, le=16)]
    key: Annotated[str, StringConstraints(max_length=63)]


def check_outputs(outputs: Sequence[Output]) -> None:
    """Refuse outputs that contradict each other.

    Raises:
        ConfigError: two outputs are of different planes.
    """
    planes = {output.plane for output in outputs}
    if len(planes) > 1:
        raise ConfigError(f"outputs have one plane, not {len(planes)}: {', '.join(sorted(planes))}")


def build_export_settings(
    output: Output, outputs: Sequence[Output], *, namespace: str
) -> ExportSettings:
    """Return the settings with which an output is rendered.

    Args:
        output: the output to render.
        outputs: all outputs. The output `labels` gives the prefix of the label keys, and the output
            `kai` the name of KAI's topology.
        namespace: the namespace of the objects, except cluster-wide ones.
    """
    by_type = {row.type: row for row in outputs}
    labels, kai = by_type.get(OutputType.LABELS), by_type.get(OutputType.KAI)
    flavor = output.flavor
    # Texts are ConfigMaps of one namespace.
    suffix = f"-{output.type}" if output.type.export_format.is_text else ""
    return ExportSettings(
        name=output.name or f"{_DEFAULT_NAME}{suffix}",
        namespace=namespace,
        label_prefix=(labels.label_prefix if labels is not None else None) or DEFAULT_PREFIX,
        label_families=output.compat,
        is_padded=output.padded is not False,
        flavor=None if flavor is None else FlavorSpec(flavor.name, flavor.node_labels),
        has_aliases=output.aliases is not False,
        kai_topology=(kai.name if kai is not None else None) or _DEFAULT_NAME,
    )
