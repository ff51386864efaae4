"""The formats in which a tree can be exported, and the settings of what is written."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from generator.outputs.kueue import FlavorSpec
from generator.outputs.node_labels import DEFAULT_PREFIX, LabelFamily

DEFAULT_NAMESPACE: Final = "toponaut"
"""The namespace of objects where no cluster says which."""


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
