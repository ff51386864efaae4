"""Reports that are kept say what reports say, with equal parts as one object."""

from pathlib import Path

import pytest

from generator.store.directory import read_reports
from generator.store.lean import LeanReader
from tests.generator.scenes import PAIRS, RAILS, Scene
from topology.errors import ReportError
from topology.report import NeighborReport, ReportId, render_report
from topology.stored_reports import parse_stored_report
from topology.synthetic import FabricSpec


@pytest.fixture(params=[RAILS, PAIRS], ids=["infiniband", "ethernet"])
def reports(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[NeighborReport, ...]:
    spec: FabricSpec = request.param
    return read_reports(Scene.of(tmp_path, spec).reports()).reports


def ids_of(report: NeighborReport) -> list[ReportId]:
    device = report.spec.device
    own = list(device.ids) if device else []
    return own + [one for port in report.spec.ports for one in port.ids]


def test_it_says_the_same_as_a_report_that_is_not_lean(
    reports: tuple[NeighborReport, ...],
) -> None:
    reader = LeanReader()
    for report in reports:
        document = render_report(report)
        lean = reader(document)
        assert lean == parse_stored_report(document)
        assert hash(lean.spec) == hash(report.spec)
        assert render_report(lean) == document


def test_it_keeps_equal_parts_once(reports: tuple[NeighborReport, ...]) -> None:
    report = next(one for one in reports if one.spec.ports)
    found = ids_of(LeanReader()(render_report(report)))
    assert len({id(one) for one in found}) == len(set(found)) < len(found)
    texts = [one.value for one in found]
    assert len({id(text) for text in texts}) == len(set(texts))


def test_it_keeps_once_what_reports_have_in_common(reports: tuple[NeighborReport, ...]) -> None:
    reader = LeanReader()
    documents = [render_report(one) for one in reports if one.spec.ports]
    lean = [reader(document) for document in documents]
    found = [one for report in lean for one in ids_of(report)]
    assert len({id(one) for one in found}) == len(set(found)) < len(found)


def test_a_changed_copy_changes_nothing_else(reports: tuple[NeighborReport, ...]) -> None:
    document = render_report(reports[0])
    lean = LeanReader()(document)
    other = lean.model_copy(update={"metadata": lean.metadata.model_copy(update={"name": "x"})})
    assert other.metadata.name == "x"
    assert render_report(lean) == document
    assert LeanReader()(document).model_fields_set == set()


def test_it_refuses_what_is_no_report() -> None:
    with pytest.raises(ReportError):
        LeanReader()({"kind": "Pod"})
