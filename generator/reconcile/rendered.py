"""The objects of each output, rendered from the tree that was decided last. Pure.

Each output has its kinds of objects, and a field manager that owns their fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from generator.kube.ownership import find_owned_parts, render_part
from generator.kube.resources import CONFIG_MAPS, NODES, Resource
from generator.objects.outputs import LabelKey, Output, OutputType, build_export_settings
from generator.outputs import kueue
from generator.outputs.catalog import FORMATS, Export, render_export, wrap_text
from generator.outputs.formats import ExportFormat
from generator.outputs.nfd import NODE_FEATURES
from generator.outputs.node_labels import build_tier_keys
from generator.store.kinds import BULK, Kind
from topology.model.errors import ConfigError, list_some, show
from topology.model.tree import TopologyTree

KINDS: Final[Mapping[OutputType, tuple[Resource, ...]]] = MappingProxyType(
    {
        output: FORMATS[output.export_format].kinds
        for output in OutputType
        if output is not OutputType.HYPERNODE
    }
)
"""The kinds of objects of each output but HyperNodes, in the order in which they are created."""
NAMESPACED: Final = frozenset({CONFIG_MAPS, NODE_FEATURES})
"""The kinds with a namespace; only Toponaut's own is read."""
_OLDER_VERSIONS: Final[Mapping[Resource, tuple[str, ...]]] = MappingProxyType(
    {kueue.TOPOLOGIES: ("v1beta1",), kueue.RESOURCE_FLAVORS: ("v1beta1",)}
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
        resource: the resource in its newest version.
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
    """The objects in the order of creation; empty: existing objects are removed."""


class RenderedOutput(NamedTuple):
    """An output as it should be."""

    type: OutputType
    sets: tuple[ObjectSet, ...] = ()
    """The sets in the order in which they are written; empty if the output cannot be rendered, and
    then what exists stays."""
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
    return tuple(_render_output(tree, output, outputs, namespace=namespace) for output in outputs)


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
    return render_export(tree, output.type.export_format, settings)


def describe_left_out(export: Export) -> str:
    """Return a sentence that names the nodes that an export lacks; empty if it lacks none."""
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
    tree: TopologyTree, output: Output, outputs: Sequence[Output], *, namespace: str
) -> RenderedOutput:
    settings = build_export_settings(output, outputs, namespace=namespace)
    try:
        export = render_output_file(tree, output, outputs, namespace=namespace)
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


_NAMED: Final = {
    ExportFormat.LABELS: "label keys of nodes",
    ExportFormat.KAI: "the Topology of KAI",
}
"""What the objects of another output refer to in the output of this format."""


def _find_missing(chosen: OutputType, types: Collection[OutputType]) -> str:
    """Return a sentence about another output that this output needs; empty if none is missing."""
    needed = FORMATS[chosen.export_format].needs
    if needed is None or needed in {output.export_format for output in types}:
        return ""
    return f"it names {_NAMED[needed]}: add an output of type {needed}"
