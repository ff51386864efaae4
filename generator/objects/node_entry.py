"""One node of the list of nodes: its entry in either form, validated field by field. Pure.

A wrong field costs that field, and never admits pods that a good one would keep out. Only an entry
that names no node is refused. pydantic refuses a whole model for one wrong field, so the refused
part of the row is left out here, and the rest is validated again.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, ValidationError

from generator.objects.yaml_document import ValueFault
from generator.placement.cluster.nodes import Exclusion, NodeSpec
from generator.placement.quantities import count_capacity, parse_exact_amount
from topology.model.errors import ConfigError, show
from topology.model.facts import Device, DeviceKind
from topology.model.ids import (
    HOSTNAME_LABEL,
    Id,
    IdKind,
    parse_guid,
    parse_mac,
    parse_node_name,
)
from topology.model.validation import describe_fault
from topology.model.wire_model import DEFERRED

Path = tuple[str | int, ...]
"""Where a value is in a row: keys of mappings and indexes of lists."""

_MAX_ROUNDS: Final = 8
"""Leaving out one fault may show another one below it, at most once per level."""
_UNKNOWN_KEY: Final = "extra_forbidden"
ModelT = TypeVar("ModelT", bound=BaseModel)


class FieldFault(NamedTuple):
    """A part of a row that is left out, and why."""

    path: Path
    """Of the part that is left out: a field, an entry of a mapping, or an item of a list."""
    problem: str
    """What is wrong, with the full path of the value: `ids.0.value: expected a text`."""


class UsableFields(NamedTuple, Generic[ModelT]):
    """A row without the fields that are refused."""

    model: ModelT
    faults: tuple[FieldFault, ...]


def validate_fields(
    model: type[ModelT], row: Mapping[str, Any], *, required: frozenset[Path]
) -> UsableFields[ModelT]:
    """Return the model of a row without its refused parts, and why they are refused.

    An item of a list is left out as a whole if one of its fields is wrong, but not for an unknown
    key in it.

    Args:
        model: its fields have defaults, apart from the required ones.
        row: the decoded row; not changed.
        required: paths of the fields without which the row means nothing.

    Raises:
        ConfigError: a required field is missing or wrong.
    """
    faults: list[FieldFault] = []
    remaining: Any = row
    for _ in range(_MAX_ROUNDS):
        try:
            return UsableFields(model.model_validate(remaining), tuple(faults))
        except ValidationError as error:
            found = [_build_fault(fault, remaining) for fault in _list_errors(error)]
        essential = [
            fault.problem
            for fault in found
            if any(path[: len(fault.path)] == fault.path for path in required)
        ]
        if essential:
            raise ConfigError("; ".join(essential))
        faults += found
        remaining = _without(remaining, [fault.path for fault in found])
    raise ConfigError("; ".join(fault.problem for fault in faults[:_MAX_ROUNDS]))


def _list_errors(error: ValidationError) -> Sequence[Mapping[str, Any]]:
    return error.errors(include_url=False, include_input=False)


def _build_fault(fault: Any, row: object) -> FieldFault:  # noqa: ANN401 - pydantic's TypedDict
    path: Path = tuple(fault["loc"])
    shown = ".".join(map(str, path))
    problem = show(f"{shown}: {describe_fault(fault)}" if path else describe_fault(fault))
    return FieldFault(_find_part(path, row, is_key=fault["type"] == _UNKNOWN_KEY), problem)


def _find_part(path: Path, row: object, *, is_key: bool) -> Path:
    """Return the path of the smallest part whose absence is allowed.

    This is the innermost item of a list on the path; else the innermost value that exists.
    """
    if is_key:
        return path
    values = row
    end, item_end = 0, 0
    for depth, key in enumerate(path, 1):
        if isinstance(values, Mapping) and key in values:
            values = values[key]
        elif isinstance(values, list) and isinstance(key, int) and key < len(values):
            values, item_end = values[key], depth
        else:
            break
        end = depth
    return path[: item_end or end or len(path)]


def _without(value: Any, paths: Sequence[Path]) -> Any:  # noqa: ANN401 - any JSON
    """Return a copy of a value from which the parts at the given paths are removed."""
    leaving = {path[0] for path in paths if len(path) == 1}
    deeper: dict[str | int, list[Path]] = {}
    for path in paths:
        if len(path) > 1:
            deeper.setdefault(path[0], []).append(path[1:])
    if isinstance(value, Mapping):
        return {
            key: _without(item, deeper[key]) if key in deeper else item
            for key, item in value.items()
            if key not in leaving
        }
    return [
        _without(item, deeper[index]) if index in deeper else item
        for index, item in enumerate(value)
        if index not in leaving
    ]


SLOTS: Final = "slots"
MAX_PROBLEMS: Final = 5
"""Problems of one node that are kept; the number of the others is."""


@dataclass(frozen=True, slots=True)
class ListedNode:
    """One node of the cluster."""

    name: str
    ids: Sequence[Id]
    """Sorted; the node name is one of them."""
    spec: NodeSpec
    """Its capacity, labels and taints."""
    problems: tuple[str, ...] = ()
    """The fields of its entry that cannot be used and are left out."""

    @property
    def device(self) -> Device:
        """The node as a host device with its ids."""
        return Device(DeviceKind.HOST, self.name, tuple(self.ids))


Quantities = dict[str, Annotated[Decimal, PlainValidator(parse_exact_amount)]]
"""In base units, exactly."""


class _StrictModel(BaseModel):
    model_config = ConfigDict(**DEFERRED, extra="forbid", frozen=True)


class _LenientModel(BaseModel):
    model_config = ConfigDict(**DEFERRED, extra="ignore", frozen=True)


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


def _read_number_as_text(value: object) -> object:
    """Return an integer as text: YAML reads the unquoted name 1001 as a number."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _NodeRow(_StrictModel):
    name: Annotated[str, BeforeValidator(_read_number_as_text)]
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


class _NodeCondition(_LenientModel):
    type: str
    status: str


class _KubeStatus(_LenientModel):
    allocatable: Quantities = Field(default_factory=dict)
    addresses: list[_NodeAddress] = Field(default_factory=list)
    conditions: list[_NodeCondition] = Field(default_factory=list)


class _KubeNode(_LenientModel):
    metadata: _KubeMetadata
    spec: _KubeSpec = _KubeSpec.model_construct()
    status: _KubeStatus = _KubeStatus.model_construct()


_ADDRESS_KINDS: Final = {
    "Hostname": IdKind.HOSTNAME,
    "InternalDNS": IdKind.HOSTNAME,
    "ExternalDNS": IdKind.HOSTNAME,
    "InternalIP": IdKind.IP,
    "ExternalIP": IdKind.IP,
}
_OF_PORTS: Final = frozenset({IdKind.PORT_ID, IdKind.IFNAME, IdKind.IFINDEX})
_CHASSIS_SUBTYPES: Final = ("mac", "ip", "local", "ifname", "ifalias")
_KUBE_NAME: Final = frozenset([("metadata", "name")])
_ROW_NAME: Final = frozenset([("name",)])


def parse_node(document: Mapping[str, object]) -> ListedNode:
    """Return the node of a decoded Node object; wrong fields are in its problems.

    Raises:
        ConfigError: it is not a Node, or has no usable name.
    """
    return parse_entry(document, ())


def parse_entry(row: object, value_faults: Sequence[ValueFault]) -> ListedNode:
    """Return the node of a row without the fields that are refused.

    Raises:
        ConfigError: the row names no node.
    """
    if not isinstance(row, Mapping):
        raise ConfigError("expected `nodes: [...]` or Node objects")
    if row.get("kind") == "Node":
        kube = validate_fields(_KubeNode, row, required=_KUBE_NAME)
        node, paths = _build_from_kube(kube.model, kube.faults)
        return _add_problems(node, [*value_faults, *kube.faults, *paths])
    if "name" not in row:
        raise ConfigError("expected `nodes: [{name: ...}]` or Node objects")
    own = validate_fields(_NodeRow, row, required=_ROW_NAME)
    node, id_faults = _build_from_row(own.model, [*value_faults, *own.faults])
    return _add_problems(node, [*value_faults, *own.faults, *id_faults])


def _add_problems(node: ListedNode, faults: Sequence[FieldFault | ValueFault]) -> ListedNode:
    if not faults:
        return node
    texts = [
        fault.problem
        if isinstance(fault, FieldFault)
        else show(f"{'.'.join(map(str, fault.path))}: {fault.problem}")
        for fault in faults
    ]
    more = len(texts) - MAX_PROBLEMS
    shown = [f"{text}; it is left out" for text in texts[:MAX_PROBLEMS]]
    return replace(node, problems=(*shown, *([f"{more} more fields are left out"] * (more > 0))))


def _build_from_row(
    row: _NodeRow, faults: Sequence[FieldFault | ValueFault]
) -> tuple[ListedNode, list[FieldFault]]:
    capacity = {SLOTS: 1} | count_capacity(row.capacity)
    free_faults = _find_impossible_free(row)
    is_open = row.schedulable and not _has_lost(faults, ("schedulable",), ("taints",))
    spec = NodeSpec(
        name=_check_name(row.name),
        capacity=capacity,
        free=_compute_free(row, capacity, [*faults, *free_faults]),
        labels=row.labels,
        taints=_render_taints(row.taints),
        exclusion=None if is_open else Exclusion.UNSCHEDULABLE,
    )
    usable, id_faults = _collect_ids(
        row.name, ((id_row.type, id_row.value, id_row.subtype) for id_row in row.ids)
    )
    return ListedNode(row.name, usable, spec), [*free_faults, *id_faults]


def _find_impossible_free(row: _NodeRow) -> list[FieldFault]:
    """Return a fault per resource of which more is free than the row gives as capacity."""
    return [
        FieldFault(("free", name), f"free.{show(name, 64)}: is more than the capacity")
        for name, amount in sorted((row.free or {}).items())
        if amount > row.capacity.get(name, amount)
    ]


def _compute_free(
    row: _NodeRow, capacity: Mapping[str, int], faults: Sequence[FieldFault | ValueFault]
) -> dict[str, int] | None:
    """Return the free capacity; what cannot be read or cannot be true counts as used."""
    lost = [fault.path for fault in faults if fault.path[:1] == ("free",)]
    if row.free is None and not lost:
        return None
    used = {str(path[1]): 0 for path in lost if len(path) > 1}
    unread = dict.fromkeys(capacity, 0) if any(len(path) == 1 for path in lost) else {}
    return {**capacity, **unread, **count_capacity(row.free or {}), **used}


def _has_lost(faults: Sequence[FieldFault | ValueFault], *parts: Path) -> bool:
    """Return whether a value at or below one of these paths was left out."""
    return any(fault.path[: len(part)] == part for fault in faults for part in parts)


def _build_from_kube(
    node: _KubeNode, faults: Sequence[FieldFault]
) -> tuple[ListedNode, list[FieldFault]]:
    name = _check_name(node.metadata.name)
    known, id_faults = _collect_ids(
        name,
        (
            (_ADDRESS_KINDS[address.type], address.address, "")
            for address in node.status.addresses
            if address.type in _ADDRESS_KINDS
        ),
        path=("status", "addresses"),
    )
    host_name = node.metadata.labels.get(HOSTNAME_LABEL, "").strip()
    labelled = [Id(IdKind.HOSTNAME, host_name)] if host_name else []
    spec = NodeSpec(
        name=name,
        capacity={SLOTS: 1} | count_capacity(node.status.allocatable),
        labels=node.metadata.labels,
        taints=_render_taints(node.spec.taints),
        exclusion=_find_exclusion(node, faults),
    )
    return ListedNode(name, tuple(sorted({*known, *labelled})), spec), id_faults


def _find_exclusion(node: _KubeNode, faults: Sequence[FieldFault]) -> Exclusion | None:
    """Return why a node takes no pods; a node without the condition Ready counts as ready.

    The kubelet writes True or False, and the node controller Unknown if the kubelet is silent.
    Source: kubernetes.io/docs/reference/node/node-status.
    """
    if node.spec.unschedulable or _has_lost(faults, ("spec",)):
        return Exclusion.UNSCHEDULABLE
    conditions = node.status.conditions
    is_unready = any(one.type == "Ready" and one.status != "True" for one in conditions)
    is_lost = any(fault.path == ("status",) for fault in faults)
    is_lost = is_lost or _has_lost(faults, ("status", "conditions"))
    return Exclusion.NOT_READY if is_unready or is_lost else None


def _check_name(name: str) -> str:
    if parse_node_name(name) is None:
        raise ConfigError(f"name: expected a Kubernetes node name, got '{show(name, 64)}'")
    return name


def _collect_ids(
    name: str, rows: Iterable[tuple[IdKind, str, str]], path: Path = ("ids",)
) -> tuple[tuple[Id, ...], list[FieldFault]]:
    """Return the usable ids, sorted, with the node's name, and the faults of the others."""
    usable = {Id(IdKind.NODE_NAME, name)}
    faults = []
    for index, (kind, text, subtype) in enumerate(rows):
        value = _normalize_id(kind, text, subtype)
        if kind in _OF_PORTS:
            problem = f"{kind.value} identifies a port, and no node"
        elif kind is IdKind.CHASSIS_ID and subtype not in _CHASSIS_SUBTYPES:
            problem = f"expected a subtype of {kind.value}: {', '.join(_CHASSIS_SUBTYPES)}"
        elif not value:
            problem = f"expected a usable {kind.value}, got '{show(text, 64)}'"
        else:
            usable.add(Id(kind, value, subtype))
            continue
        faults.append(FieldFault((*path, index), f"{path[-1]}: {problem}"))
    return tuple(sorted(usable)), faults


def _normalize_id(kind: IdKind, text: str, subtype: str) -> str | None:
    """Return an id in canonical form, so that it equals the id that agents and sweeps report."""
    if kind in (IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID):
        return parse_guid(text)
    if kind is IdKind.MAC or subtype == "mac":
        return parse_mac(text)
    if kind is IdKind.IP or subtype == "ip":
        try:
            return str(ipaddress.ip_address(text.strip()))
        except ValueError:
            return None
    return text.strip() or None


def _render_taints(taints: Sequence[_TaintRow]) -> tuple[str, ...]:
    return tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in taints)
