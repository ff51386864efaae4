"""Slurm's topology files, and the annotation that Slinky turns into Slurm's topology of a node.

- units: the switches of topology/tree and the blocks of topology/block
- config: topology.conf and topology.yaml

Imports `topology`, and the names of padding from `hypernode`.
"""

from generator.outputs.slurm.config import (
    render_block_config,
    render_tree_config,
    render_yaml_config,
)
from generator.outputs.slurm.units import (
    BlockLayout,
    SlurmBlock,
    SlurmSwitch,
    build_blocks,
    build_switches,
    list_unusable_names,
)

__all__ = [
    "BlockLayout",
    "SlurmBlock",
    "SlurmSwitch",
    "build_blocks",
    "build_switches",
    "list_unusable_names",
    "render_block_config",
    "render_tree_config",
    "render_yaml_config",
]
