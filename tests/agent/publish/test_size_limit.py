"""Reports that are too large for an object."""

from __future__ import annotations

import json

import pytest

from agent.publish.size_limit import MAX_NEIGHBORS, MAX_OBJECT_BYTES, fit_report
from generator.ingest.report_scope import MAX_HOST_NEIGHBORS
from topology.model.facts import Device, DeviceKind, Neighbor, Port, Source
from topology.reports.neighbor_report import (
    NeighborReport,
    build_report,
    parse_report,
    render_report,
)


def heard(name: str) -> Neighbor:
    return Neighbor((), name, (), "swp1", Source.LLDP)


def report_with(**crowds: int) -> NeighborReport:
    """Return a report with this number of neighbors for each port."""
    ports = tuple(
        Port(name, neighbors=tuple(heard(f"{name}-{at:04d}") for at in range(number)))
        for name, number in crowds.items()
    )
    return build_report(Device(DeviceKind.HOST, "n1", (), ports), name="n1")


def size_of(report: NeighborReport) -> int:
    return len(json.dumps(render_report(report)))


def test_it_does_not_change_a_report_that_fits() -> None:
    report = report_with(a=1, b=255)
    fitted = fit_report(report)
    assert (fitted.report, fitted.crowded) == (report, ())
    assert fitted.size_bytes == size_of(report) < MAX_OBJECT_BYTES


@pytest.mark.parametrize(
    ("limit_share", "crowded"),
    [
        pytest.param(0.9, ("big",), id="the most crowded port first"),
        pytest.param(0.5, ("big", "mid"), id="then the next"),
        pytest.param(0.2, ("big", "mid", "sml"), id="and so on"),
    ],
)
def test_it_leaves_out_the_neighbors_of(limit_share: float, crowded: tuple[str, ...]) -> None:
    report = report_with(big=120, mid=80, one=1, sml=55)
    fitted = fit_report(report, int(size_of(report) * limit_share))
    assert fitted.crowded == crowded
    assert fitted.size_bytes == size_of(fitted.report) <= size_of(report) * limit_share
    heard = {port.name: len(port.neighbors) for port in fitted.report.spec.ports}
    assert heard == {
        name: 0 if name in crowded else number
        for name, number in {"big": 120, "mid": 80, "one": 1, "sml": 55}.items()
    }
    (told,) = fitted.report.status.collectors
    assert (told.name, told.outcome) == ("report", "failed")
    assert all(name in told.message for name in crowded)
    assert parse_report(render_report(fitted.report)) == fitted.report


def test_it_returns_the_same_report_every_time() -> None:
    report = report_with(a=80, b=80, c=80)
    assert fit_report(report, 10_000) == fit_report(report, 10_000)


def test_it_returns_the_size_of_a_report_that_cannot_fit() -> None:
    report = report_with(a=0)
    fitted = fit_report(report, 10)
    assert (fitted.report, fitted.crowded) == (report, ())
    assert fitted.size_bytes > 10


@pytest.mark.parametrize(
    ("crowds", "crowded"),
    [
        ({"a": 64, "b": 64, "c": 64, "d": 64}, ()),
        ({"a": 1, "b": 257, "c": 1}, ("b",)),
        ({"a": 1, "b": 200, "c": 300, "d": 100}, ("b", "c")),
    ],
)
def test_it_keeps_as_many_neighbors_as_the_generator_uses(
    crowds: dict[str, int], crowded: tuple[str, ...]
) -> None:
    fitted = fit_report(report_with(**crowds))
    left = {port.name: len(port.neighbors) for port in fitted.report.spec.ports}
    assert fitted.crowded == crowded
    assert left == {name: 0 if name in crowded else most for name, most in crowds.items()}
    assert MAX_NEIGHBORS == MAX_HOST_NEIGHBORS >= sum(left.values())
