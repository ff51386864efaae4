"""Reports read without the wire model."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.reports.test_neighbor_report import DEVICES
from topology.model.errors import ReportError
from topology.model.facts import Device
from topology.reports import plain_reports
from topology.reports.compact_reports import compact_document, compact_report
from topology.reports.neighbor_report import (
    MAX_NUMA_NODE,
    MAX_RATE_BPS,
    MAX_TEXT,
    ReportDevice,
    ReportId,
    ReportNeighbor,
    ReportPort,
    build_report,
    parse_report,
    render_report,
)
from topology.reports.plain_reports import read_plain_report
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
)

FABRICS = [
    [claim.device for claim in report_claims(build_undamaged(build_wiring(spec)))]
    for spec in (SyntheticSpec(kind, 4) for kind in FabricKind)
]
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.0, 1.5, "", " ", "1", "mac", "MAC", "ff:ff:ff:ff:ff:ff"),
    *("00:00:00:00:00:00", "0xFFFF", "0002:c903:007b:78b0", "f" * 16, "0" * 16, "g" * 16, "a\n"),
    *("fe80000000000000\n", "FE80000000000000", "\ud800", "\u0430", "x" * 253, "x" * 254),
    *("x" * MAX_TEXT, "x" * (MAX_TEXT + 1), MAX_RATE_BPS, MAX_RATE_BPS + 1, MAX_NUMA_NODE),
    *(MAX_NUMA_NODE + 1, 65535, 65536, 2**70, float("nan"), [], {}, [{}], [[]], {"a": 1}),
    *("host", "switch", "unknown", "node-guid", "chassis-id", "port-id", "lldp", "ib", "up"),
    *([{"type": "mac", "value": "02:00:00:00:00:01"}] * 2,),
    [{"type": "hostname", "value": str(number)} for number in range(65)],
    [{"type": "hostname", "value": str(number)} for number in range(1025)],
    [{"name": str(number), "medium": "ethernet"} for number in range(4097)],
    [{"source": "lldp"}] * 1025,
    *(["station"], ["station"] * 8, ["station"] * 9, ["STATION"], ["bridge", 1]),
)


def slots_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the path of each value of a document."""
    yield path
    keys = range(len(value)) if isinstance(value, list) else value
    for key in keys if isinstance(value, list | dict) else ():
        yield from slots_of(value[key], (*path, key))


def replaced(document: Any, path: tuple[Any, ...], value: object) -> Any:  # noqa: ANN401
    """Return a copy of a document with another value at a path."""
    if not path:
        return value
    found = json.loads(json.dumps(document))
    owner = found
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = value
    return found


FULL = {
    "apiVersion": "toponaut.io/v1alpha1",
    "kind": "NeighborReport",
    "metadata": {"name": "node-1", "uid": "1"},
    "spec": {
        "device": {"kind": "host", "name": "a", "ids": [{"type": "node-guid", "value": "2c90"}]},
        "ports": [
            {
                "name": "eth0",
                "medium": "ethernet",
                "state": "up",
                "rateBps": 1,
                "numaNode": 1,
                "bondMaster": "b",
                "rdmaDevice": "c",
                "pciAddress": "d",
                "firmwareLldp": True,
                "gpuDistance": "same-numa",
                "subnet": "fe80000000000000",
                "ids": [{"type": "port-id", "value": "02:00:00:00:00:01", "subtype": "mac"}],
                "neighbors": [
                    {
                        "name": "e",
                        "portName": "f",
                        "source": "lldp",
                        "kind": "switch",
                        "ids": [{"type": "mac", "value": "02:00:00:00:00:02"}],
                        "portIds": [{"type": "ifname", "value": "g"}],
                        "ttlSeconds": 120,
                        "capabilities": ["router", "bridge", "router"],
                    }
                ],
            }
        ],
    },
    "status": {"observedAt": "2026-01-01T00:00:00Z"},
}
"""Every field has a value."""


def outcome_of(document: object, *, is_fast: bool) -> object:
    """Return the compact report of a document, or why it is refused."""
    try:
        return compact_document(document) if is_fast else compact_report(parse_report(document))
    except ReportError as error:
        return str(error)


@settings(max_examples=examples(200))
@given(DEVICES)
def test_it_reads_what_the_wire_model_reads(device: Device) -> None:
    document = json.loads(json.dumps(render_report(build_report(device, name="node-1"))))
    expected = parse_report(document)
    plain = read_plain_report(document)
    assert plain is None or plain == ("node-1", expected.device, expected.status)
    assert (plain is not None) == json.dumps(document, ensure_ascii=False).isascii()


@settings(max_examples=examples(2000), deadline=None)
@given(st.data())
def test_an_edited_report_counts_or_is_refused_as_by_the_wire_model(data: st.DataObject) -> None:
    device = data.draw(st.sampled_from([one for devices in FABRICS for one in devices]))
    document = render_report(build_report(device, name="node-1"))
    document["status"] = {"observedAt": "2026-01-01T00:00:00Z"}
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(slots_of(document))))
        if path and isinstance(path[-1], str) and data.draw(st.booleans()):
            field = data.draw(st.sampled_from(["subtype", "ids", "sweep", "bond_master", "subnet"]))
            path = (*path[:-1], field)
        document = replaced(document, path, data.draw(st.sampled_from(ODD_VALUES)))
        if not isinstance(document, dict):
            break
    assert outcome_of(document, is_fast=True) == outcome_of(document, is_fast=False)


@pytest.mark.parametrize("path", list(slots_of(FULL)), ids=str)
def test_each_value_counts_or_is_refused_as_by_the_wire_model(path: tuple[Any, ...]) -> None:
    fields = [path, (*path[:-1], "extra")] if path and isinstance(path[-1], str) else [path]
    for field in fields:
        for value in ODD_VALUES:
            document = replaced(FULL, field, value)
            assert outcome_of(document, is_fast=True) == outcome_of(document, is_fast=False)
    if path:
        document = replaced(FULL, path, None)
        owner = document
        for step in path[:-1]:
            owner = owner[step]
        del owner[path[-1]]
        assert outcome_of(document, is_fast=True) == outcome_of(document, is_fast=False)


def test_every_report_of_a_fabric_is_plain() -> None:
    for devices in FABRICS:
        for device in devices:
            assert read_plain_report(render_report(build_report(device, name="node-1")))


@pytest.mark.parametrize(
    ("fields", "model"),
    [
        (plain_reports.DEVICE_FIELDS, ReportDevice),
        (plain_reports.PORT_FIELDS, ReportPort),
        (plain_reports.NEIGHBOR_FIELDS, ReportNeighbor),
        ({"type", "value", "subtype"}, ReportId),
    ],
)
def test_it_knows_every_field_of_the_wire_model(fields: set[str], model: Any) -> None:  # noqa: ANN401
    assert fields == {field.alias for field in model.model_fields.values()}
