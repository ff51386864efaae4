"""The targets: one per parser, and one that applies plans and cuts them off.

A target takes any bytes and raises only on a defect.

A target ignores the documented exceptions of its parser and checks its result: errors are one
printable line, facts fit a report, and both parsers of a format give equal results.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Final

from google.protobuf.message import DecodeError

from generator.ingest.claims import build_claims
from generator.jobs.running_jobs import find_job, parse_job_pod
from generator.manifests.manifest_request import translate, translate_job
from generator.manifests.slurm.batch_job import parse_batch_job
from generator.manifests.slurm.command_line import is_script
from generator.objects.inventory import parse_nodes
from generator.objects.plane_config import parse_planes
from generator.objects.tree_record import parse_tree_record, render_tree_record
from generator.objects.yaml_document import YamlDocument, parse_documents
from generator.placement.request import parse_request
from generator.rpc.messages.answers import decode_placement, encode_placement
from generator.rpc.messages.pages import parse_token
from generator.rpc.messages.requests import decode_request, encode_request
from generator.rpc.status_errors import CallAbortedError
from generator.rpc.toponaut.v1 import placement_pb2 as pb
from generator.simulation.replay.trace import parse_trace
from generator.switches.targets import parse_switches
from tests.fuzz import seeds
from tests.generator.reconcile.applies import Cabling, Step, check_ends_alike
from tests.packed_reports import packed
from tests.topology.source_views import listed_agents
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.findings.silences import parse_silences
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.errors import ConfigError, ParseError, PlacementRequestError, ReportError
from topology.model.facts import Device, DeviceKind, FindingKind, Port
from topology.model.tree import parse_tree, render_tree
from topology.reports.fabric_status import parse_fabric, render_fabric
from topology.reports.neighbor_report import build_report, parse_report, render_report
from topology.sources.cabling.formats import parse_cabling
from topology.sources.host.linux_nics import parse_firmware_lldp, parse_permanent_macs
from topology.sources.host.nvidia_smi import build_clique_port, derive_clique, parse_gpu_fabrics
from topology.sources.infiniband.ibdiagnet_db import parse_ibdiagnet_db
from topology.sources.infiniband.ibdiagnet_net_dump import parse_ibdiagnet_net_dump
from topology.sources.infiniband.subnet_lst import parse_subnet_lst
from topology.sources.infiniband.sysfs import parse_ib_sysfs
from topology.sources.lldp.lldpcli import parse_chassis, parse_neighbors
from topology.sources.lldp.lldpdu import parse_frame
from topology.sources.lldp.pcap import parse_saved_frames
from topology.sources.lldp_mib.walk import parse_snmpwalk_text

SOURCE: Final = "fuzzed"
NUM_NODES: Final = 8
NUM_LEAVES: Final = 5
STEP_BYTES: Final = NUM_NODES + NUM_LEAVES + 1
MAX_STEPS: Final = 6
NO_CUT: Final = 16
"""From this value on, the last byte of a step means that it is not cut off."""
YAML_BYTES: Final = 64 << 10
"""YAML takes its time, 1 MB of it a second or more; text that starts with `{` does not."""
GRAPH_BYTES: Final = 256 << 10
"""A graph of nothing but marks takes 3 µs for each of them."""
ANSWER_BYTES: Final = 128 << 10
"""A message in an answer may have only three bytes; decoding and encoding each takes 7 µs."""
PAIR_BYTES: Final = 128 << 10
"""A walk may be a port and a neighbor per line, which are parsed once and joined twice."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser, and its seeds."""

    run: Callable[[bytes], None]
    """Raises on a defect of the parser only."""
    seeds: Callable[[], Iterable[bytes]]
    max_bytes: int = 1 << 20
    """Inputs up to this size must finish within the time limit of `verdicts`."""


def _check_errors(errors: Iterable[ParseError]) -> None:
    for error in errors:
        text = str(error)
        assert text.isprintable(), f"an error is not a printable line: {text!r}"


def _check_fits(device: Device) -> None:
    """Fail if the facts of a node cannot be published."""
    parse_report(render_report(build_report(device, name="node")))


def _node(ports: Iterable[Port]) -> Device:
    return Device(DeviceKind.HOST, "node", (), tuple(ports))


def _documents(raw: bytes) -> list[object]:
    parsed = list(parse_documents(raw, source=SOURCE))
    _check_errors(item for item in parsed if isinstance(item, ParseError))
    return [item.value for item in parsed if isinstance(item, YamlDocument)]


def _lldpcli(raw: bytes) -> None:
    found = parse_neighbors(raw, source=SOURCE)
    _check_errors(found.errors)
    _check_fits(_node(Port(name=name, neighbors=heard) for name, heard in found.ports))
    device, errors = parse_chassis(raw, source=SOURCE)
    _check_errors(errors)
    if device is not None:
        _check_fits(device)


def _lldpdu(raw: bytes) -> None:
    frame = parse_frame(raw, source=SOURCE)
    _check_errors(frame.errors)
    if frame.pdu is not None:
        _check_fits(_node([Port(name="eth0", neighbors=(frame.pdu.neighbor,))]))


def _ibnetdiscover(raw: bytes) -> None:
    found = parse_ibnetdiscover(raw, source=SOURCE)
    _check_errors(found.errors)
    by_line = parse_ibnetdiscover(_make_unusual(raw), source=SOURCE)
    assert tuple(found.devices) == tuple(by_line.devices), "read in blocks, devices differ"
    assert list(map(str, found.errors)) == list(map(str, by_line.errors)), "... or errors"


def _make_unusual(raw: bytes) -> bytes:
    """Return a text whose lines are read one by one: a blank before each changes nothing else."""
    return raw.removeprefix(codecs.BOM_UTF8).replace(b"\n", b"\n ")


def _fabric_dumps(raw: bytes) -> None:
    for parse in (parse_ibdiagnet_db, parse_ibdiagnet_net_dump, parse_subnet_lst):
        found = parse(raw, source=SOURCE)
        _check_errors(found.errors)
        for device in found.devices:
            _check_fits(device)


def _ib_sysfs(raw: bytes) -> None:
    found = parse_ib_sysfs(dict(seeds.sysfs_files(raw)), source=SOURCE)
    _check_errors(found.errors)
    for device in found.devices:
        _check_fits(device)


def _lldp_mib(raw: bytes) -> None:
    device, errors = parse_snmpwalk_text(raw, source=SOURCE)
    _check_errors(errors)
    if device is not None:
        _check_fits(device)


def _cabling(raw: bytes) -> None:
    _check_errors(parse_cabling(raw, source=SOURCE).errors)


def _report(raw: bytes) -> None:
    for document in _documents(raw):
        with suppress(ReportError):
            report = parse_report(document)
            assert parse_report(render_report(report)) == report
            _check_errors(build_claims(packed([report])).problems)


def _inventory(raw: bytes) -> None:
    _check_errors(parse_nodes(raw, source=SOURCE).problems)


def _tree(raw: bytes) -> None:
    for document in _documents(raw):
        with suppress(ConfigError):
            tree = parse_tree(document if isinstance(document, Mapping) else {})
            assert parse_tree(render_tree(tree)) == tree


def _placement_request(raw: bytes) -> None:
    for document in _documents(raw):
        with suppress(PlacementRequestError):
            given = document if isinstance(document, dict) else {}
            request = parse_request(given)
            assert decode_request(encode_request(given)) == request


def _manifests(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    try:
        if is_script(text):
            found = translate_job(parse_batch_job((), text))
        else:
            found = translate([*enumerate(_documents(raw), 1)])
    except PlacementRequestError as error:
        _check_errors([ParseError(str(error))])
        return
    said = (*map(str, found.ignored), *map(str, found.notes))
    _check_errors(ParseError(line) for line in said)
    with suppress(PlacementRequestError):
        parse_request(found.document)


def _running_pods(raw: bytes) -> None:
    pods = []
    for document in _documents(raw):
        with suppress(PlacementRequestError):
            pods.append(parse_job_pod(document if isinstance(document, Mapping) else {}))
    with suppress(ConfigError):
        find_job("train", [pod for pod in pods if pod is not None])


def _job_trace(raw: bytes) -> None:
    with suppress(ConfigError):
        lines = io.StringIO(raw.decode("utf-8", "replace"), newline="")
        found = parse_trace(lines, source=SOURCE)
        _check_errors(found.problems)
        assert list(found.jobs) == sorted(found.jobs)


def _grpc(raw: bytes) -> None:
    with suppress(DecodeError, PlacementRequestError):
        decode_request(pb.PlacementSpec.FromString(raw))
    with suppress(CallAbortedError):
        parse_token(pb.CapacityRequest(), raw.decode("utf-8", "replace"), (str, int))


def _grpc_answers(raw: bytes) -> None:
    with suppress(DecodeError, ValueError):
        answer = decode_placement(pb.Placement.FromString(raw))
        # Compare texts, because NaN is not equal to itself.
        assert str(decode_placement(encode_placement(answer))) == str(answer)


def _switches(raw: bytes) -> None:
    with suppress(ConfigError):
        parse_switches(raw, source=SOURCE, read_secret=lambda _name: "a-long-enough-secret")


def _nvidia_smi(raw: bytes) -> None:
    gpus, errors = parse_gpu_fabrics(raw.decode("utf-8", "replace"), source=SOURCE)
    _check_errors(errors)
    found = derive_clique(gpus)
    assert found.note.isprintable()
    _check_fits(_node([build_clique_port(found.clique)] if found.clique else ()))


def _planes(raw: bytes) -> None:
    with suppress(ConfigError):
        parse_planes(raw, source=SOURCE)


def _silences(raw: bytes) -> None:
    for document in _documents(raw):
        with suppress(ConfigError):
            parse_silences(document, kinds=[kind.value for kind in FindingKind])


def _fabric_object(raw: bytes) -> None:
    for document in _documents(raw):
        with suppress(ConfigError):
            status = parse_fabric(document)
            assert parse_fabric(render_fabric(status)) == status


def _tree_record(raw: bytes) -> None:
    for document in _documents(raw):
        with suppress(ConfigError):
            record = parse_tree_record(document)
            assert parse_tree_record(render_tree_record(record)) == record


def _interrupted_applies(raw: bytes) -> None:
    """Read steps of 14 bytes: the leaf of each node, the spine of each leaf, and the cut."""
    steps = []
    for at in range(0, min(len(raw), MAX_STEPS * STEP_BYTES), STEP_BYTES):
        row = raw[at : at + STEP_BYTES].ljust(STEP_BYTES, b"\0")
        leaves = tuple(byte % NUM_LEAVES for byte in row[:NUM_NODES])
        spines = tuple(byte % 2 for byte in row[NUM_NODES:-1])
        if any(leaves):
            steps.append(Step(Cabling(leaves, spines), row[-1] if row[-1] < NO_CUT else None))
    if steps:
        check_ends_alike(steps)


def _pcap(raw: bytes) -> None:
    _check_errors(parse_saved_frames(raw, source=SOURCE).errors)


def _source_pairs(raw: bytes) -> None:
    """Join two inputs as sources of one fabric: a capture and a walk.

    The order has no effect, every true cable stays, and no two true devices are joined.
    """
    capture, _, walk = raw.partition(seeds.SOURCE_MARK)
    found = parse_neighbors(capture, source=SOURCE)
    ports = tuple(Port(name=name, neighbors=heard) for name, heard in found.ports)
    walked, _ = parse_snmpwalk_text(walk, source=SOURCE)
    own = (Device(DeviceKind.UNKNOWN, "capture", (), ports), walked)
    more = [
        Claim(device, origin)
        for device, origin in zip(own, (Origin.CAPTURE, Origin.REPORT), strict=True)
        if device is not None
    ]
    fabrics = [build_fabric(claims) for claims in ((*more, *_TRUE), (*_TRUE, *reversed(more)))]
    first, second = ([fabric.devices, fabric.links, fabric.findings] for fabric in fabrics)
    assert list(map(list, first)) == list(map(list, second)), "the order of sources matters"
    nodes = {device.node for device in fabrics[0].devices}
    assert nodes >= _TRUE_NODES, "a node was joined with another device"


_TRUE: Final = listed_agents("rails")
_TRUE_NODES: Final = frozenset(claim.name for claim in _TRUE if claim.origin is Origin.INVENTORY)


def _node_texts(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    parse_firmware_lldp(text)
    parse_permanent_macs(text)


TARGETS: Final[Mapping[str, Target]] = {
    "lldpcli": Target(_lldpcli, lambda: seeds.inputs("lldpcli")),
    "lldpdu": Target(_lldpdu, seeds.frames),
    "pcap": Target(_pcap, seeds.captures),
    "ibnetdiscover": Target(_ibnetdiscover, lambda: seeds.inputs("ibnetdiscover")),
    "fabric_dumps": Target(
        _fabric_dumps, lambda: chain(seeds.inputs("ibdiagnet"), seeds.inputs("opensm"))
    ),
    "ib_sysfs": Target(_ib_sysfs, seeds.sysfs),
    "lldp_mib": Target(_lldp_mib, lambda: seeds.inputs("lldp_mib")),
    "cabling": Target(_cabling, lambda: seeds.inputs("cabling"), GRAPH_BYTES),
    "report": Target(_report, seeds.reports, YAML_BYTES),
    "inventory": Target(_inventory, seeds.inventories, YAML_BYTES),
    "tree": Target(_tree, seeds.trees, YAML_BYTES),
    "placement_request": Target(_placement_request, seeds.requests, YAML_BYTES),
    "manifests": Target(_manifests, lambda: seeds.inputs("manifests"), YAML_BYTES),
    "running_pods": Target(_running_pods, seeds.pods, YAML_BYTES),
    "job_trace": Target(_job_trace, seeds.traces),
    "grpc": Target(_grpc, seeds.request_messages),
    "grpc_answers": Target(_grpc_answers, seeds.answer_messages, ANSWER_BYTES),
    "switches": Target(_switches, seeds.switches, YAML_BYTES),
    "nvidia_smi": Target(_nvidia_smi, lambda: seeds.inputs("nvidia_smi")),
    "planes": Target(_planes, seeds.planes, YAML_BYTES),
    "silences": Target(_silences, seeds.silences, YAML_BYTES),
    "fabric_object": Target(_fabric_object, seeds.fabric_objects, YAML_BYTES),
    "tree_record": Target(_tree_record, seeds.tree_records, YAML_BYTES),
    "interrupted_applies": Target(
        _interrupted_applies, seeds.interrupted_applies, MAX_STEPS * STEP_BYTES
    ),
    "node_texts": Target(_node_texts, seeds.node_texts),
    "source_pairs": Target(_source_pairs, seeds.source_pairs, PAIR_BYTES),
}
