"""Inspects a file by its content alone: its format, counts and bad lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from generator.ingest.captures import DumpFormat, detect_dump_format, parse_dump
from generator.objects.inventory import parse_nodes
from generator.objects.yaml_document import YamlDocument, parse_documents
from generator.outputs.hypernode.model import parse_manifest
from generator.placement.request import parse_request
from topology.model.errors import CutInput, ParseError, TopologyError
from topology.model.facts import Device, DeviceKind, Neighbor, ParseResult
from topology.model.ids import IdKind
from topology.model.text import to_utf8
from topology.model.tree import parse_tree
from topology.reports.fabric_status import FABRIC_KIND, parse_fabric
from topology.reports.neighbor_report import parse_report
from topology.sources.cabling.formats import parse_cabling
from topology.sources.host.nvidia_smi import derive_clique, parse_gpu_fabrics
from topology.sources.lldp.lldpcli import parse_chassis, parse_neighbors
from topology.sources.lldp.pcap import is_saved_frames, parse_saved_frames
from topology.sources.lldp_mib.walk import parse_snmpwalk_text
from topology.sources.unsupported_formats import explain_output

_HEAD_BYTES: Final = 64 * 1024
_WALK = re.compile(rb"^(?:iso|\.?1)\.[03]\.\d[\d.]*(?: ?= ?[A-Z\"]|\|\d)", re.MULTILINE)
_GPUS = re.compile(
    rb"^=+NVSMI LOG=+\s*$|^GPU [0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\s*$"
    rb"|^fabric\.state,", re.MULTILINE | re.IGNORECASE
)  # fmt: skip
_NETBOX = re.compile(rb'"(?:a_terminations|termination_a\w*)"\s*:')
_NODE_LIST = re.compile(
    r'\s*\{\s*"nodes"\s*:\s*\['
    r'|\s*\{\s*"apiVersion"\s*:\s*"v1"\s*,\s*(?:"kind"\s*:\s*"(?:Node)?List"\s*,\s*)?'
    r'"items"\s*:\s*\[\s*\{\s*"apiVersion"\s*:\s*"v1"\s*,\s*"kind"\s*:\s*"Node"'
)
_NVLINK: Final = "nvidia-smi"
_LLDP = re.compile(rb'"(lldp|local-chassis)"\s*:|^lldp\.[^=\n]+=|<lldp\b', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FileInspection:
    """The format and the counts of one file."""

    format: str
    """A value of `DumpFormat`, lldpcli-neighbors, lldpcli-chassis, frames, snmpwalk, nvidia-smi,
    `cabling-` and the form of a plan, nodes, unknown, or the kind of an object; several kinds are
    joined by a comma."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """By name, such as `devices`, `links` or `bad_lines`."""
    unresolved_guids: tuple[str, ...] = ()
    """GUIDs of CAs whose description names no host."""
    problems: tuple[ParseError, ...] = ()


def inspect_bytes(raw: bytes, *, source: str) -> FileInspection:
    """Return the format and counts of a file; never raises on any bytes."""
    raw = to_utf8(raw)
    if not raw.strip():
        return _build_unknown("empty: expected a capture or an object", source)
    return _inspect_frames(raw, source) if is_saved_frames(raw) else _inspect_text(raw, source)


def _inspect_text(raw: bytes, source: str) -> FileInspection:
    head = raw[:_HEAD_BYTES]
    if _WALK.match(head):
        return _inspect_walk(raw, source)
    lldp = _LLDP.search(head)
    if lldp:
        is_chassis = lldp.group(1) == b"local-chassis"
        return _inspect_chassis(raw, source) if is_chassis else _inspect_neighbors(raw, source)
    known = explain_output(head.decode("utf-8", "replace"))
    if known:
        return _build_unknown(known, source)
    form = detect_dump_format(raw)
    if form is not None:
        return _inspect_dump(form, parse_dump(raw, source=source))
    if _GPUS.search(head):
        return _inspect_gpus(raw, source)
    return _inspect_cabling_plan(raw, source) or _inspect_objects(raw, source)


def inspect_strictly(raw: bytes, *, source: str) -> FileInspection:
    """Return the format and counts of a file; of a file with any bad line, only the problems.

    The problems contain every bad line. Such a file must not be relied on.
    """
    inspection = inspect_bytes(raw, source=source)
    return (
        _build_refused(inspection.format, inspection.problems)
        if inspection.problems
        else inspection
    )


def _build_refused(form: str, problems: tuple[ParseError, ...]) -> FileInspection:
    return FileInspection(form, {"bad_lines": _count_bad_lines(problems)}, (), problems)


def _count_bad_lines(problems: Iterable[ParseError]) -> int:
    """Return how many problems are about a line; the problem of a missing end is not."""
    return sum(not isinstance(problem, CutInput) for problem in problems)


def _build_unknown(problem: str, source: str) -> FileInspection:
    return FileInspection("unknown", {}, (), (ParseError(problem, source=source),))


def _inspect_dump(form: DumpFormat, parsed: ParseResult) -> FileInspection:
    names = {
        DeviceKind.SWITCH: "switches",
        DeviceKind.HOST: "cas",
        DeviceKind.AGGREGATION: "aggregation_nodes",
        DeviceKind.ROUTER: "routers",
    }
    counts = dict.fromkeys(names.values(), 0)
    for device in parsed.devices:
        counts[names[device.kind]] += 1
    counts |= _count_wiring(parsed.devices) | {"bad_lines": _count_bad_lines(parsed.errors)}
    unresolved = tuple(
        id_.value
        for device in parsed.devices
        if device.kind is DeviceKind.HOST and not device.name
        for id_ in device.ids
        if id_.kind is IdKind.NODE_GUID
    )
    return FileInspection(form.value, counts, unresolved, parsed.errors)


def _inspect_frames(raw: bytes, source: str) -> FileInspection:
    saved = parse_saved_frames(raw, source=source)
    counts = {
        "frames": saved.num_frames,
        "lldp_frames": saved.num_lldp,
        "neighbors": len(saved.neighbors),
        "devices": _count_senders(saved.neighbors),
        "bad_tlvs": len(saved.errors),
    }
    return FileInspection("frames", counts, (), saved.errors)


def _count_senders(neighbors: Iterable[Neighbor]) -> int:
    return len({(neighbor.device_ids, neighbor.device_name) for neighbor in neighbors})


def _count_wiring(devices: Iterable[Device]) -> dict[str, int]:
    """Count devices, ports, neighbors, and links as unordered pairs of ports."""
    devices = tuple(devices)
    links: set[frozenset[object]] = set()
    for device in devices:
        for port in device.ports:
            own = _build_port_key(port.ids) or (device.ids, port.name)
            for neighbor in port.neighbors:
                far = _build_port_key(neighbor.port_ids) or (
                    neighbor.device_ids,
                    neighbor.port_ids,
                    neighbor.port_name,
                )
                links.add(frozenset((own, far)))
    ports = [port for device in devices for port in device.ports]
    return {
        "devices": len(devices),
        "ports": len(ports),
        "neighbors": sum(len(port.neighbors) for port in ports),
        "links": len(links),
    }


def _build_port_key(ids: Iterable[Any]) -> tuple[str, str] | None:
    return next((id_[1:] for id_ in ids if id_.kind is IdKind.NODE_GUID and id_.subtype), None)


def _inspect_neighbors(raw: bytes, source: str) -> FileInspection:
    parsed = parse_neighbors(raw, source=source)
    neighbors = [neighbor for _, neighbors in parsed.ports for neighbor in neighbors]
    counts = {
        "ports": len(parsed.ports),
        "neighbors": len(neighbors),
        "devices": _count_senders(neighbors),
        "bad_lines": len(parsed.errors),
    }
    return FileInspection("lldpcli-neighbors", counts, (), parsed.errors)


def _inspect_chassis(raw: bytes, source: str) -> FileInspection:
    device, errors = parse_chassis(raw, source=source)
    counts = {"devices": int(device is not None), "bad_lines": len(errors)}
    return FileInspection("lldpcli-chassis", counts, (), errors)


def _inspect_walk(raw: bytes, source: str) -> FileInspection:
    device, errors = parse_snmpwalk_text(raw, source=source)
    counts = _count_wiring([device] if device else []) | {"bad_lines": len(errors)}
    return FileInspection("snmpwalk", counts, (), errors)


def _inspect_gpus(raw: bytes, source: str) -> FileInspection:
    gpus, errors = parse_gpu_fabrics(raw.decode("utf-8", "replace"), source=source)
    counts = {"gpus": len(gpus), "cliques": int(derive_clique(gpus).clique is not None)}
    return FileInspection(_NVLINK, counts | {"bad_lines": len(errors)}, (), errors)


def _inspect_cabling_plan(raw: bytes, source: str) -> FileInspection | None:
    """Return the counts of a cabling plan, None if the file is not a plan.

    Of JSON files, only NetBox exports with their own keys are plans.
    """
    head = raw[:_HEAD_BYTES].lstrip()
    if head.startswith((b"{", b"[")) and not _NETBOX.search(head):
        return None
    plan = parse_cabling(raw, source=source)
    if not plan.form:
        return None
    counts = {"cables": len(plan.cables), "bad_lines": len(plan.errors)}
    return FileInspection(f"cabling-{plan.form}", counts, (), plan.errors)


def _inspect_objects(raw: bytes, source: str) -> FileInspection:
    if _NODE_LIST.match(raw[:_HEAD_BYTES].decode("utf-8", "replace")):
        return _inspect_nodes(raw, source)
    formats: dict[str, None] = {}
    counts: dict[str, int] = {}
    problems: list[ParseError] = []
    documents: list[YamlDocument] = []
    for document in parse_documents(raw, source=source):
        if isinstance(document, ParseError):
            problems.append(document)
        else:
            documents.append(document)
    if any(_is_node_list(document.value) for document in documents):
        documents.clear()  # a large list must not be in memory twice
        return _inspect_nodes(raw, source)
    for document in documents:
        try:
            name, more = _inspect_object(document.value)
        except TopologyError as error:
            problems.append(ParseError(str(error), source=source, line=document.line))
            continue
        formats[name] = None
        for key, count in more.items():
            counts[key] = counts.get(key, 0) + count
    if not formats and not problems:
        return _build_unknown("the file contains no object", source)
    counts["bad_documents"] = len(problems)
    return FileInspection(", ".join(formats) or "unknown", counts, (), tuple(problems))


def _inspect_nodes(raw: bytes, source: str) -> FileInspection:
    inventory = parse_nodes(raw, source=source)
    return FileInspection("nodes", {"nodes": len(inventory.nodes)}, (), inventory.problems)


def _is_node_list(value: object) -> bool:
    return isinstance(value, Mapping) and (value.get("kind") == "Node" or "nodes" in value)


def _inspect_object(value: object) -> tuple[str, dict[str, int]]:
    """Return (format, counts) of one decoded document.

    Raises:
        TopologyError: the kind is unknown, or the object is malformed.
    """
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if kind == "HyperNode":
        hypernode = parse_manifest(value)
        return "HyperNode", {"hypernodes": 1, "members": len(hypernode.members)}
    if kind == "TopologyTree" and isinstance(value, Mapping):
        tree = parse_tree(value)
        unplaced = len(tree.unplaced)
        return kind, {"domains": len(tree.domains), "nodes": len(tree.nodes), "unplaced": unplaced}
    if kind == "PlacementRequest" and isinstance(value, Mapping):
        return kind, {"groups": len(parse_request(value).groups)}
    if kind == FABRIC_KIND:
        status = parse_fabric(value)
        return FABRIC_KIND, {"fabrics": 1, "sweepers": len(status.sweepers)}
    report = parse_report(value)
    device = report.device
    counts = {"sweep_parts": 1} if device is None else _count_wiring([device])
    return "NeighborReport", {"reports": 1} | counts
