"""The objects of each output, rendered from the tree that was decided last. Pure.

Each output has its kinds of objects, and a field manager that owns their fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.ownership import find_owned_parts, render_part
from generator.kube.resources import CONFIG_MAPS, NODES, Resource
from generator.objects.outputs import (
    READS_LABELS,
    LabelKey,
    Output,
    OutputType,
    build_export_settings,
)
from generator.outputs.catalog import Export, wrap_text
from generator.outputs.node_labels import build_tier_keys
from generator.reconcile.export_check import render_checked_export
from generator.store.kinds import BULK, Kind
from topology.model.errors import ConfigError, list_some, show
from topology.model.tree import TopologyTree

KUEUE_TOPOLOGIES: Final = Resource("kueue.x-k8s.io", "v1beta2", "topologies", "Topology")
RESOURCE_FLAVORS: Final = Resource("kueue.x-k8s.io", "v1beta2", "resourceflavors", "ResourceFlavor")
KAI_TOPOLOGIES: Final = Resource("kai.scheduler", "v1alpha1", "topologies", "Topology")
KAI_POD_GROUPS: Final = Resource("scheduling.run.ai", "v2alpha2", "podgroups", "PodGroup")
CLUSTER_NETWORK_TOPOLOGIES: Final = Resource(
    "scheduling.koordinator.sh",
    "v1alpha1",
    "clusternetworktopologies",
    "ClusterNetworkTopology",
)
CLUSTER_TOPOLOGY_BINDINGS: Final = Resource(
    "grove.io", "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding"
)
NODE_FEATURES: Final = Resource("nfd.k8s-sigs.io", "v1alpha1", "nodefeatures", "NodeFeature")

KINDS: Final[Mapping[OutputType, tuple[Resource, ...]]] = MappingProxyType(
    {
        OutputType.LABELS: (NODES,),
        OutputType.SLINKY: (NODES,),
        OutputType.KUEUE: (KUEUE_TOPOLOGIES, RESOURCE_FLAVORS),
        OutputType.KAI: (KAI_TOPOLOGIES,),
        OutputType.KOORDINATOR: (CLUSTER_NETWORK_TOPOLOGIES,),
        OutputType.GROVE: (CLUSTER_TOPOLOGY_BINDINGS,),
        OutputType.NFD: (NODE_FEATURES,),
        OutputType.SLURM_TREE: (CONFIG_MAPS,),
        OutputType.SLURM_BLOCK: (CONFIG_MAPS,),
        OutputType.SLURM_YAML: (CONFIG_MAPS,),
        OutputType.CONFIG_MAP: (CONFIG_MAPS,),
        OutputType.TOPOGRAPH: (CONFIG_MAPS,),
    }
)
"""In the order in which objects are created."""
NAMESPACED: Final = frozenset({CONFIG_MAPS, NODE_FEATURES})
"""The kinds with a namespace; only Toponaut's own is read."""
_OLDER_VERSIONS: Final[Mapping[Resource, tuple[str, ...]]] = MappingProxyType(
    {KUEUE_TOPOLOGIES: ("v1beta1",), RESOURCE_FLAVORS: ("v1beta1",)}
)
OwnedParts = Mapping[str, str]
"""What our field managers own of an object, as `render_part` renders it; empty if nothing."""


def name_manager(kind: OutputType) -> str:
    """Return the field manager of an output.

    It must never change: under another name, the fields of this one would stay forever.
    """
    return f"toponaut-{kind}"


COMPAT_MANAGER: Final = "toponaut-labels-compat"
"""Owns the label keys of other tools, so that a conflict about one of them stops no key of ours."""
MANAGERS: Final = frozenset({*map(name_manager, KINDS), COMPAT_MANAGER})


def build_kind(resource: Resource, *, namespace: str = "") -> Kind[OwnedParts]:
    """Return the kind of which only our parts are kept.

    Args:
        resource: in its newest version.
        namespace: the only one that is read, if the kind has namespaces.
    """
    local = resource._replace(namespace=namespace) if resource in NAMESPACED else resource
    older = _OLDER_VERSIONS.get(resource, ())
    return Kind(local, _find_our_parts, pace=BULK, older_versions=older)


def _find_our_parts(document: Mapping[str, Any]) -> OwnedParts:
    return find_owned_parts(document, MANAGERS)


_MAX_SHOWN: Final = 3
UNDECIDED: Final = "no tree is decided yet"


class DesiredObject(NamedTuple):
    """An object, or the part of an object, that an output wants."""

    key: str
    """`NAMESPACE/NAME`, or the name alone."""
    document: Mapping[str, Any]
    part: str
    """The content, as `render_part` renders it."""


class ObjectSet(NamedTuple):
    """All objects of one kind that one field manager owns."""

    resource: Resource
    manager: str
    objects: tuple[DesiredObject, ...] = ()
    """In the order of creation; empty: what exists is removed."""


class RenderedOutput(NamedTuple):
    """An output as it should be."""

    type: OutputType
    sets: tuple[ObjectSet, ...] = ()
    """In the order in which they are written; empty if the output cannot be rendered, and then what
    exists stays."""
    problem: str = ""
    """Why it cannot be rendered, or which names its consumer cannot hold; empty if all is well."""
    is_decided: bool = True
    """False while no tree is decided: what should exist is not known."""


def render_outputs(
    tree: TopologyTree | None, outputs: Sequence[Output], *, namespace: str
) -> tuple[RenderedOutput, ...]:
    """Return every output of a tree; None: no tree is decided. Cost: O(nodes x outputs)."""
    if tree is None:
        return tuple(
            RenderedOutput(output.type, problem=UNDECIDED, is_decided=False) for output in outputs
        )
    types = {output.type for output in outputs}
    return tuple(
        _render_output(tree, output, outputs, types, namespace=namespace) for output in outputs
    )


def render_output_file(
    tree: TopologyTree, output: Output, outputs: Sequence[Output], *, namespace: str
) -> Export:
    """Return an output as one file.

    Raises:
        ConfigError: the tree cannot be written in this format, or another output is missing.
    """
    missing = _find_missing(output.type, {row.type for row in outputs})
    if missing:
        raise ConfigError(missing)
    settings = build_export_settings(output, outputs, namespace=namespace)
    return render_checked_export(tree, output.type.export_format, settings)


def describe_left_out(export: Export) -> str:
    """Return which nodes are not in an export, and whether what exists stays; empty if all are."""
    names = list_some(map(show, export.left_out), _MAX_SHOWN)
    problem = f"names that cannot be written: {names}" if names else ""
    if not export.is_empty:
        return problem
    empty = "no node has a place that can be written, so what exists stays"
    return f"{problem}; {empty}" if problem else empty


def list_tier_keys(tree: TopologyTree, outputs: Iterable[Output]) -> tuple[LabelKey, ...]:
    """Return the label key of each tier; none if nodes are not labelled."""
    labels = [output for output in outputs if output.type is OutputType.LABELS]
    if not labels:
        return ()
    settings = build_export_settings(labels[0], labels, namespace="")
    try:
        keys = build_tier_keys(tree.tiers, settings.label_prefix)
    except ConfigError:  # reported with the output
        return ()
    return tuple(LabelKey(tier=tier, key=key) for tier, key in enumerate(keys, 1))


def _render_output(
    tree: TopologyTree,
    output: Output,
    outputs: Sequence[Output],
    types: Collection[OutputType],
    *,
    namespace: str,
) -> RenderedOutput:
    missing = _find_missing(output.type, types)
    if missing:
        return RenderedOutput(output.type, problem=missing)
    settings = build_export_settings(output, outputs, namespace=namespace)
    try:
        export = render_checked_export(tree, output.type.export_format, settings)
        documents = wrap_text(export, settings).documents
        own_keys = build_tier_keys(tree.tiers, settings.label_prefix)
    except ConfigError as error:
        return RenderedOutput(output.type, problem=str(error))
    problem = describe_left_out(export)
    if export.is_empty:
        return RenderedOutput(output.type, problem=problem)
    if output.type is not OutputType.LABELS:
        return RenderedOutput(output.type, _build_sets(output.type, documents), problem)
    own, others = _split_labels(documents, own_keys)
    sets = (*_build_sets(output.type, own), ObjectSet(NODES, COMPAT_MANAGER, _build_rows(others)))
    return RenderedOutput(output.type, sets, problem)


def build_removal(chosen: OutputType) -> RenderedOutput:
    """Return an output that is no longer wanted: everything of it is removed."""
    sets = _build_sets(chosen, ())
    if chosen is OutputType.LABELS:
        sets = (*sets, ObjectSet(NODES, COMPAT_MANAGER))
    return RenderedOutput(chosen, sets)


def _build_sets(
    chosen: OutputType, documents: Sequence[Mapping[str, Any]]
) -> tuple[ObjectSet, ...]:
    return tuple(
        ObjectSet(
            resource,
            name_manager(chosen),
            _build_rows([row for row in documents if row["kind"] == resource.kind]),
        )
        for resource in KINDS[chosen]
    )


def _build_rows(documents: Iterable[Mapping[str, Any]]) -> tuple[DesiredObject, ...]:
    return tuple(
        DesiredObject(_find_key(row["metadata"]), row, render_part(row)) for row in documents
    )


def _find_key(metadata: Mapping[str, Any]) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _split_labels(
    documents: Iterable[Mapping[str, Any]], own_keys: Collection[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the labels with keys of ours, and those with keys of other tools."""
    own: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for row in documents:
        labels = row["metadata"].get("labels", {})
        for rows, is_own in ((own, True), (others, False)):
            kept = {key: value for key, value in labels.items() if (key in own_keys) is is_own}
            if kept:
                rows.append({**row, "metadata": {**row["metadata"], "labels": kept}})
    return own, others


def _find_missing(chosen: OutputType, types: Collection[OutputType]) -> str:
    """Return which other output this one needs; empty if none is missing."""
    if chosen in READS_LABELS and OutputType.LABELS not in types:
        return "it names label keys of nodes: add an output of type labels"
    if chosen is OutputType.GROVE and OutputType.KAI not in types:
        return "it names the Topology of KAI: add an output of type kai"
    return ""
