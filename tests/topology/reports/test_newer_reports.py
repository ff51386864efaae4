"""Reports of newer versions, and withdrawn parts of sweeps."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from generator.ingest.claims import build_claims
from tests.packed_reports import packed
from topology.model.errors import ReportError
from topology.reports.neighbor_report import (
    build_withdrawn_part,
    parse_report,
    parse_stored_report,
    render_report,
)
from topology.reports.sweep_parts import split_sweep

REPORT: dict[str, Any] = {
    "apiVersion": "toponaut.io/v1alpha1",
    "kind": "NeighborReport",
    "metadata": {"name": "n1", "uid": "7", "managedFields": []},
    "spec": {
        "device": {"kind": "host", "name": "n1", "ids": [{"type": "hostname", "value": "n1"}]},
        "ports": [
            {"name": "eth0", "medium": "ethernet", "neighbors": [{"source": "lldp", "name": "l"}]},
            {"name": "eth1", "medium": "ethernet"},
        ],
    },
    "status": {"collectors": [{"name": "lldpd", "outcome": "ok"}]},
}

NEWER = [
    pytest.param((), id="beside spec"),
    pytest.param(("spec",), id="in spec"),
    pytest.param(("spec", "device"), id="of the device"),
    pytest.param(("spec", "device", "ids", 0), id="of an id"),
    pytest.param(("spec", "ports", 1), id="of a port"),
    pytest.param(("spec", "ports", 0, "neighbors", 0), id="of a neighbor"),
    pytest.param(("status",), id="in status"),
    pytest.param(("status", "collectors", 0), id="of an outcome"),
]


def with_field(*paths: tuple[int | str, ...]) -> dict[str, Any]:
    """Return the report of a newer version, with one additional field at each path."""
    newer = copy.deepcopy(REPORT)
    for path in paths:
        owner: Any = newer
        for step in path:
            owner = owner[step]
        owner["novelty"] = {"any": ["value"]}
    return newer


@pytest.mark.parametrize("path", NEWER)
def test_it_drops_the_unknown_field_of_a_newer_version(
    path: tuple[int | str, ...],
) -> None:
    newer = with_field(path)
    assert parse_stored_report(newer) == parse_report(REPORT)
    assert newer == with_field(path)  # the input is unchanged
    with pytest.raises(ReportError, match="novelty"):
        parse_report(newer)  # in a file, an unknown field is an error


def test_it_drops_any_number_of_unknown_fields() -> None:
    paths: list[Any] = [param.values[0] for param in NEWER]
    assert parse_stored_report(with_field(*paths)) == parse_report(REPORT)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"apiVersion": "toponaut.io/v1"}, "toponaut.io/v1alpha1", id="version"),
        pytest.param({"spec": {"device": {"kind": "host"}, "x": 1}}, "name", id="missing field"),
        pytest.param({"spec": {"novel": {}}}, "exactly one", id="an unknown kind of spec"),
        pytest.param({"spec": 7}, "spec", id="a spec that is not a mapping"),
    ],
)
def test_it_refuses_other_faults_than_unknown_fields(change: dict[str, Any], told: str) -> None:
    with pytest.raises(ReportError, match=told):
        parse_stored_report(REPORT | change)


def test_it_refuses_other_values_than_objects() -> None:
    with pytest.raises(ReportError, match="got list"):
        parse_stored_report([])


def test_it_recognizes_a_withdrawn_part() -> None:
    gone = build_withdrawn_part("n1.sweep.3", "fe80000000000000")
    (part,) = split_sweep("x", node="n1", subnet="fe80000000000000")
    withdrawn = parse_stored_report(render_report(gone)).spec.sweep
    assert withdrawn is not None
    assert withdrawn.is_withdrawn
    assert part.spec.sweep is not None
    assert not part.spec.sweep.is_withdrawn


def test_it_is_incomplete_for_a_reader_without_withdrawn_parts() -> None:
    taken = build_claims(packed([build_withdrawn_part("n1.sweep.0", "fe80000000000000")]))
    assert taken.claims == ()
