"""The formats in which a tree can be exported, and the settings of what is written."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

DEFAULT_NAMESPACE: Final = "toponaut"
"""The namespace of objects where no cluster says which."""
DEFAULT_PREFIX: Final = "topology.toponaut.io"
"""The prefix of the keys of labels."""


class ExportFormat(StrEnum):
    """The formats, by the name of the consumer."""

    HYPERNODES = "hypernodes"
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
    DOT = "dot"
    GRAPHML = "graphml"

    @property
    def is_text(self) -> bool:
        """Whether the format is the text of one file; else it is Kubernetes objects."""
        return self in _TEXT_FILES

    @property
    def file_name(self) -> str:
        """The name of the file that the reader of the format expects."""
        return _TEXT_FILES.get(self, f"{self}.yaml")


_TEXT_FILES: Final[Mapping[ExportFormat, str]] = MappingProxyType(
    {
        ExportFormat.SLURM_TREE: "topology.conf",
        ExportFormat.SLURM_BLOCK: "topology.conf",
        ExportFormat.SLURM_YAML: "topology.yaml",
        ExportFormat.TOPOGRAPH: "topograph.json",
        ExportFormat.DOT: "tree.dot",
        ExportFormat.GRAPHML: "tree.graphml",
    }
)


class LabelFamily(StrEnum):
    """Keys of another tool that are written beside Toponaut's own."""

    TOPOGRAPH = "topograph"
    """`fabric.topograph.run/tier-N`, where tier 0 is nearest the nodes; topograph 1.0."""
    NVIDIA = "nvidia"
    """`network.topology.nvidia.com/{leaf,spine,core}`; topograph before 1.0."""


MAX_FLAVOR_LABELS: Final = 8


class FlavorSpec(NamedTuple):
    """A ResourceFlavor of Kueue over the nodes with some labels."""

    name: str
    node_labels: Mapping[str, str]
    """The labels that select its nodes; Kueue wants at least one label beside a topology."""


class ExportSettings(NamedTuple):
    """What an admin chooses of the written objects."""

    name: str = "toponaut"
    """The name of objects of which there is one."""
    namespace: str = DEFAULT_NAMESPACE
    """The namespace of objects that have one."""
    label_prefix: str = DEFAULT_PREFIX
    label_families: tuple[LabelFamily, ...] = ()
    """Keys of other tools that are written as well."""
    is_padded: bool = True
    """Whether numbers in the values of labels get four digits."""
    flavor: FlavorSpec | None = None
    """Kueue's ResourceFlavor; None writes none."""
    has_aliases: bool = True
    """Whether KAI's Topology names its levels by the tiers, which KAI before 0.17 refuses."""
    kai_topology: str = ""
    """The Topology of KAI that Grove's binding names; empty: `name`."""
