"""Renders Slurm's topology.conf, as a tree or as blocks, and topology.yaml with both.

Source: topology.conf(5) and topology.yaml(5). Slurm reads topology.yaml since 25.05 and then
ignores topology.conf. Long lists of nodes stay on one line: Slurm has no limit there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import yaml

from generator.outputs.slurm.units import (
    BlockLayout,
    SlurmSwitch,
    is_other_type,
    list_renamed_domains,
)
from topology.model.errors import show
from topology.model.name_ranges import fold_names
from topology.model.tree import TopologyTree

TREE_TOPOLOGY: Final = "toponaut-tree"
BLOCK_TOPOLOGY: Final = "toponaut-block"
"""Names of the topologies in topology.yaml; a node's own topology refers to them."""
_HEADER: Final = "# Written by toponaut export: changes by hand are lost.\n"
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_MAX_WIDTH: Final = 1 << 20


def render_tree_config(switches: Sequence[SlurmSwitch]) -> str:
    """Return topology.conf for TopologyPlugin=topology/tree; an empty fabric has no switch."""
    return _HEADER + "".join(f"{_render_switch(switch)}\n" for switch in switches)


def _render_switch(switch: SlurmSwitch) -> str:
    if switch.nodes:
        return f"SwitchName={switch.name} Nodes={fold_names(switch.nodes)}"
    return f"SwitchName={switch.name} Switches={fold_names(switch.switches)}"


def render_block_config(layout: BlockLayout) -> str:
    """Return topology.conf for TopologyPlugin=topology/block."""
    lines = [f"BlockName={block.name} Nodes={fold_names(block.nodes)}" for block in layout.blocks]
    if layout.sizes:
        lines.append(f"BlockSizes={','.join(map(str, layout.sizes))}")
    if layout.left_out:
        lines.insert(
            0, f"# No block, because their place is unknown: {fold_names(layout.left_out)}"
        )
    return _HEADER + "".join(f"{line}\n" for line in lines)


def render_yaml_config(switches: Sequence[SlurmSwitch], layout: BlockLayout) -> str:
    """Return topology.yaml with a tree, which is the default, and with blocks."""
    topologies: list[dict[str, Any]] = [
        {
            "topology": TREE_TOPOLOGY,
            "cluster_default": True,
            "tree": {"switches": [_build_switch_row(switch) for switch in switches]},
        }
    ]
    if layout.blocks:
        blocks = [
            {"block": block.name, "nodes": _fold_as_text(block.nodes)} for block in layout.blocks
        ]
        topologies.append(
            {
                "topology": BLOCK_TOPOLOGY,
                "cluster_default": False,
                "block": {"block_sizes": [*layout.sizes], "blocks": blocks},
            }
        )
    body = yaml.dump(topologies, Dumper=_DUMPER, sort_keys=False, width=_MAX_WIDTH)
    return f"---\n{_HEADER}{body}"


def render_renamed(tree: TopologyTree) -> str:
    """Return a comment for each domain whose switch or block has another name."""
    rows = list_renamed_domains(tree)
    return "".join(f"# {show(name)} is named {renamed} here\n" for name, renamed in rows)


def _build_switch_row(switch: SlurmSwitch) -> dict[str, str]:
    if switch.nodes:
        return {"switch": switch.name, "nodes": _fold_as_text(switch.nodes)}
    return {"switch": switch.name, "children": _fold_as_text(switch.switches)}


def _fold_as_text(names: Sequence[str]) -> str:
    """Return names as a list that Slurm cannot take for a number, a boolean or null.

    A node keeps its name. hostlist.c skips separators at the end of a list.
    """
    folded = fold_names(names)
    return f"{folded}," if is_other_type(folded) else folded
