"""The TreeRecord object: the HyperNodes that were decided last, and what changed recently.

`treerecords.toponaut.io`, one per cluster, named `default`. It is written before the first
HyperNode of a plan. So after any interruption the names of domains, the rest of the plan, and the
nodes that left a domain within the last hour are known, to this process and to the next leader.
The content is packed: base64 of compressed JSON, in parts that an API server stores.
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
from generator.outputs.hypernode import (
    OWN_LABELS,
    PADDING_LABELS,
    HyperNode,
    Member,
    MemberType,
    lint_hypernodes,
)
from topology.model.errors import ConfigError
from topology.model.validation import describe_validation
from topology.model.wire_model import WireModel
from topology.reports.neighbor_report import API_VERSION, ReportMetadata

RECORD_KIND: Final = "TreeRecord"
RECORD_NAME: Final = "default"
PART_CHARS: Final = 1 << 16
MAX_PARTS: Final = 20
"""1.3 MB, which is below etcd's limit. 100,000 nodes take 0.2 to 1 MB, by the form of their
names."""
_MAX_UNPACKED: Final = 32 << 20
"""200,000 nodes in HyperNodes and 100,000 recent changes take 20 MiB."""
_MAX_VALUES: Final = 2_000_000
"""In the unpacked JSON; each takes 80 bytes of memory while it is read. The same record has 1 M."""
_Natural = Annotated[int, Field(ge=0)]


class RecentChanges(NamedTuple):
    """Nodes that left a domain, and deleted domains, each with the time in seconds since 1970."""

    moved: Mapping[str, int] = MappingProxyType({})
    """By node."""
    deleted: Mapping[tuple[int, str], int] = MappingProxyType({})
    """By tier and name of a domain."""


class TreeRecord(NamedTuple):
    """The HyperNodes that were decided last, and the recent changes."""

    hypernodes: tuple[HyperNode, ...] | None
    """As rendered; None if there are too many for one object."""
    recent: RecentChanges = RecentChanges()


class TreeRecordSpec(WireModel):
    """The packed record."""

    hypernodes: Count = 0
    """Number of HyperNodes; the printed column."""
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
    metadata: ReportMetadata = ReportMetadata.model_construct(name=RECORD_NAME)
    spec: TreeRecordSpec


class _HyperNodeRow(NamedTuple):
    """One HyperNode in the content."""

    name: str
    tier: _Natural
    tier_name: str
    is_padding: bool
    children: list[str]
    nodes: list[str]


class _Content(WireModel):
    hypernodes: list[_HyperNodeRow] | None
    moved: dict[str, _Natural]
    deleted: list[tuple[_Natural, str, _Natural]]


def render_tree_record(record: TreeRecord) -> dict[str, Any]:
    """Return the object of a record; equal records give equal objects.

    A record that is too large for one object is stored without its HyperNodes, and if that is not
    enough, without the oldest changes.
    """
    content = _pack(record)
    if content is None:
        record = record._replace(hypernodes=None)
        content = _pack(record)
    while content is None:
        record = record._replace(recent=_keep_newer_half(record.recent))
        content = _pack(record)
    document = TreeRecordDocument(
        spec=TreeRecordSpec(
            hypernodes=len(record.hypernodes or ()),
            moved_nodes=len(record.recent.moved),
            content=content,
        )
    )
    metadata = {"name": RECORD_NAME}
    return document.model_dump(mode="json", by_alias=True) | {"metadata": metadata}


def parse_tree_record(document: object) -> TreeRecord:
    """Return the record of a decoded object.

    Raises:
        ConfigError: another kind, version or name, a content that cannot be unpacked, or HyperNodes
            that are no valid set, so that we did not decide them.
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
    rows = None if record.hypernodes is None else list(map(_build_row, record.hypernodes))
    deleted = [(*key, at_s) for key, at_s in record.recent.deleted.items()]
    content = {
        "hypernodes": rows,
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
    rows = content.hypernodes
    hypernodes = None if rows is None else tuple(map(_build_hypernode, rows))
    faults = lint_hypernodes(hypernodes or ())
    if faults:
        raise ConfigError(f"spec.content: {faults[0]}")
    deleted = {(tier, name): at_s for tier, name, at_s in content.deleted}
    return TreeRecord(hypernodes, RecentChanges(content.moved, deleted))


def _build_row(hypernode: HyperNode) -> _HyperNodeRow:
    return _HyperNodeRow(
        hypernode.name,
        hypernode.tier,
        hypernode.tier_name,
        hypernode.is_padding,
        list(hypernode.children),
        list(hypernode.nodes),
    )


def _build_hypernode(row: _HyperNodeRow) -> HyperNode:
    members = (
        *(Member(MemberType.HYPERNODE, name) for name in row.children),
        *(Member(MemberType.NODE, name) for name in row.nodes),
    )
    labels = PADDING_LABELS if row.is_padding else OWN_LABELS
    return HyperNode(row.name, row.tier, row.tier_name, members, labels)
