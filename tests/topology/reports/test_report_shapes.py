"""Reports that are read by the shapes of their ports."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from generator.ingest.claims import build_claims
from generator.ingest.heard_devices import find_heard
from generator.ingest.host_evidence import list_host_ports, read_host_ports
from generator.observe.port_findings import read_hosts
from tests.effort import examples
from tests.topology.reports.test_neighbor_report import DEVICES
from tests.topology.reports.test_plain_reports import FABRICS, ODD_VALUES, replaced, slots_of
from topology.model.claims import Claim
from topology.model.errors import ReportError
from topology.model.facts import Device, DeviceKind, Medium, Port, PortState
from topology.model.ids import IdKind
from topology.reports.compact_reports import CompactReport, compact_document, compact_file
from topology.reports.host_summaries import outline_host, summarize_host
from topology.reports.neighbor_report import build_report, render_report, swept_ports_of
from topology.reports.packed_devices import shape_device
from topology.reports.report_shapes import ReportShapes
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
)

HEARD = [
    row.device
    for row in report_claims(
        build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 4, medium=Medium.ETHERNET)))
    )
]
STATUS = {
    "observedAt": "2026-11-22T10:00:00Z",
    "agentVersion": "1",
    "collectors": [{"name": "lldpd", "outcome": "ok", "message": ""}],
    "flapping": ["eth0"],
}
DOCUMENTS = [
    {**render_report(build_report(device, name=device.name)), "status": STATUS}
    for devices in [*FABRICS, HEARD]
    for device in devices
]
TEXTS = st.one_of(
    st.sampled_from([one for one in ODD_VALUES if isinstance(one, str)]),
    st.sampled_from(["node-0001", "2099-01-01T00:00:00Z", "02:00:00:00:00:01", "\\", '"', "é"]),
    st.text(max_size=20),
)


def written(document: Any) -> bytes:  # noqa: ANN401 - JSON
    return json.dumps(document).encode()


def learned(documents: Sequence[Any]) -> ReportShapes:
    """Return the shapes of documents, each of which was read often enough."""
    shapes = ReportShapes()
    for document in documents:
        for _ in range(5):
            compact_file(written(document), shapes)
    return shapes


def read_usually(raw: bytes) -> CompactReport | None:
    try:
        return compact_document(json.loads(raw))
    except (ReportError, ValueError):
        return None


@pytest.mark.parametrize("devices", [*FABRICS, HEARD])
def test_reports_are_read_by_the_shapes_of_their_ports(devices: Sequence[Any]) -> None:
    shapes, num_ports = ReportShapes(), 0
    for device in [*devices] * 5:
        raw = written(render_report(build_report(device, name=device.name)))
        found = compact_file(raw, shapes)
        assert found in (None, compact_document(json.loads(raw)))
        num_ports += len(device.ports)
    assert shapes.num_by_pattern >= num_ports * 3 / 5


def test_it_does_not_matter_which_ports_are_down() -> None:
    """Every report lacks other cables; after the first ones, no port is read in the usual way."""
    documents = [one for one in DOCUMENTS if one["spec"].get("ports")]
    shapes = learned([with_down_ports(one, range(len(one["spec"]["ports"]))) for one in documents])
    for document in [*documents, *documents]:
        compact_file(written(document), shapes)
    for number in range(1, 12):
        for document in documents:
            ports = document["spec"]["ports"]
            damaged = with_down_ports(document, range(0, len(ports), number))
            before, raw = shapes.num_by_pattern, written(damaged)
            assert compact_file(raw, shapes) == compact_document(damaged)
            assert shapes.num_by_pattern == before + len(ports)


def with_down_ports(document: Any, numbers: Iterable[int]) -> Any:  # noqa: ANN401 - JSON
    """Return a report in which some ports are down and hear nothing."""
    ports = list(document["spec"]["ports"])
    for number in numbers:
        port = {key: value for key, value in ports[number].items() if key != "neighbors"}
        ports[number] = {**port, "state": "down"}
    return replaced(document, ("spec", "ports"), ports)


@given(DEVICES, st.sampled_from([{}, {"status": STATUS}]))
@settings(max_examples=examples(100))
def test_any_report_is_read_as_usual(device: Any, status: Any) -> None:  # noqa: ANN401
    document = {**render_report(build_report(device, name="node-1")), **status}
    raw = written(document)
    assert compact_file(raw, learned([document])) in (None, read_usually(raw))


@given(st.sampled_from(DOCUMENTS), st.data())
@settings(max_examples=examples(300))
def test_another_text_is_read_as_usual(document: Any, data: st.DataObject) -> None:  # noqa: ANN401
    shapes, changed = learned([document]), document
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(slots_of(changed))))
        changed = replaced(changed, path, data.draw(TEXTS))
        if not isinstance(changed, dict):
            return
    raw = written(changed)
    found = compact_file(raw, shapes)
    assert found in (None, read_usually(raw))


@pytest.mark.parametrize("kind", ["mac", "port-guid", "node-guid"])
def test_an_empty_id_is_read_as_usual(kind: str) -> None:
    pattern = rf'"type": "{kind}", "value": "[^"]+"'
    document = next(one for one in DOCUMENTS if re.search(pattern, written(one).decode()))
    emptied = re.sub(pattern, f'"type": "{kind}", "value": ""', written(document).decode())
    raw = emptied.encode()
    assert compact_file(raw, learned([document])) in (None, read_usually(raw))


@given(st.sampled_from(DOCUMENTS), st.data())
@settings(max_examples=examples(200))
def test_another_value_is_read_as_usual(document: Any, data: st.DataObject) -> None:  # noqa: ANN401
    shapes = learned([document])
    path = data.draw(st.sampled_from(list(slots_of(document))))
    raw = written(replaced(document, path, data.draw(st.sampled_from(ODD_VALUES))))
    assert compact_file(raw, shapes) in (None, read_usually(raw))


@given(st.sampled_from(DOCUMENTS), st.integers(0), st.binary(max_size=3), st.integers(0, 3))
@settings(max_examples=examples(200))
def test_damaged_bytes_are_read_as_usual(
    document: Any,  # noqa: ANN401 - JSON
    at: int,
    added: bytes,
    removed: int,
) -> None:
    raw = written(document)
    at %= len(raw)
    damaged = raw[:at] + added + raw[at + removed :]
    found = compact_file(damaged, learned([document]))
    if found is not None:
        assert found == read_usually(damaged)


def test_a_repeated_key_counts_as_json_reads_it() -> None:
    raw = written(DOCUMENTS[0]).replace(b'{"name": "', b'{"name": "other", "name": "', 1)
    shapes = ReportShapes()
    for _ in range(5):
        assert compact_file(raw, shapes) in (None, read_usually(raw))


def test_shapes_are_bounded() -> None:
    shapes, document = ReportShapes(), DOCUMENTS[0]
    port = document["spec"]["ports"][0]
    for rate in range(400):
        ports = [{**port, "rateBps": rate}] * 5
        raw = written(replaced(document, ("spec", "ports"), ports))
        assert compact_file(raw, shapes) in (None, read_usually(raw))
    assert shapes.num_shapes <= 128


def test_the_ports_of_another_object_are_not_those_of_the_device() -> None:
    document = next(one for one in DOCUMENTS if one["spec"].get("ports"))
    shapes = learned([document])
    ports = document["spec"]["ports"]
    own: list[Any]
    for own in ([], ports):
        odd = replaced(document, ("spec", "ports"), own)
        odd["metadata"] = {**odd["metadata"], "ports": ports}
        raw = written(odd)
        assert compact_file(raw, shapes) in (None, read_usually(raw))
    twice = written(document).replace(b'"ports": [', b'"ports": [], "ports": [', 1)
    assert compact_file(twice, shapes) in (None, read_usually(twice))


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_any_layout_is_read_as_usual(indent: int | None) -> None:
    shapes = ReportShapes()
    for document in [*DOCUMENTS] * 5:
        raw = json.dumps(document, indent=indent).encode()
        assert compact_file(raw, shapes) in (None, compact_document(document))
    assert shapes.num_by_pattern


@given(st.sampled_from(DOCUMENTS), st.data())
@settings(max_examples=examples(100))
def test_a_summary_says_what_the_facts_say(document: Any, data: st.DataObject) -> None:  # noqa: ANN401
    text = written(document).decode()
    guids = sorted(set(re.findall(r"[0-9a-f]{16}", text)))
    if guids:
        text = text.replace(data.draw(st.sampled_from(guids)), "02aabbccddeeff00")
    shapes = learned([document])
    report = compact_file(text.encode(), shapes)
    assume(report is not None)
    assert report is not None
    device, host = report.device, report.summary
    assert device is not None
    assert (host is not None) == (device.kind is DeviceKind.HOST)
    if host is None:
        return
    assert host.swept_ports == swept_ports_of(device)
    assert list_host_ports(host.swept_ports, host.guids) == read_host_ports(device)
    assert sorted(host.heard) == sorted(find_heard(device))
    assert host.num_ids == len(device.ids)
    names = [one.value for one in device.ids if one.kind is IdKind.NODE_NAME]
    assert list(host.node_names) == names
    outline = outline_host(host.shapes, num_ids=host.num_ids)
    assert list(host.port_names) == [port.name for port in device.ports]
    assert [port.state for port in outline.ports] == [port.state for port in device.ports]


UNNAMED_RDMA = Port(
    "p",
    medium=Medium.INFINIBAND,
    state=PortState.UP,
    rdma_device="",
    subnet="fe80000000000000",
)


@given(DEVICES)
@example(Device(DeviceKind.HOST, "h", ids=(), ports=(UNNAMED_RDMA,)))
@settings(max_examples=examples(150))
def test_a_summary_of_any_host_says_what_its_facts_say(device: Any) -> None:  # noqa: ANN401
    host = summarize_host(shape_device(device))
    if host is None:
        assert device.kind is not DeviceKind.HOST
        return
    assert host.swept_ports == swept_ports_of(device)
    assert list_host_ports(host.swept_ports, host.guids) == read_host_ports(device)
    assert sorted(host.heard) == sorted(find_heard(device))


@pytest.mark.parametrize("devices", [*FABRICS, HEARD])
def test_claims_and_ports_of_like_reports_are_those_of_their_facts(devices: Sequence[Any]) -> None:
    documents = [render_report(build_report(device, name=device.name)) for device in devices]
    shapes = learned(documents)
    fast = [compact_file(written(document), shapes) for document in documents]
    reports = [report for report in fast if report is not None]
    usual = [report.to_wire() for report in reports]
    hosts = {one.name for one in reports if one.device_kind is DeviceKind.HOST}
    assert reports
    for nodes in (frozenset(), frozenset(hosts), frozenset(report.name for report in reports)):
        one, other = build_claims(reports, nodes), build_claims(usual, nodes)
        assert list(map(str, one.problems)) == list(map(str, other.problems))
        assert one._replace(problems=()) == other._replace(problems=())
    assert read_hosts(reports) == read_hosts(usual)


def test_a_report_under_the_name_of_another_node_is_limited() -> None:
    document = next(
        one for one in DOCUMENTS if '"node-name"' in json.dumps(one) and one["spec"].get("ports")
    )
    forged = replaced(document, ("metadata", "name"), "node-other")
    found = compact_file(written(forged), learned([document]))
    assert found is not None
    claims = build_claims([found])
    assert [claim.ids for claim in claims.claims if isinstance(claim, Claim)] == [
        claim.ids for claim in build_claims([found.to_wire()]).claims if isinstance(claim, Claim)
    ]
    assert "claims to be from node" in str(claims.problems[0])


def test_a_down_port_among_like_reports_is_seen() -> None:
    documents = [one for one in DOCUMENTS if one["spec"]["device"]["kind"] == "host"]
    shapes = learned(documents)
    raw = written(documents[0]).replace(b'"state": "up"', b'"state": "down"', 1)
    usual, down = compact_file(written(documents[0]), shapes), compact_file(raw, shapes)
    assert usual is not None
    seen = read_hosts([usual, down or compact_document(json.loads(raw))])
    name = documents[0]["spec"]["ports"][0]["name"]
    assert [host.down_hca_ports for host in seen] == [(), (name,)]
    for _ in range(5):
        down = down or compact_file(raw, shapes)
    assert down is not None
    seen = read_hosts([usual, down])
    assert [host.down_hca_ports for host in seen] == [(), (name,)]
