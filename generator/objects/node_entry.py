"""One node of the list of nodes: its entry in either form, read field by field. Pure.

A wrong field costs that field, and never admits pods that a good one would keep out. Only an entry
that names no node is refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, TypeVar

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

ValueT = TypeVar("ValueT")
DefaultT = TypeVar("DefaultT")


class _Fields:
    """The fields of a mapping, read one by one; a wrong field is left out and is a fault."""

    __slots__ = ("_faults", "_is_mapping", "_path", "is_whole", "values")

    def __init__(
        self, value: object, path: tuple[str | int, ...], faults: list[ValueFault]
    ) -> None:
        """Wrap a value at a path of the entry, and add its faults to `faults`."""
        self._path, self._faults = path, faults
        self.values: dict[str, Any] = value if isinstance(value, dict) else {}
        self.is_whole = True
        """Whether all that was read so far is usable."""
        self._is_mapping = self.values is value
        if not self._is_mapping:
            self.refuse("expected a mapping")

    def refuse(self, problem: str, *keys: str) -> None:
        """Leave out a field, or without a key the whole mapping."""
        self.is_whole = False
        self._faults.append(ValueFault((*self._path, *keys), problem))

    def refuse_all_but(self, known: AbstractSet[str]) -> None:
        """Refuse each field of another name."""
        if not self.values.keys() <= known:
            for key in self.values:
                if key not in known:
                    self.refuse("is not a known field", key)

    def take(
        self, key: str, parse: Callable[[object], ValueT], default: DefaultT
    ) -> ValueT | DefaultT:
        """Return a parsed value; the default if it is absent, or if `parse` refuses it."""
        if key not in self.values:
            return default
        try:
            return parse(self.values[key])
        except ValueError as error:
            self.refuse(str(error), key)
            return default

    def require(self, key: str, parse: Callable[[object], ValueT]) -> ValueT | None:
        """Return the parsed value of a required key; None and a fault if it is missing or wrong."""
        if key in self.values:
            return self.take(key, parse, None)
        if self._is_mapping:
            self.refuse("is missing", key)
        return None

    def inner(self, key: str) -> _Fields:
        """Return the fields of the mapping at a key; none if it is absent."""
        return _Fields(self.values.get(key, {}), (*self._path, key), self._faults)

    def entries(self, key: str, parse: Callable[[object], ValueT]) -> dict[str, ValueT]:
        """Return the parsed values of the mapping at a key, without refused values."""
        fields = self.inner(key)
        found = ((name, fields.take(name, parse, None)) for name in fields.values)
        return {name: value for name, value in found if value is not None}

    def items(
        self, key: str, convert: Callable[[object], object] = lambda value: value
    ) -> list[_Fields]:
        """Return the items of the list at a key, each a mapping once it is converted."""
        rows = enumerate(self.take(key, _parse_list, list[Any]()))
        return [_Fields(convert(row), (*self._path, key, at), self._faults) for at, row in rows]


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")  # noqa: TRY004 - what is wrong with a field
    return value


def _parse_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected a list")  # noqa: TRY004 - what is wrong with a field
    return value


_TRUE: Final = frozenset({True, "true", "t", "yes", "y", "on", "1"})
_FALSE: Final = frozenset({False, "false", "f", "no", "n", "off", "0"})


def _parse_flag(value: object) -> bool:
    """Return a truth value; texts are those of YAML 1.1, which our YAML reads as texts."""
    word = value.lower() if isinstance(value, str) else value
    if not isinstance(word, str | int) or word not in _TRUE | _FALSE:
        raise ValueError("expected true or false")
    return word in _TRUE


def _parse_name(value: object) -> str:
    """Return a name; YAML reads the unquoted name 1001 as a number."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_number else _parse_text(value)


_ID_KINDS: Final = {str(kind): kind for kind in IdKind}


def _parse_id_kind(value: object) -> IdKind:
    kind = _ID_KINDS.get(str(value))
    if kind is None:
        raise ValueError(f"expected {', '.join(map(repr, _ID_KINDS))}")
    return kind


def _expand_taint(value: object) -> object:
    """Return a taint object for the text form `key=value:Effect`."""
    if not isinstance(value, str):
        return value
    pair, _, effect = value.rpartition(":") if ":" in value else (value, "", "NoSchedule")
    key, _, text = pair.partition("=")
    return {"key": key, "value": text, "effect": effect}


def _read_taints(fields: _Fields) -> tuple[str, ...]:
    taints = []
    for row in fields.items("taints", _expand_taint):
        key, value = row.require("key", _parse_text), row.take("value", _parse_text, "")
        effect = row.take("effect", _parse_text, "NoSchedule")
        if row.is_whole:
            taints.append(f"{key}={value}:{effect}")
    return tuple(taints)


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
    """The capacity, labels and taints of the node."""
    problems: tuple[str, ...] = ()
    """The fields of its entry that cannot be used and are left out."""

    @property
    def device(self) -> Device:
        """The node as a host device with its ids."""
        return Device(DeviceKind.HOST, self.name, tuple(self.ids))


_ADDRESS_KINDS: Final = {
    "Hostname": IdKind.HOSTNAME,
    "InternalDNS": IdKind.HOSTNAME,
    "ExternalDNS": IdKind.HOSTNAME,
    "InternalIP": IdKind.IP,
    "ExternalIP": IdKind.IP,
}
_GUIDS: Final = frozenset({IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.SYSTEM_IMAGE_GUID})
_OF_PORTS: Final = frozenset({IdKind.PORT_ID, IdKind.IFNAME, IdKind.IFINDEX})
_CHASSIS_SUBTYPES: Final = ("mac", "ip", "local", "ifname", "ifalias")


def parse_node(document: Mapping[str, object]) -> ListedNode:
    """Return the node of a decoded Node object; wrong fields are in its problems.

    Raises:
        ConfigError: it is not a Node, or has no usable name.
    """
    return parse_entry(document, ())


def parse_entry(row: object, refused: Sequence[ValueFault]) -> ListedNode:
    """Return the node of a row without the fields that are refused.

    Args:
        row: the decoded row.
        refused: parts that its document refuses, so that the row lacks them.

    Raises:
        ConfigError: the row names no node.
    """
    if not isinstance(row, Mapping):
        raise ConfigError("expected `nodes: [...]` or Node objects")
    faults = list(refused)
    if row.get("kind") == "Node":
        node = _read_kube_node(row, faults)
    elif "name" in row:
        node = _read_own_row(row, faults)
    else:
        raise ConfigError("expected `nodes: [{name: ...}]` or Node objects")
    if not faults:
        return node
    shown = [f"{fault}; it is left out" for fault in faults[:MAX_PROBLEMS]]
    more = len(faults) - MAX_PROBLEMS
    return replace(node, problems=(*shown, *([f"{more} more fields are left out"] * (more > 0))))


_OWN_FIELDS: Final = frozenset(
    {"name", "ids", "capacity", "free", "labels", "taints", "schedulable"}
)
_ID_FIELDS: Final = frozenset({"type", "value", "subtype"})


def _read_own_row(row: Mapping[str, Any], faults: list[ValueFault]) -> ListedNode:
    fields = _Fields(row, (), faults)
    name = _check_name(fields.take("name", _parse_name, ""), fields, faults)
    amounts = fields.entries("capacity", parse_exact_amount)
    capacity = {SLOTS: 1} | count_capacity(amounts)
    free = _read_free(fields, amounts, capacity, faults)
    labels, taints = fields.entries("labels", _parse_text), _read_taints(fields)
    is_open = fields.take("schedulable", _parse_flag, default=True)
    if _has_lost(faults, ("schedulable",), ("taints",)):
        is_open = False
    ids = _collect_ids(name, _iterate_ids(fields), faults, "ids")
    fields.refuse_all_but(_OWN_FIELDS)
    exclusion = None if is_open else Exclusion.UNSCHEDULABLE
    return ListedNode(name, ids, NodeSpec(name, capacity, free, labels, taints, exclusion))


def _iterate_ids(fields: _Fields) -> Iterator[tuple[IdKind, str, str]]:
    for row in fields.items("ids"):
        kind, value = row.require("type", _parse_id_kind), row.require("value", _parse_text)
        subtype = row.take("subtype", _parse_text, "")
        if row.is_whole and kind is not None and value is not None:
            yield kind, value, subtype
        row.refuse_all_but(_ID_FIELDS)


def _read_free(
    fields: _Fields,
    amounts: Mapping[str, Decimal],
    capacity: Mapping[str, int],
    faults: list[ValueFault],
) -> dict[str, int] | None:
    """Return the free capacity; an unreadable or impossible amount counts as used."""
    has_free = fields.values.get("free") is not None
    free = fields.entries("free", parse_exact_amount) if has_free else {}
    for name, amount in sorted(free.items()):
        if amount > amounts.get(name, amount):
            faults.append(ValueFault(("free", show(name, 64)), "is more than the capacity"))
    lost = [fault.path for fault in faults if fault.path[0] == "free"]
    if not has_free and not lost:
        return None
    used = {str(path[1]): 0 for path in lost if len(path) > 1}
    unread = dict.fromkeys(capacity, 0) if any(len(path) == 1 for path in lost) else {}
    return {**capacity, **unread, **count_capacity(free), **used}


def _read_kube_node(row: Mapping[str, Any], faults: list[ValueFault]) -> ListedNode:
    fields = _Fields(row, (), faults)
    metadata, status = fields.inner("metadata"), fields.inner("status")
    name = _check_name(metadata.require("name", _parse_text) or "", metadata, faults)
    labels = metadata.entries("labels", _parse_text)
    capacity = {SLOTS: 1} | count_capacity(status.entries("allocatable", parse_exact_amount))
    ids = _collect_ids(name, _iterate_addresses(status), faults, "addresses")
    host_name = labels.get(HOSTNAME_LABEL, "").strip()
    if host_name:
        ids = tuple(sorted({*ids, Id(IdKind.HOSTNAME, host_name)}))
    spec = fields.inner("spec")
    taints, is_cordoned = _read_taints(spec), spec.take("unschedulable", _parse_flag, default=False)
    is_unready = _is_unready(status)
    exclusion = None
    is_lost = ("status",) in [fault.path for fault in faults]
    if is_unready or is_lost or _has_lost(faults, ("status", "conditions")):
        exclusion = Exclusion.NOT_READY
    if is_cordoned or _has_lost(faults, ("spec",)):
        exclusion = Exclusion.UNSCHEDULABLE
    return ListedNode(
        name, ids, NodeSpec(name, capacity, labels=labels, taints=taints, exclusion=exclusion)
    )


def _iterate_addresses(status: _Fields) -> Iterator[tuple[IdKind, str, str]]:
    for row in status.items("addresses"):
        kind, address = row.require("type", _parse_text), row.require("address", _parse_text)
        if kind in _ADDRESS_KINDS and address is not None:
            yield _ADDRESS_KINDS[kind], address, ""


def _is_unready(status: _Fields) -> bool:
    """Return whether a node is not ready; a node without the condition Ready counts as ready.

    The kubelet writes True or False, and the node controller Unknown if the kubelet is silent.
    Source: kubernetes.io/docs/reference/node/node-status.
    """
    rows = [
        (row.require("type", _parse_text), row.require("status", _parse_text))
        for row in status.items("conditions")
    ]
    return any(kind == "Ready" and state != "True" for kind, state in rows)


def _has_lost(faults: Sequence[ValueFault], *parts: tuple[str, ...]) -> bool:
    """Return whether a value at or below one of these paths was left out."""
    return any(fault.path[: len(part)] == part for fault in faults for part in parts)


def _check_name(name: str, fields: _Fields, faults: Sequence[ValueFault]) -> str:
    """Return the name of a node, which is the first field that is read."""
    if not fields.is_whole:
        raise ConfigError(str(faults[-1]))
    if parse_node_name(name) is None:
        raise ConfigError(f"name: expected a Kubernetes node name, got '{show(name, 64)}'")
    return name


def _collect_ids(
    name: str, rows: Iterable[tuple[IdKind, str, str]], faults: list[ValueFault], field: str
) -> tuple[Id, ...]:
    """Return the usable ids, sorted, with the node's name; the others are faults of a field."""
    usable = {Id(IdKind.NODE_NAME, name)}
    for kind, text, subtype in rows:
        value = _normalize_id(kind, text, subtype)
        is_usable = kind is not IdKind.CHASSIS_ID or subtype in _CHASSIS_SUBTYPES
        if value and is_usable and kind not in _OF_PORTS:
            usable.add(Id(kind, value, subtype))
            continue
        if kind in _OF_PORTS:
            problem = f"{kind.value} identifies a port, and no node"
        elif not is_usable:
            problem = f"expected a subtype of {kind.value}: {', '.join(_CHASSIS_SUBTYPES)}"
        else:
            problem = f"expected a usable {kind.value}, got '{show(text, 64)}'"
        faults.append(ValueFault((field,), problem))
    return tuple(sorted(usable))


def _normalize_id(kind: IdKind, text: str, subtype: str) -> str | None:
    """Return an id in canonical form, so that it equals the id that agents and sweeps report."""
    if kind in _GUIDS:
        return parse_guid(text)
    if kind is IdKind.MAC or subtype == "mac":
        return parse_mac(text)
    if kind is IdKind.IP or subtype == "ip":
        try:
            return str(ipaddress.ip_address(text.strip()))
        except ValueError:
            return None
    return text.strip() or None
