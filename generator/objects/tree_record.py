"""The TreeRecord object: the tree that was decided last, and what changed recently.

`treerecords.toponaut.io`, one per cluster, named `default`. It is written before the first object
of any output. So after any interruption the names of domains, the rest of the plan, and the nodes
that left a domain within the last hour are known, to this process and to the next leader. The
content is packed: base64 of compressed JSON, in parts that an API server stores. The tree in it is
the document that `toponaut tree -o json` prints; older records have HyperNodes instead.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, StringConstraints, ValidationError

from generator.objects.fabric import Count
from generator.outputs.hypernode.forest import build_hypernode_tree, render_hypernodes
from generator.outputs.hypernode.lint import lint_hypernodes
from generator.outputs.hypernode.model import (
    OWN_LABELS,
    PADDING_LABELS,
    HyperNode,
    Member,
    MemberType,
)
from topology.model.errors import ConfigError
from topology.model.tree import DomainSpec, TopologyTree, build_tree, parse_tree, render_tree
from topology.model.validation import describe_validation
from topology.model.wire_model import ObjectMetadata, WireModel
from topology.reports.neighbor_report import API_VERSION

RECORD_KIND: Final = "TreeRecord"
RECORD_NAME: Final = "default"
PART_CHARS: Final = 1 << 16
MAX_PARTS: Final = 20
"""1.3 MB, which is below etcd's limit. 100,000 nodes take 0.2 to 1 MB, by the form of their
names."""
_MAX_UNPACKED: Final = 32 << 20
"""200,000 nodes in a tree and 100,000 recent changes take 20 MiB."""
_MAX_VALUES: Final = 2_000_000
"""In the unpacked JSON; each takes 80 bytes of memory while it is read. The same record has 1 M."""
_MAX_TIERS: Final = 64
"""Far above any fabric. A limit is needed because HyperNodes are padded on every tier."""
_Natural = Annotated[int, Field(ge=0)]


class RecentChanges(NamedTuple):
    """Nodes that left a domain, and deleted domains, each with the time in seconds since 1970."""

    moved: Mapping[str, int] = MappingProxyType({})
    """By node."""
    deleted: Mapping[tuple[int, str], int] = MappingProxyType({})
    """By tier and name of a domain."""


class TreeRecord(NamedTuple):
    """The tree that was decided last, and the recent changes."""

    tree: TopologyTree | None
    """The tree as `strip_tree` returns it, empty if all outputs were removed; None if it is too
    large for one object."""
    recent: RecentChanges = RecentChanges()


EMPTY_TREE: Final = build_tree((), tiers=())


def strip_tree(tree: TopologyTree) -> TopologyTree:
    """Return the decided part of a tree: domains with nodes, their names, tiers and parents.

    Switches, margins and unplaced nodes change without a change of any HyperNode or label.
    Cost: O(n log n) in domains and nodes.
    """
    specs = [
        DomainSpec(
            name=domain.name,
            tier=domain.tier,
            parent=None if domain.parent is None else tree.domains[domain.parent].name,
            nodes=domain.nodes,
        )
        for domain in tree.domains
        if domain.start < domain.stop
    ]
    num_tiers = max((spec.tier for spec in specs), default=0)
    return build_tree(specs, tiers=tree.tiers[:num_tiers], plane=tree.plane)


class TreeRecordSpec(WireModel):
    """The packed record."""

    hypernodes: Count | None = Field(default=None, exclude=True)
    """Number of HyperNodes, in older records."""
    domains: Count = 0
    """Number of domains; the printed column."""
    moved_nodes: Count = 0
    """Number of nodes that left a domain recently."""
    content: Annotated[
        tuple[Annotated[str, StringConstraints(max_length=PART_CHARS)], ...],
        Field(max_length=MAX_PARTS),
    ]
    """base64 of compressed JSON, in parts."""


class TreeRecordDocument(WireModel):
    """The whole object."""

    api_version: Literal["toponaut.io/v1alpha1"] = API_VERSION
    kind: Literal["TreeRecord"] = RECORD_KIND
    metadata: ObjectMetadata = ObjectMetadata.model_construct(name=RECORD_NAME)
    spec: TreeRecordSpec


class _HyperNodeRow(NamedTuple):
    """One HyperNode in the content of an older record."""

    name: str
    tier: _Natural
    tier_name: str
    is_padding: bool
    children: list[str]
    nodes: list[str]


class _Content(WireModel):
    tree: dict[str, Any] | None = None
    hypernodes: list[_HyperNodeRow] | None = None
    """The HyperNodes, which older records have instead of the tree."""
    moved: dict[str, _Natural]
    deleted: list[tuple[_Natural, str, _Natural]]


def render_tree_record(record: TreeRecord) -> dict[str, Any]:
    """Return the object of a record; equal records give equal objects.

    A record that is too large for one object is stored without its tree, and if that is not
    enough, without the oldest changes.
    """
    content = _pack(record)
    if content is None:
        record = record._replace(tree=None)
        content = _pack(record)
    while content is None:
        record = record._replace(recent=_keep_newer_half(record.recent))
        content = _pack(record)
    document = TreeRecordDocument(
        spec=TreeRecordSpec(
            domains=len(record.tree.domains) if record.tree is not None else 0,
            moved_nodes=len(record.recent.moved),
            content=content,
        )
    )
    metadata = {"name": RECORD_NAME}
    return document.model_dump(mode="json", by_alias=True) | {"metadata": metadata}


def parse_tree_record(document: object) -> TreeRecord:
    """Return the record of a decoded object.

    Raises:
        ConfigError: another kind, version or name, a content that cannot be unpacked, or a tree
            without a valid set of HyperNodes, so that we did not decide it.
    """
    if not isinstance(document, Mapping):
        raise ConfigError(f"expected a {RECORD_KIND} object, got {type(document).__name__}")
    fields = {key: document[key] for key in ("apiVersion", "kind", "spec") if key in document}
    try:
        parsed = TreeRecordDocument.model_validate(fields)
        return _unpack(parsed.spec.content)
    except ValidationError as error:
        raise ConfigError("; ".join(describe_validation(error))) from error


def _keep_newer_half(recent: RecentChanges) -> RecentChanges:
    """Return the newer half of the changed nodes, and of the deleted domains."""
    moved = sorted(recent.moved.items(), key=lambda row: row[1])
    deleted = sorted(recent.deleted.items(), key=lambda row: row[1])
    return RecentChanges(
        dict(moved[(len(moved) + 1) // 2 :]), dict(deleted[(len(deleted) + 1) // 2 :])
    )


def _pack(record: TreeRecord) -> tuple[str, ...] | None:
    """Return the content of an object; None if it is too large for one."""
    deleted = [(*key, at_s) for key, at_s in record.recent.deleted.items()]
    content = {
        "tree": None if record.tree is None else render_tree(record.tree),
        "moved": dict(record.recent.moved),
        "deleted": sorted(deleted),
    }
    raw = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    text = base64.b64encode(zlib.compress(raw, 6)).decode()
    is_readable = len(raw) <= _MAX_UNPACKED and raw.count(b",") <= _MAX_VALUES
    if not is_readable or len(text) > MAX_PARTS * PART_CHARS:
        return None
    return tuple(text[at : at + PART_CHARS] for at in range(0, len(text), PART_CHARS))


def _unpack(parts: tuple[str, ...]) -> TreeRecord:
    try:
        packed = base64.b64decode("".join(parts), validate=True)
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(packed, _MAX_UNPACKED)
    except (ValueError, zlib.error) as error:
        raise ConfigError(f"spec.content: {error}") from error
    if not unpacker.eof or raw.count(b",") > _MAX_VALUES:
        raise ConfigError("spec.content: incomplete, or too large")
    content = _Content.model_validate_json(raw)
    deleted = {(tier, name): at_s for tier, name, at_s in content.deleted}
    return TreeRecord(_parse_decided(content), RecentChanges(content.moved, deleted))


def _parse_decided(content: _Content) -> TopologyTree | None:
    """Return the tree of a content.

    Raises:
        ConfigError: Toponaut cannot have decided it: it is no tree, or Volcano would refuse it.
    """
    if content.hypernodes is not None:
        hypernodes = tuple(map(_build_hypernode, content.hypernodes))
        _refuse_faults(hypernodes)
        return build_hypernode_tree(hypernodes).tree
    if content.tree is None:
        return None
    try:
        tree = strip_tree(parse_tree(content.tree))
    except ConfigError as error:
        raise ConfigError(f"spec.content: {error}") from error
    if len(tree.tiers) > _MAX_TIERS:
        raise ConfigError(f"spec.content: {len(tree.tiers)} tiers, at most {_MAX_TIERS}")
    _refuse_faults(render_hypernodes(tree))
    return tree


def _refuse_faults(hypernodes: tuple[HyperNode, ...]) -> None:
    faults = lint_hypernodes(hypernodes)
    if faults:
        raise ConfigError(f"spec.content: {faults[0]}")


def _build_hypernode(row: _HyperNodeRow) -> HyperNode:
    members = (
        *(Member(MemberType.HYPERNODE, name) for name in row.children),
        *(Member(MemberType.NODE, name) for name in row.nodes),
    )
    labels = PADDING_LABELS if row.is_padding else OWN_LABELS
    return HyperNode(row.name, row.tier, row.tier_name, members, labels)
