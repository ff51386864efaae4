"""Slurm's topology files, and the annotation that Slinky turns into Slurm's topology of a node.

- units: the switches of topology/tree and the blocks of topology/block
- config: topology.conf and topology.yaml
- reader: both files, read back as slurmctld reads them

Imports `topology`, and the names of padding from `hypernode`.
"""

from generator.outputs.slurm.config import (
    render_block_config,
    render_renamed,
    render_tree_config,
    render_yaml_config,
)
from generator.outputs.slurm.reader import (
    SlurmTopology,
    find_slurm_problem,
    parse_topology_conf,
    parse_topology_yaml,
)
from generator.outputs.slurm.units import (
    BlockLayout,
    SlurmBlock,
    SlurmSwitch,
    build_blocks,
    build_switches,
    is_other_type,
    is_slurm_name,
)

__all__ = [
    "BlockLayout",
    "SlurmBlock",
    "SlurmSwitch",
    "SlurmTopology",
    "build_blocks",
    "build_switches",
    "find_slurm_problem",
    "is_other_type",
    "is_slurm_name",
    "parse_topology_conf",
    "parse_topology_yaml",
    "render_block_config",
    "render_renamed",
    "render_tree_config",
    "render_yaml_config",
]
