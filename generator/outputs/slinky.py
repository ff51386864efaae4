"""Renders Slinky's annotation: the units of each node in the topologies of topology.yaml.

A node without a known place has no annotation; where it had one, the annotation is removed, and
Slinky clears the node's topology.

Source: slurm-operator 1.1, docs/usage/topology.md: `topo-switch:s1,topo-block:b1`.
"""

from __future__ import annotations

from typing import Final

from generator.kube.resources import NODES
from generator.outputs.formats import ExportSettings
from generator.outputs.owned_object import OwnedObject
from generator.outputs.slurm import BLOCK_TOPOLOGY, TREE_TOPOLOGY, build_blocks, build_switches
from topology.model.tree import TopologyTree

ANNOTATION: Final = "topology.slinky.slurm.net/spec"


def render_slinky_objects(tree: TopologyTree, _settings: ExportSettings) -> tuple[OwnedObject, ...]:
    """Return the annotation of every placed node, as parts of Node objects in tree order."""
    switch_of = {node: row.name for row in build_switches(tree) for node in row.nodes}
    block_of = {node: row.name for row in build_blocks(tree).blocks for node in row.nodes}
    rows = []
    for node in tree.nodes:
        if node in switch_of:
            spec = f"{TREE_TOPOLOGY}:{switch_of[node]},{BLOCK_TOPOLOGY}:{block_of[node]}"
            rows.append(OwnedObject(NODES, node, annotations={ANNOTATION: spec}))
    return tuple(rows)
