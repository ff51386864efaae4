"""Reports that are kept say what reports say, and have one object for what many have alike."""

from pathlib import Path

import pytest

from generator.store.directory import read_reports
from generator.store.interned_reports import LeanReader
from tests.generator.scenes import PAIRS, RAILS, Scene
from topology.model.errors import ReportError
from topology.reports.compact_reports import KeptReport, Report, keep_report
from topology.reports.neighbor_report import (
    CollectorOutcome,
    ReportStatus,
    SweepStanding,
    render_report,
)
from topology.reports.report_objects import parse_stored_report
from topology.synthetic import FabricSpec

STATUS = ReportStatus(
    observed_at="2026-01-01T00:00:00Z",
    collectors=(CollectorOutcome(name="lldpd", outcome="ok"),),
    sweeping=SweepStanding(able=True),
)


@pytest.fixture(params=[RAILS, PAIRS], ids=["infiniband", "ethernet"])
def reports(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Report, ...]:
    spec: FabricSpec = request.param
    return read_reports(Scene.of(tmp_path, spec).reports()).reports


def read(report: Report, reader: LeanReader, **status: object) -> KeptReport:
    told = STATUS.model_copy(update=status)
    whole = report.spelled_out().model_copy(update={"status": told})
    return reader(render_report(whole))


def test_it_says_the_same_as_a_report_that_is_not_kept_so(reports: tuple[Report, ...]) -> None:
    reader = LeanReader()
    for report in reports:
        document = render_report(report.spelled_out())
        plain, kept = parse_stored_report(document), reader(document)
        assert kept.spelled_out() == plain
        assert kept == keep_report(plain)
        assert render_report(kept.spelled_out()) == document
        for name in ("device", "device_kind", "sweep", "swept_ports", "status"):
            assert getattr(kept, name) == getattr(plain, name), name
        assert kept.metadata.name == plain.metadata.name


def test_it_tells_what_is_said_anew_from_what_is_only_newer(reports: tuple[Report, ...]) -> None:
    reader = LeanReader()
    first, again = read(reports[0], reader), read(reports[0], reader, observed_at="2026-02-01")
    assert first.said == again.said
    assert first != again
    assert first.said != read(reports[1], reader).said


def test_it_keeps_once_what_statuses_have_in_common(reports: tuple[Report, ...]) -> None:
    reader = LeanReader()
    first, same, later = (
        read(report, reader, observed_at=time)
        for report, time in zip(reports, ("t1", "t1", "t2"), strict=False)
    )
    assert first.status is same.status
    assert later.status != first.status
    assert later.status.collectors is first.status.collectors
    assert later.status.sweeping is first.status.sweeping


def test_it_refuses_what_is_no_report_of_this_version() -> None:
    with pytest.raises(ReportError):
        LeanReader()({"apiVersion": "toponaut.io/v1", "kind": "NeighborReport"})


def test_it_leaves_out_the_fields_of_a_newer_version(reports: tuple[Report, ...]) -> None:
    document = render_report(reports[0].spelled_out())
    newer = {**document, "spec": {**document["spec"], "moods": ["calm"]}}
    assert LeanReader()(newer) == LeanReader()(document)
