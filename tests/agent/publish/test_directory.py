"""Publishing to a directory: atomic writes, only changes, only our own files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.publish.destination import PublishOutcome
from agent.publish.directory import ReportFolder, document_of, render_document
from tests.effort import examples
from topology.model.errors import StoreError
from topology.model.facts import Device, DeviceKind, Port
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    build_report,
    parse_report,
)
from topology.reports.sweep_parts import split_sweep


def report_with(*ports: str, at: str | None = "2026-01-02T03:04:05Z") -> NeighborReport:
    device = Device(DeviceKind.HOST, "n1", (), tuple(Port(name) for name in ports))
    return build_report(device, name="n1", status=ReportStatus(observed_at=at))


@pytest.fixture
def folder(tmp_path: Path) -> ReportFolder:
    return ReportFolder(tmp_path, "n1")


def files_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def read(path: Path) -> NeighborReport:
    return parse_report(yaml.safe_load(path.read_text()))


def test_it_writes_yaml_that_is_json_and_the_report(folder: ReportFolder, tmp_path: Path) -> None:
    report = report_with("eth0")
    assert folder.publish([report]) == {"n1": PublishOutcome.SPEC}
    assert read(tmp_path / "n1.yaml") == report
    assert json.loads((tmp_path / "n1.yaml").read_text()) == document_of(report)
    assert list(document_of(report))[:2] == ["apiVersion", "kind"]
    assert files_in(tmp_path) == ["n1.yaml"]
    assert (tmp_path / "n1.yaml").stat().st_mode & 0o777 == 0o644 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize(
    ("second", "change"),
    [
        pytest.param(report_with("eth0"), PublishOutcome.NONE, id="nothing of the same report"),
        pytest.param(
            report_with("eth0", at="later"), PublishOutcome.STATUS, id="the status of same facts"
        ),
        pytest.param(report_with("eth1"), PublishOutcome.SPEC, id="the facts when they changed"),
    ],
)
def test_it_rewrites(
    folder: ReportFolder, tmp_path: Path, second: NeighborReport, change: PublishOutcome
) -> None:
    folder.publish([report_with("eth0")])
    before = (tmp_path / "n1.yaml").stat()
    assert folder.publish([second]) == {"n1": change}
    after = (tmp_path / "n1.yaml").stat()
    assert (after.st_ino == before.st_ino) is (change is PublishOutcome.NONE)
    assert read(tmp_path / "n1.yaml") == second


def test_it_never_touches_the_file_that_a_reader_has_open(
    folder: ReportFolder, tmp_path: Path
) -> None:
    folder.publish([report_with("eth0")])
    with (tmp_path / "n1.yaml").open() as reader:
        folder.publish([report_with("eth1")])
        assert parse_report(json.load(reader)) == report_with("eth0")


def test_it_overwrites_a_temporary_file_of_a_crash(folder: ReportFolder, tmp_path: Path) -> None:
    (tmp_path / ".n1.yaml.tmp").write_text("half a rep" * 1000)
    folder.publish([report_with("eth0")])
    assert files_in(tmp_path) == ["n1.yaml"]
    assert read(tmp_path / "n1.yaml") == report_with("eth0")


def test_it_follows_no_link_out_of_the_folder(folder: ReportFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    (tmp_path / ".n1.yaml.tmp").symlink_to(precious)
    with pytest.raises(StoreError, match=r"n1\.yaml"):
        folder.publish([report_with("eth0")])
    assert precious.read_text() == "keep"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="an empty file"),
        pytest.param(b"{ half", id="half a file"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param(b"[" * 100_000, id="a bottomless file"),
        pytest.param(b'{"apiVersion": "toponaut.io/v9"}', id="another version"),
        pytest.param(b"[]", id="another document"),
    ],
)
def test_it_ignores_and_replaces(folder: ReportFolder, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "n1.yaml").write_bytes(content)
    assert folder.last_report() is None
    assert folder.publish([report_with("eth0")]) == {"n1": PublishOutcome.SPEC}
    assert folder.last_report() == report_with("eth0")


def test_it_has_no_last_report_in_a_new_folder(folder: ReportFolder) -> None:
    assert folder.last_report() is None


def test_it_reads_only_its_own_parts(folder: ReportFolder, tmp_path: Path) -> None:
    (part,) = split_sweep("x", node="n1", subnet="s", first=3)
    folder.publish([part])
    for name in ["n1.yaml", "n10.sweep.0.yaml", "n1.sweep.x.yaml", "n1.sweep.1.yaml.bak"]:
        (tmp_path / name).touch()
    for name in ["n1xsweep.1.yaml", "n1.sweep.07.yaml", "n1.sweep.12.yaml"]:
        (tmp_path / name).touch()
    assert folder.read_parts() == {3: part.spec.sweep, 12: None}


def test_it_removes_reports_that_may_not_exist(folder: ReportFolder, tmp_path: Path) -> None:
    folder.publish([report_with("eth0")])
    folder.withdraw(["n1", "n1.sweep.0"])
    assert files_in(tmp_path) == []


def test_it_creates_its_folder(tmp_path: Path) -> None:
    ReportFolder(tmp_path / "a" / "b", "n1").prepare()
    assert files_in(tmp_path / "a" / "b") == []


def test_it_reports_an_unwritable_folder_beforehand() -> None:
    with pytest.raises(StoreError, match=r"^cannot write /proc: "):
        ReportFolder(Path("/proc"), "n1").prepare()


def test_it_names_the_folder_that_it_cannot_use(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = ReportFolder(tmp_path / "file", "n1")
    with pytest.raises(StoreError, match="file: File exists"):
        folder.prepare()
    with pytest.raises(StoreError, match="Not a directory"):
        folder.publish([report_with("eth0")])
    with pytest.raises(StoreError, match="Not a directory"):
        folder.read_parts()
    with pytest.raises(StoreError, match="Not a directory"):
        folder.withdraw(["n1"])


@settings(max_examples=examples(200), deadline=None)
@given(st.text(st.characters(codec=None)))
def test_it_renders_text_that_json_and_yaml_read_alike(text: str) -> None:
    rendered = render_document({"key": text})
    rendered.encode()
    assert json.loads(rendered) == {"key": text}
    if text.isascii() or not any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        assert yaml.safe_load(rendered) == {"key": text}
