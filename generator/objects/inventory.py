"""The inventory of a cluster's nodes: their ids for the fabric, their capacity for placement.

Two forms are read: `kubectl get nodes -o json|yaml`, and Toponaut's own form `nodes: [{name, ids,
capacity, free, labels, taints, schedulable}]`. A malformed node is left out and reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from generator.objects.quantities import parse_quantity
from generator.objects.yaml_document import parse_documents
from generator.placement.cluster.snapshot import NodeSpec
from topology.model.errors import ConfigError, ParseError, show
from topology.model.facts import Device, DeviceKind
from topology.model.ids import Id, IdKind, parse_guid, parse_mac, parse_node_name
from topology.model.validation import describe_validation

SLOTS: Final = "slots"


@dataclass(frozen=True, slots=True)
class ListedNode:
    """One node of the cluster."""

    name: str
    ids: tuple[Id, ...]
    """Sorted; the node name is one of them."""
    spec: NodeSpec
    """Its capacity, labels and taints."""

    @property
    def device(self) -> Device:
        """The node as a host device with its ids."""
        return Device(DeviceKind.HOST, self.name, self.ids)


class Inventory(NamedTuple):
    """All usable nodes, and the problems with others."""

    nodes: tuple[ListedNode, ...]
    """Sorted by name."""
    problems: tuple[ParseError, ...]


Quantities = dict[str, Annotated[int, BeforeValidator(parse_quantity)]]


class _StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _LenientModel(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _IdRow(_StrictModel):
    type: IdKind
    value: str
    subtype: str = ""


class _TaintRow(_LenientModel):
    key: str
    value: str = ""
    effect: str = "NoSchedule"


def _parse_taint(value: object) -> object:
    """Return a taint object for the text form `key=value:Effect`."""
    if not isinstance(value, str):
        return value
    pair, _, effect = value.rpartition(":") if ":" in value else (value, "", "NoSchedule")
    key, _, text = pair.partition("=")
    return {"key": key, "value": text, "effect": effect}


Taints = list[Annotated[_TaintRow, BeforeValidator(_parse_taint)]]


class _NodeRow(_StrictModel):
    name: str
    ids: list[_IdRow] = Field(default_factory=list)
    capacity: Quantities = Field(default_factory=dict)
    free: Quantities | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    taints: Taints = Field(default_factory=list)
    schedulable: bool = True


class _KubeMetadata(_LenientModel):
    name: str
    labels: dict[str, str] = Field(default_factory=dict)


class _KubeSpec(_LenientModel):
    taints: Taints = Field(default_factory=list)
    unschedulable: bool = False


class _NodeAddress(_LenientModel):
    type: str
    address: str


class _KubeStatus(_LenientModel):
    allocatable: Quantities = Field(default_factory=dict)
    addresses: list[_NodeAddress] = Field(default_factory=list)


class _KubeNode(_LenientModel):
    metadata: _KubeMetadata
    spec: _KubeSpec = _KubeSpec()
    status: _KubeStatus = _KubeStatus()


def parse_nodes(raw: bytes, *, source: str) -> Inventory:
    """Return the nodes of a file in either form; if a node is repeated, its first entry counts.

    Cost: O(bytes).
    """
    nodes: dict[str, ListedNode] = {}
    problems: list[ParseError] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            problems.append(document)
            continue
        for path, row in _iterate_rows(document.value):
            try:
                node = _parse_row(row)
            except (ValidationError, ValueError) as error:
                problem = f"{path} is left out: {_describe_error(error)}"
                problems.append(ParseError(problem, source=source, line=document.line))
                continue
            if node.name in nodes:
                problem = f"{path} is left out: {node.name} is listed already"
                problems.append(ParseError(problem, source=source, line=document.line))
                continue
            nodes[node.name] = node
    return Inventory(tuple(nodes[name] for name in sorted(nodes)), tuple(problems))


def parse_node(document: Mapping[str, object]) -> ListedNode:
    """Return the node of a decoded Node object.

    Raises:
        ConfigError: it is not a Node, or a field that is read is malformed.
    """
    try:
        return _parse_row(document)
    except (ValidationError, ValueError) as error:
        raise ConfigError(_describe_error(error)) from error


def _describe_error(error: ValidationError | ValueError) -> str:
    return (
        "; ".join(describe_validation(error)) if isinstance(error, ValidationError) else str(error)
    )


def _iterate_rows(document: object) -> Iterator[tuple[str, object]]:
    """Yield (path, node in either form); any other document is yielded as a whole, for an error."""
    if isinstance(document, Mapping) and isinstance(document.get("nodes"), Sequence):
        for index, row in enumerate(document["nodes"]):
            yield f"nodes[{index}]", row
    elif isinstance(document, Mapping) and document.get("kind") == "Node":
        metadata = document.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        yield f"Node {show(str(name))}", document
    else:
        yield "the document", document


def _parse_row(row: object) -> ListedNode:
    if not isinstance(row, Mapping):
        raise ValueError("expected `nodes: [...]` or Node objects")  # noqa: TRY004 - a bad row
    if row.get("kind") == "Node":
        return _build_from_kube(_KubeNode.model_validate(row))
    if "name" not in row:
        raise ValueError("expected `nodes: [{name: ...}]` or Node objects")
    return _build_from_row(_NodeRow.model_validate(row))


def _build_from_row(row: _NodeRow) -> ListedNode:
    spec = NodeSpec(
        name=_check_name(row.name),
        capacity={SLOTS: 1} | row.capacity,
        free=None if row.free is None else {SLOTS: 1} | row.capacity | row.free,
        labels=row.labels,
        taints=_render_taints(row.taints),
        schedulable=row.schedulable,
    )
    return ListedNode(
        row.name, _collect_ids(row.name, (_normalize_id(id_row) for id_row in row.ids)), spec
    )


def _build_from_kube(node: _KubeNode) -> ListedNode:
    name = _check_name(node.metadata.name)
    kinds = {"Hostname": IdKind.HOSTNAME, "InternalIP": IdKind.IP, "ExternalIP": IdKind.IP}
    ids = (
        Id(kinds[address.type], address.address)
        for address in node.status.addresses
        if address.type in kinds
    )
    spec = NodeSpec(
        name=name,
        capacity={SLOTS: 1} | node.status.allocatable,
        labels=node.metadata.labels,
        taints=_render_taints(node.spec.taints),
        schedulable=not node.spec.unschedulable,
    )
    return ListedNode(name, _collect_ids(name, ids), spec)


def _check_name(name: str) -> str:
    if parse_node_name(name) is None:
        raise ValueError(f"name: expected a Kubernetes node name, got '{show(name, 64)}'")
    return name


def _normalize_id(row: _IdRow) -> Id:
    """Return an id in canonical form, so that it equals the id that agents and sweeps report."""
    value: str | None = row.value
    if row.type in (IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID):
        value = parse_guid(row.value)
    elif row.type is IdKind.MAC or row.subtype == "mac":
        value = parse_mac(row.value)
    if not value:
        raise ValueError(f"ids: expected a usable {row.type.value}, got '{show(row.value, 64)}'")
    return Id(row.type, value, row.subtype)


def _collect_ids(name: str, ids: Iterator[Id]) -> tuple[Id, ...]:
    return tuple(sorted({Id(IdKind.NODE_NAME, name), *ids}))


def _render_taints(taints: Sequence[_TaintRow]) -> tuple[str, ...]:
    return tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in taints)


def build_node_specs(inventory: Inventory | None, placed: Sequence[str]) -> dict[str, NodeSpec]:
    """Return the spec of every node: as listed; without an inventory, one slot each.

    Args:
        inventory: the listed nodes; None: there is no list.
        placed: names of the nodes in the tree.
    """
    if inventory is None:
        return {name: NodeSpec(name) for name in placed}
    return {node.name: node.spec for node in inventory.nodes}
