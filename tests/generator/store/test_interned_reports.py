"""Interned reports equal the original reports, and share equal parts."""

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from generator.store.interned_reports import ReportInterner
from generator.store.object_folders import read_reports
from tests.generator.scenes import PAIRS, RAILS, Scene
from topology.model.errors import ReportError
from topology.reports.compact_reports import CompactReport, Report, compact_report
from topology.reports.neighbor_report import (
    API_VERSION,
    REPORT_KIND,
    CollectorOutcome,
    ReportStatus,
    SweepStanding,
    render_report,
)
from topology.reports.report_objects import parse_stored_report
from topology.synthetic import SyntheticSpec

STATUS = ReportStatus(
    observed_at="2026-01-01T00:00:00Z",
    collectors=(CollectorOutcome(name="lldpd", outcome="ok"),),
    sweeping=SweepStanding(able=True),
)


@pytest.fixture(params=[RAILS, PAIRS], ids=["infiniband", "ethernet"])
def reports(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Report, ...]:
    spec: SyntheticSpec = request.param
    return read_reports(Scene.of(tmp_path, spec).reports()).reports


def read(report: Report, reader: ReportInterner, **status: object) -> CompactReport:
    told = STATUS.model_copy(update=status)
    whole = report.to_wire().model_copy(update={"status": told})
    return reader(render_report(whole))


def test_it_equals_the_original_report(reports: tuple[Report, ...]) -> None:
    reader = ReportInterner()
    for report in reports:
        document = render_report(report.to_wire())
        plain, kept = parse_stored_report(document), reader(document)
        assert kept.to_wire() == plain
        assert kept == compact_report(plain)
        assert render_report(kept.to_wire()) == document
        for name in ("device", "device_kind", "sweep", "swept_ports", "status"):
            assert getattr(kept, name) == getattr(plain, name), name
        assert kept.metadata.name == plain.metadata.name


def test_it_separates_new_content_from_a_new_time(reports: tuple[Report, ...]) -> None:
    reader = ReportInterner()
    first, again = read(reports[0], reader), read(reports[0], reader, observed_at="2026-02-01")
    assert first.content == again.content
    assert first != again
    assert first.content != read(reports[1], reader).content


def test_it_shares_equal_parts_of_statuses(reports: tuple[Report, ...]) -> None:
    reader = ReportInterner()
    first, same, later = (
        read(report, reader, observed_at=time)
        for report, time in zip(reports, ("t1", "t1", "t2"), strict=False)
    )
    assert first.status is same.status
    assert later.status != first.status
    assert later.status.collectors is first.status.collectors
    assert later.status.sweeping is first.status.sweeping


def test_it_refuses_a_document_that_is_not_a_report_of_this_version() -> None:
    with pytest.raises(ReportError):
        ReportInterner()({"apiVersion": "toponaut.io/v1", "kind": "NeighborReport"})


def test_it_leaves_out_the_fields_of_a_newer_version(reports: tuple[Report, ...]) -> None:
    document = render_report(reports[0].to_wire())
    newer = {**document, "spec": {**document["spec"], "moods": ["calm"]}}
    assert ReportInterner()(newer) == ReportInterner()(document)


def hostile_ports(number: int) -> dict[str, object]:
    ports = [
        {
            "name": f"mlx5_{at}/1",
            "medium": "infiniband",
            "state": "up",
            "subnet": f"{number * 1000 + at:016x}",
        }
        for at in range(700)
    ]
    return {"spec": {"device": {"kind": "host", "name": "liar"}, "ports": ports}}


def hostile_flapping(number: int) -> dict[str, object]:
    flapping = [f"{number}-{at:060}" for at in range(2000)]
    return {"spec": {"device": {"kind": "host", "name": "liar"}}, "status": {"flapping": flapping}}


@pytest.mark.parametrize("write", [hostile_ports, hostile_flapping])
def test_it_keeps_little_of_reports_that_are_gone(
    write: Callable[[int], dict[str, object]],
) -> None:
    reader = ReportInterner()
    head = {"apiVersion": API_VERSION, "kind": REPORT_KIND, "metadata": {"name": "liar"}}
    for number in range(200):
        reader(head | write(number))
    assert size_of(reader) < 24 << 20


def size_of(whole: object) -> int:
    """Return the bytes of an object and everything that it refers to."""
    seen, left, size = {id(whole)}, [whole], 0
    while left:
        one = left.pop()
        size += sys.getsizeof(one)
        for part in gc.get_referents(one):
            if id(part) not in seen and not isinstance(part, type | ModuleType | FunctionType):
                seen.add(id(part))
                left.append(part)
    return size
