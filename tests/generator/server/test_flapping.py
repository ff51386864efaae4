"""A flapping port changes no fact of the fabric, but it is reported, and cleared later."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs

from generator.server.loop import LoopConfig, ReconcileLoop
from tests.generator.folders import StoreFolder
from tests.generator.scenes import PAIRS, Scene
from topology.reports.neighbor_report import NeighborReport, ReportStatus
from topology.reports.packed_reports import unpack_report


def with_flapping(report: NeighborReport, *names: str) -> NeighborReport:
    return structs.replace(report, status=ReportStatus(flapping=names))


def test_it_reports_a_flapping_port_once_and_again_when_it_is_stable(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = StoreFolder(Scene.of(tmp_path, PAIRS).store())
    reports = (unpack_report(one) for one in store.read_reports().reports)
    report = next(one for one in reports if one.spec.ports)
    rounds = ReconcileLoop(
        StoreFolder(tmp_path / "store"),
        LoopConfig(period=timedelta(minutes=1), now=lambda: datetime(2026, 7, 1, tzinfo=UTC)),
        publish=lambda _snapshot, _pods: None,
    )
    rounds.tick()
    said = []
    for flapping in ((report.spec.ports[0].name,), (report.spec.ports[0].name,), ()):
        store.write_report(with_flapping(report, *flapping))
        caplog.clear()
        rounds.tick()
        said.append(
            [
                row.getMessage()
                for row in caplog.records
                if row.__dict__.get("kind") == "flapping-link"
            ]
        )
    assert said == [["finding appeared"], [], ["finding gone"]]
