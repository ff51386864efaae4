"""Reports that are read by their shape."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from generator.ingest.claims import build_claims
from generator.ingest.heard_devices import find_heard
from generator.ingest.host_evidence import list_host_ports, read_host_ports
from generator.observe.port_findings import HostPortCache
from tests.effort import examples
from tests.topology.reports.test_neighbor_report import DEVICES
from tests.topology.reports.test_plain_reports import FABRICS, ODD_VALUES, replaced, slots_of
from topology.model.errors import ReportError
from topology.model.facts import DeviceKind, Medium
from topology.reports.compact_reports import CompactReport, compact_document, compact_file
from topology.reports.neighbor_report import build_report, parse_report, render_report
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
def test_like_reports_are_read_by_their_shape(devices: Sequence[Any]) -> None:
    shapes, num_read = ReportShapes(), 0
    for device in [*devices] * 5:
        raw = written(render_report(build_report(device, name=device.name)))
        found = compact_file(raw, shapes)
        assert found in (None, compact_document(json.loads(raw)))
        num_read += found is not None
    assert num_read >= len(devices)


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
    assert compact_file(emptied.encode(), learned([document])) is None


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
    shapes = ReportShapes()
    for number in range(400):
        ids = [{"type": "hostname", "value": str(value)} for value in range(number)]
        document = replaced(DOCUMENTS[0], ("spec", "device", "ids"), ids)
        for _ in range(5):
            compact_file(written(document), shapes)
    assert shapes.num_shapes <= 256


@given(st.sampled_from(DOCUMENTS), st.data())
@settings(max_examples=examples(100))
def test_a_likeness_says_what_the_facts_say(document: Any, data: st.DataObject) -> None:  # noqa: ANN401
    text = written(document).decode()
    guids = sorted(set(re.findall(r"[0-9a-f]{16}", text)))
    if guids:
        text = text.replace(data.draw(st.sampled_from(guids)), "02aabbccddeeff00")
    shapes = learned([document])
    report = compact_file(text.encode(), shapes)
    assume(report is not None)
    assert report is not None
    assert report.likeness is not None
    device = report.device
    assert device is not None
    assert list_host_ports(report.swept_ports, report.likeness.guids) == read_host_ports(device)
    assert sorted(report.likeness.heard) == sorted(find_heard(device))


@pytest.mark.parametrize("devices", [*FABRICS, HEARD])
def test_claims_and_ports_of_like_reports_are_those_of_their_facts(devices: Sequence[Any]) -> None:
    documents = [render_report(build_report(device, name=device.name)) for device in devices]
    shapes = learned(documents)
    fast = [compact_file(written(document), shapes) for document in documents]
    reports = [report for report in fast if report is not None]
    usual = [compact_document(report.to_wire().model_dump(by_alias=True)) for report in reports]
    hosts = {one.name for one in reports if one.device_kind is DeviceKind.HOST}
    assert any(report.likeness for report in reports)
    for nodes in (frozenset(), frozenset(hosts), frozenset(report.name for report in reports)):
        one, other = build_claims(reports, nodes), build_claims(usual, nodes)
        assert list(map(str, one.problems)) == list(map(str, other.problems))
        assert one._replace(problems=()) == other._replace(problems=())
    found, expected = (HostPortCache().read_hosts(rows) for rows in (reports, usual))
    assert [row[1:] for row in found] == [row[1:] for row in expected]


def test_a_report_under_the_name_of_another_node_is_limited() -> None:
    document = next(
        one for one in DOCUMENTS if '"node-name"' in json.dumps(one) and one["spec"].get("ports")
    )
    shapes = learned([document])
    forged = replaced(document, ("metadata", "name"), "node-other")
    assert compact_file(written(document), shapes) is not None
    assert compact_file(written(forged), shapes) is None
    assert parse_report(forged).metadata.name == "node-other"


def test_a_down_port_among_like_reports_is_seen() -> None:
    documents = [one for one in DOCUMENTS if one["spec"]["device"]["kind"] == "host"]
    shapes = learned(documents)
    raw = written(documents[0]).replace(b'"state": "up"', b'"state": "down"', 1)
    usual, down = compact_file(written(documents[0]), shapes), compact_file(raw, shapes)
    assert usual is not None
    seen = HostPortCache().read_hosts([usual, down or compact_document(json.loads(raw))])
    name = documents[0]["spec"]["ports"][0]["name"]
    assert [host.down_hca_ports for host in seen] == [(), (name,)]
    for _ in range(5):
        down = down or compact_file(raw, shapes)
    assert down is not None
    seen = HostPortCache().read_hosts([usual, down])
    assert [host.down_hca_ports for host in seen] == [(), (name,)]
