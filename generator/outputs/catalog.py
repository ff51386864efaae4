"""How a tree is rendered in each of its formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.outputs.formats import ExportFormat, ExportSettings
from generator.outputs.graph import (
    render_dot,
    render_graphml,
    render_text_config_map,
    render_topograph,
    render_tree_config_map,
)
from generator.outputs.grove import render_grove_objects
from generator.outputs.hypernode.forest import render_hypernodes
from generator.outputs.hypernode.model import render_manifest
from generator.outputs.kai import render_kai_objects
from generator.outputs.koordinator import render_koordinator_objects
from generator.outputs.kueue import render_kueue_objects
from generator.outputs.nfd import is_feature_node, render_nfd_objects
from generator.outputs.node_labels import (
    build_tier_keys,
    list_label_keys,
    render_label_objects,
)
from generator.outputs.owned_object import OwnedObject, is_object_name, render_object
from generator.outputs.slinky import render_slinky_objects
from generator.outputs.slurm import (
    build_blocks,
    build_switches,
    is_slurm_name,
    render_block_config,
    render_renamed,
    render_tree_config,
    render_yaml_config,
)
from topology.model.tree import TopologyTree, all_nodes, without_nodes

Objects = tuple[OwnedObject, ...]


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
        """Whether the tree has nothing to write in this format: what exists must stay."""
        return self.text is None and not self.documents


_FILE_NAMES: Final[Mapping[ExportFormat, str]] = MappingProxyType(
    {
        ExportFormat.SLURM_TREE: "topology.conf",
        ExportFormat.SLURM_BLOCK: "topology.conf",
        ExportFormat.SLURM_YAML: "topology.yaml",
        ExportFormat.TOPOGRAPH: "topograph.json",
        ExportFormat.DOT: "tree.dot",
        ExportFormat.GRAPHML: "tree.graphml",
    }
)
_DRAWINGS: Final = frozenset({ExportFormat.DOT, ExportFormat.GRAPHML})
"""The formats that also show a tree in which no node has a place."""


_PLACED_ONLY: Final = frozenset({ExportFormat.HYPERNODES, ExportFormat.NFD, ExportFormat.SLINKY})
"""The formats that never name a node without a place."""


def _is_slinky_node(name: str) -> bool:
    return is_object_name(name) and is_slurm_name(name)


_CAN_HOLD: Final[Mapping[ExportFormat, Callable[[str], bool]]] = MappingProxyType(
    {
        ExportFormat.HYPERNODES: is_object_name,
        ExportFormat.LABELS: is_object_name,
        ExportFormat.NFD: is_feature_node,
        ExportFormat.SLINKY: _is_slinky_node,
        ExportFormat.SLURM_TREE: is_slurm_name,
        ExportFormat.SLURM_BLOCK: is_slurm_name,
        ExportFormat.SLURM_YAML: is_slurm_name,
    }
)
"""Whether a format can hold the name of a node; the other formats hold any, or name no node."""


def name_file(chosen: ExportFormat) -> str:
    """Return the name of the file that the reader of a format expects."""
    return _FILE_NAMES.get(chosen, f"{chosen}.yaml")


def render_export(tree: TopologyTree, chosen: ExportFormat, settings: ExportSettings) -> Export:
    """Return a tree in a format, without the nodes whose names its reader cannot hold.

    A fabric knows its hosts by any name. Without such a node, a domain may have no node left; then
    nothing names this domain.

    Raises:
        ConfigError: the names of the tiers, or a setting, cannot be written in this format.
    """
    can_hold = _CAN_HOLD.get(chosen)
    named = tree.nodes if chosen in _PLACED_ONLY else all_nodes(tree)
    left_out = tuple(node for node in named if can_hold and not can_hold(node))
    tree = without_nodes(tree, left_out)
    export = Export(name_file(chosen), left_out=left_out)
    if not tree.nodes and chosen not in _DRAWINGS:
        return export
    if chosen in _TEXTS:
        return export._replace(text=_TEXTS[chosen](tree))
    if chosen is ExportFormat.HYPERNODES:
        return export._replace(documents=tuple(map(render_manifest, render_hypernodes(tree))))
    rows = _OBJECTS[chosen](tree, settings)
    return export._replace(documents=tuple(map(render_object, rows)))


def wrap_text(export: Export, settings: ExportSettings) -> Export:
    """Return an export as Kubernetes objects: a text becomes a ConfigMap.

    Raises:
        ConfigError: the text is too large for a ConfigMap.
    """
    if export.text is None:
        return export
    row = render_text_config_map(
        export.text, key=export.file_name, name=settings.name, namespace=settings.namespace
    )
    return export._replace(documents=(render_object(row),))


def _render_slurm_tree(tree: TopologyTree) -> str:
    return render_tree_config(build_switches(tree)) + render_renamed(tree)


def _render_slurm_block(tree: TopologyTree) -> str:
    return render_block_config(build_blocks(tree)) + render_renamed(tree)


def _render_slurm_yaml(tree: TopologyTree) -> str:
    return render_yaml_config(build_switches(tree), build_blocks(tree)) + render_renamed(tree)


def _render_topograph_text(tree: TopologyTree) -> str:
    return json.dumps(render_topograph(tree), indent=2) + "\n"


def _tier_keys(tree: TopologyTree, settings: ExportSettings) -> tuple[str, ...]:
    return build_tier_keys(tree.tiers, settings.label_prefix)


def _render_labels(tree: TopologyTree, settings: ExportSettings) -> Objects:
    keys = list_label_keys(
        tree.tiers, prefix=settings.label_prefix, families=settings.label_families
    )
    return render_label_objects(tree, keys, is_padded=settings.is_padded)


def _render_kueue(tree: TopologyTree, settings: ExportSettings) -> Objects:
    return render_kueue_objects(
        _tier_keys(tree, settings),
        name=settings.name,
        flavor=settings.flavor,
    )


def _render_kai(tree: TopologyTree, settings: ExportSettings) -> Objects:
    keys = _tier_keys(tree, settings)
    return render_kai_objects(
        tree.tiers, keys, name=settings.name, has_aliases=settings.has_aliases
    )


def _render_koordinator(tree: TopologyTree, settings: ExportSettings) -> Objects:
    return render_koordinator_objects(tree.tiers, _tier_keys(tree, settings))


def _render_grove(tree: TopologyTree, settings: ExportSettings) -> Objects:
    keys = _tier_keys(tree, settings)
    name = settings.name
    kai_topology = settings.kai_topology or name
    return render_grove_objects(tree.tiers, keys, name=name, kai_topology=kai_topology)


def _render_slinky(tree: TopologyTree, _settings: ExportSettings) -> Objects:
    return render_slinky_objects(tree)


def _render_nfd(tree: TopologyTree, settings: ExportSettings) -> Objects:
    return render_nfd_objects(tree, tree.tiers, namespace=settings.namespace)


def _render_config_map(tree: TopologyTree, settings: ExportSettings) -> Objects:
    return (render_tree_config_map(tree, name=settings.name, namespace=settings.namespace),)


_TEXTS: Final[Mapping[ExportFormat, Callable[[TopologyTree], str]]] = MappingProxyType(
    {
        ExportFormat.SLURM_TREE: _render_slurm_tree,
        ExportFormat.SLURM_BLOCK: _render_slurm_block,
        ExportFormat.SLURM_YAML: _render_slurm_yaml,
        ExportFormat.TOPOGRAPH: _render_topograph_text,
        ExportFormat.DOT: render_dot,
        ExportFormat.GRAPHML: render_graphml,
    }
)
_OBJECTS: Final[Mapping[ExportFormat, Callable[[TopologyTree, ExportSettings], Objects]]] = (
    MappingProxyType(
        {
            ExportFormat.LABELS: _render_labels,
            ExportFormat.KUEUE: _render_kueue,
            ExportFormat.KAI: _render_kai,
            ExportFormat.KOORDINATOR: _render_koordinator,
            ExportFormat.GROVE: _render_grove,
            ExportFormat.SLINKY: _render_slinky,
            ExportFormat.NFD: _render_nfd,
            ExportFormat.CONFIG_MAP: _render_config_map,
        }
    )
)
