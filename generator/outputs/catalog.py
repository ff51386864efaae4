"""Each format in one row: how it renders a tree, of which objects it consists, what it can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.resources import CONFIG_MAPS, HYPERNODES, NODES, Resource
from generator.outputs import grove, kai, koordinator, kueue, nfd
from generator.outputs.formats import ExportFormat, ExportSettings
from generator.outputs.graph import (
    render_dot,
    render_graphml,
    render_text_config_map,
    render_topograph,
    render_tree_config_map,
)
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.lint import find_structure_problems
from generator.outputs.hypernode.model import render_manifest
from generator.outputs.node_labels import render_label_objects
from generator.outputs.owned_object import OwnedObject, is_object_name, render_object
from generator.outputs.slinky import render_slinky_objects
from generator.outputs.slurm import (
    SlurmTopology,
    build_blocks,
    build_switches,
    find_slurm_problem,
    is_slurm_name,
    render_block_config,
    render_renamed,
    render_tree_config,
    render_yaml_config,
)
from topology.model.errors import ConfigError, show
from topology.model.tree import TopologyTree, without_nodes

_MAX_MESSAGE: Final = 400
Content = tuple[OwnedObject, ...] | str
"""Kubernetes objects, or the text of one file."""


class Export(NamedTuple):
    """A rendered tree: Kubernetes objects, or the text of one file."""

    file_name: str
    documents: tuple[dict[str, Any], ...] = ()
    text: str | None = None
    """None for Kubernetes objects."""
    left_out: tuple[str, ...] = ()
    """Nodes whose names the consumer cannot hold."""

    @property
    def is_empty(self) -> bool:
        """Whether the tree has nothing to write in this format: existing objects must stay."""
        return self.text is None and not self.documents


def _is_slinky_node(name: str) -> bool:
    return is_object_name(name) and is_slurm_name(name)


def _render_hypernodes(tree: TopologyTree, _settings: ExportSettings) -> Content:
    return tuple(
        OwnedObject(
            HYPERNODES,
            row.name,
            {"spec": render_manifest(row)["spec"]},
            labels=dict(row.labels),
        )
        for row in render_hypernodes(tree)
    )


def _find_hypernode_problem(tree: TopologyTree) -> str:
    rows = render_hypernodes(tree)
    names = (row.name for row in rows if not is_object_name(row.name))
    unusable = (f"no HyperNode can have the name {name}" for name in names)
    return next(chain(find_structure_problems(rows), unusable), "")


def _find_switch_problem(tree: TopologyTree) -> str:
    return find_slurm_problem(SlurmTopology(build_switches(tree)))


def _find_block_problem(tree: TopologyTree) -> str:
    layout = build_blocks(tree)
    return find_slurm_problem(SlurmTopology((), layout.blocks, layout.sizes))


def _find_unit_problem(tree: TopologyTree) -> str:
    return _find_switch_problem(tree) or _find_block_problem(tree)


def _render_slurm_tree(tree: TopologyTree, _settings: ExportSettings) -> Content:
    return render_tree_config(build_switches(tree)) + render_renamed(tree)


def _render_slurm_block(tree: TopologyTree, _settings: ExportSettings) -> Content:
    return render_block_config(build_blocks(tree)) + render_renamed(tree)


def _render_slurm_yaml(tree: TopologyTree, _settings: ExportSettings) -> Content:
    return render_yaml_config(build_switches(tree), build_blocks(tree)) + render_renamed(tree)


class FormatRow(NamedTuple):
    """A format."""

    render: Callable[[TopologyTree, ExportSettings], Content]
    """Raises ConfigError if the names of the tiers, or a setting, cannot be in this format."""
    kinds: tuple[Resource, ...] = ()
    """The kinds of its objects, in the order in which they are created."""
    can_hold: Callable[[str], bool] | None = None
    """Whether the format can hold the name of a node; None: it holds any, or names no node."""
    has_unplaced: bool = True
    """Whether the format also names nodes without a place."""
    needs: ExportFormat | None = None
    """The format whose objects its own ones name."""
    find_problem: Callable[[TopologyTree], str] | None = None
    """Returns why its reader would refuse the tree, or not start, because of names of domains;
    empty if it reads the tree. None: its reader takes any tree."""

    @property
    def is_drawing(self) -> bool:
        """Whether the format is a picture of the tree for people, without kinds of objects."""
        return not self.kinds


FORMATS: Final[Mapping[ExportFormat, FormatRow]] = MappingProxyType(
    {
        ExportFormat.HYPERNODES: FormatRow(
            _render_hypernodes,
            (HYPERNODES,),
            is_object_name,
            has_unplaced=False,
            find_problem=_find_hypernode_problem,
        ),
        ExportFormat.LABELS: FormatRow(render_label_objects, (NODES,), is_object_name),
        ExportFormat.KUEUE: FormatRow(
            kueue.render_kueue_objects,
            (kueue.TOPOLOGIES, kueue.RESOURCE_FLAVORS),
            needs=ExportFormat.LABELS,
        ),
        ExportFormat.KAI: FormatRow(
            kai.render_kai_objects, (kai.TOPOLOGIES,), needs=ExportFormat.LABELS
        ),
        ExportFormat.KOORDINATOR: FormatRow(
            koordinator.render_koordinator_objects,
            (koordinator.CLUSTER_NETWORK_TOPOLOGIES,),
            needs=ExportFormat.LABELS,
        ),
        ExportFormat.GROVE: FormatRow(
            grove.render_grove_objects,
            (grove.CLUSTER_TOPOLOGY_BINDINGS,),
            needs=ExportFormat.KAI,
        ),
        ExportFormat.SLURM_TREE: FormatRow(
            _render_slurm_tree, (CONFIG_MAPS,), is_slurm_name, find_problem=_find_switch_problem
        ),
        ExportFormat.SLURM_BLOCK: FormatRow(
            _render_slurm_block, (CONFIG_MAPS,), is_slurm_name, find_problem=_find_block_problem
        ),
        ExportFormat.SLURM_YAML: FormatRow(
            _render_slurm_yaml, (CONFIG_MAPS,), is_slurm_name, find_problem=_find_unit_problem
        ),
        ExportFormat.SLINKY: FormatRow(
            render_slinky_objects, (NODES,), _is_slinky_node, has_unplaced=False
        ),
        ExportFormat.NFD: FormatRow(
            nfd.render_nfd_objects, (nfd.NODE_FEATURES,), nfd.is_feature_node, has_unplaced=False
        ),
        ExportFormat.CONFIG_MAP: FormatRow(render_tree_config_map, (CONFIG_MAPS,)),
        ExportFormat.TOPOGRAPH: FormatRow(render_topograph, (CONFIG_MAPS,)),
        ExportFormat.DOT: FormatRow(render_dot),
        ExportFormat.GRAPHML: FormatRow(render_graphml),
    }
)


def render_export(tree: TopologyTree, chosen: ExportFormat, settings: ExportSettings) -> Export:
    """Return a tree in a format, without the nodes whose names its reader cannot hold.

    Hosts of a fabric may have any name. If all nodes of a domain are left out, the output does not
    name the domain. Only drawings show a tree in which no node has a place.

    Raises:
        ConfigError: the names of the tiers, or a setting, cannot be written in this format, or its
            reader would refuse the tree.
    """
    row = FORMATS[chosen]
    named = tree.all_nodes if row.has_unplaced else tree.nodes
    left_out = tuple(node for node in named if row.can_hold and not row.can_hold(node))
    tree = without_nodes(tree, left_out)
    export = Export(chosen.file_name, left_out=left_out)
    if not tree.nodes and not row.is_drawing:
        return export
    problem = row.find_problem(tree) if row.find_problem else ""
    if problem:
        raise ConfigError(f"{chosen} cannot show this tree: {show(problem, _MAX_MESSAGE)}")
    content = row.render(tree, settings)
    if isinstance(content, str):
        return export._replace(text=content)
    return export._replace(documents=tuple(map(render_object, content)))


def wrap_text(export: Export, settings: ExportSettings) -> Export:
    """Return an export as Kubernetes objects: a text becomes a ConfigMap.

    Raises:
        ConfigError: the text is too large for a ConfigMap.
    """
    if export.text is None:
        return export
    row = render_text_config_map(export.text, key=export.file_name, settings=settings)
    return export._replace(documents=(render_object(row),))
