"""Reports about devices read without the wire model, where they are as our writers render them.

A report of a host with eight HCAs has a hundred objects, and the wire model makes each of them
twice. Ten thousand such reports take seconds. Nearly all are plain: JSON types, ASCII texts, known
fields, values within the limits. The facts of a plain report are built directly, and any other
report is left to the wire model, which alone decides what is wrong with it. Pure.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import ValidationError

from topology.model.facts import (
    Capability,
    Device,
    Neighbor,
    Port,
    sort_capabilities,
)
from topology.model.ids import Id
from topology.model.validation import check_object
from topology.reports.closed_sets import (
    CAPABILITIES,
    DEVICE_KINDS,
    DISTANCES,
    ID_KINDS,
    MEDIA,
    SOURCES,
    STATES,
)
from topology.reports.neighbor_report import (
    API_VERSION,
    MAX_NUMA_NODE,
    MAX_RATE_BPS,
    MAX_TEXT,
    REPORT_KIND,
    ReportStatus,
    canonical_id,
)

MAX_NAME: Final = 253
_MAX_DEVICE_IDS: Final = 1024
MAX_PORTS: Final = 4096
_MAX_PORT_IDS: Final = 64
_MAX_PORT_NEIGHBORS: Final = 1024
_MAX_TTL_S: Final = 65_535
_SUBNET: Final = re.compile(r"[0-9a-f]{16}")
_REPORT_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
_SPEC_FIELDS: Final = frozenset({"device", "ports"})
DEVICE_FIELDS: Final = frozenset({"kind", "name", "ids"})
PORT_FIELDS: Final = frozenset(
    {
        *("name", "ids", "medium", "state", "rateBps", "bondMaster", "rdmaDevice", "pciAddress"),
        *("gpuDistance", "numaNode", "firmwareLldp", "subnet", "neighbors"),
    }
)
NEIGHBOR_FIELDS: Final = frozenset(
    {"ids", "name", "portIds", "portName", "source", "kind", "ttlSeconds", "capabilities"}
)
_KnownIds: TypeAlias = dict[tuple[Any, Any, Any], Id | None]
"""The ids of one report so far, by type, value and subtype; None for one that identifies nothing.
Ports repeat most ids of their device."""


class PlainReport(NamedTuple):
    """The report of a device."""

    name: str
    device: Device
    status: ReportStatus


class _NotPlainError(Exception):
    """A report has a value that only the wire model judges."""


def read_plain_report(document: object) -> PlainReport | None:
    """Return the report in a decoded document; None if it is not plain, even if it is valid.

    Equal to what `parse_report` and `extract_device` return. Cost: O(ids), about 0.5 µs each.
    """
    if type(document) is not dict or isinstance(
        check_object(document, REPORT_KIND, API_VERSION), str
    ):
        return None
    try:
        _check_fields(document, _REPORT_FIELDS)
        name = _read_name(document["metadata"])
        device = _read_device(document["spec"])
        status = ReportStatus.model_validate(document.get("status", {}))
    except (_NotPlainError, KeyError, TypeError, ValidationError):
        # A field is missing, or a value is not one of a list of texts, or is no text at all.
        return None
    return PlainReport(name, device, status)


def read_plain_port(row: object) -> Port | None:
    """Return the port in a decoded object; None if it is not plain."""
    try:
        return _read_port(row, {})
    except (_NotPlainError, KeyError, TypeError):
        return None


def _read_name(metadata: object) -> str:
    if type(metadata) is not dict:
        raise _NotPlainError
    name = _read_text(metadata["name"])
    if not 0 < len(name) <= MAX_NAME:
        raise _NotPlainError
    return name


def _read_device(spec: Any) -> Device:  # noqa: ANN401 - JSON
    _check_fields(spec, _SPEC_FIELDS)
    device = spec["device"]
    _check_fields(device, DEVICE_FIELDS)
    known: _KnownIds = {}
    return Device(
        kind=DEVICE_KINDS[device["kind"]],
        name=_read_text(device["name"]),
        ids=_read_ids(device.get("ids", ()), _MAX_DEVICE_IDS, known),
        ports=tuple([_read_port(port, known) for port in _rows(spec.get("ports", ()), MAX_PORTS)]),
    )


def _read_port(row: Any, known: _KnownIds) -> Port:  # noqa: ANN401 - JSON
    _check_fields(row, PORT_FIELDS)
    get = row.get
    firmware_lldp, subnet = get("firmwareLldp"), get("subnet")
    if firmware_lldp is not None and type(firmware_lldp) is not bool:
        raise _NotPlainError
    if subnet is not None and not _SUBNET.fullmatch(subnet):
        raise _NotPlainError
    neighbors = _rows(get("neighbors", ()), _MAX_PORT_NEIGHBORS)
    return Port(
        _read_text(row["name"]),
        _read_ids(get("ids", ()), _MAX_PORT_IDS, known),
        MEDIA[row["medium"]],
        STATES[get("state", "unknown")],
        _read_number(get("rateBps"), MAX_RATE_BPS),
        _read_optional(get("bondMaster")),
        _read_optional(get("rdmaDevice")),
        _read_optional(get("pciAddress")),
        DISTANCES[get("gpuDistance")],
        tuple([_read_neighbor(neighbor, known) for neighbor in neighbors]),
        _read_number(get("numaNode"), MAX_NUMA_NODE),
        firmware_lldp,
        subnet,
    )


def _read_neighbor(row: Any, known: _KnownIds) -> Neighbor:  # noqa: ANN401 - JSON
    _check_fields(row, NEIGHBOR_FIELDS)
    get = row.get
    return Neighbor(
        _read_ids(get("ids", ()), _MAX_PORT_IDS, known),
        _read_text(get("name", "")),
        _read_ids(get("portIds", ()), _MAX_PORT_IDS, known),
        _read_text(get("portName", "")),
        SOURCES[row["source"]],
        DEVICE_KINDS[get("kind", "unknown")],
        _read_number(get("ttlSeconds"), _MAX_TTL_S),
        _read_capabilities(get("capabilities", ())),
    )


def _read_capabilities(words: Any) -> tuple[Capability, ...]:  # noqa: ANN401 - JSON
    return sort_capabilities(CAPABILITIES[word] for word in _rows(words, len(Capability)))


def _read_ids(rows: object, limit: int, known: _KnownIds) -> tuple[Id, ...]:
    """Return ids sorted and in canonical form, as the wire model's are."""
    found: dict[Id, None] = {}
    for row in _rows(rows, limit):
        if type(row) is not dict or not 2 <= len(row) <= 3:  # noqa: PLR2004 - without a subtype or with
            raise _NotPlainError
        key = row["type"], row["value"], row["subtype"] if len(row) > 2 else None  # noqa: PLR2004
        if key not in known:
            kind, value, subtype = key
            known[key] = canonical_id(
                ID_KINDS[kind], _read_text(value), _read_optional(subtype) or ""
            )
        if (identifier := known[key]) is not None:
            found[identifier] = None
    return tuple(sorted(found))


def _check_fields(row: object, fields: frozenset[str]) -> None:
    if type(row) is not dict or not row.keys() <= fields:
        raise _NotPlainError


def _rows(rows: Any, limit: int) -> Any:  # noqa: ANN401 - JSON
    """Return a list that is not too long; () stands for a list that is left out."""
    if (type(rows) is not list and rows != ()) or len(rows) > limit:
        raise _NotPlainError
    return rows


def _read_text(text: object) -> str:
    """Return an ASCII text: other texts may hold what the wire model refuses."""
    if type(text) is not str or len(text) > MAX_TEXT or not text.isascii():
        raise _NotPlainError
    return text


def _read_optional(text: object) -> str | None:
    return None if text is None else _read_text(text)


def _read_number(number: object, limit: int) -> int | None:
    if number is None:
        return None
    if type(number) is not int or not 0 <= number <= limit:
        raise _NotPlainError
    return number
