"""Every folder and file input is read packed, with a byte order mark, or its ignored file named."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.ingest.file_inspection import inspect_bytes
from tests.generator.scenes import PAIRS, RAILS, Ran, Scene, run
from topology.synthetic import render_snmpwalks


def pack(file: Path) -> Path:
    packed = file.with_name(f"{file.name}.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    return packed


def read_reports(scene: Scene) -> Ran:
    return run("tree", "--reports", scene.root / "store" / "neighborreports", "-o", "json")


def read_captures(scene: Scene) -> Ran:
    return run("tree", "--lldpcli", scene.root / "captures", "-o", "json")


def test_it_reads_packed_reports(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    files = list(scene.reports().iterdir())
    plain = read_reports(scene)
    for file in files:
        pack(file)
    assert (read_reports(scene).out, plain.code) == (plain.out, ExitCode.OK)


def test_it_reads_packed_captures(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    files = list(scene.captures().iterdir())
    plain = read_captures(scene)
    for file in files:
        pack(file)
    packed = read_captures(scene)
    assert (packed.out, packed.code) == (plain.out, plain.code)


@pytest.mark.parametrize("name", ["a.yaml.bz2", "a.json.zst", "a.yaml.bak"])
def test_it_names_reports_that_it_ignores(tmp_path: Path, name: str) -> None:
    scene = Scene.of(tmp_path, RAILS)
    (scene.reports() / name).write_text("x")
    ran = read_reports(scene)
    assert ran.code == ExitCode.SKIPPED
    assert f"{name}: ignored: " in ran.err


@pytest.mark.parametrize(
    "name", ["x.neighbors.json0.bz2", "x.neighbors.xml", "x.chassis.json0", "x.JSON0"]
)
def test_it_names_captures_that_it_ignores(tmp_path: Path, name: str) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    (scene.captures() / name).write_text("{}")
    ran = read_captures(scene)
    assert ran.code == ExitCode.SKIPPED
    assert f"{name}: ignored: " in ran.err


@pytest.mark.parametrize("name", ["x.snmpwalk.txt.xz", "x.snmpwalk.json", "x.txt.bz2"])
def test_it_names_walks_that_it_ignores(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x")
    ran = run("tree", "--snmpwalk", tmp_path)
    assert f"{name}: ignored: " in ran.err


def test_it_reads_packed_walks_and_cabling_plans(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, PAIRS)
    for name, text in render_snmpwalks(scene.damaged):
        scene.write(f"walks/{name}", text)
    plan = scene.write("plan.csv", "device_a,port_a,device_b,port_b\nx,1,y,2\n")
    words = ("diff", "--snmpwalk", tmp_path / "walks", "--cabling")
    plain = run(*words, plan, "-o", "json")
    for file in list((tmp_path / "walks").iterdir()):
        pack(file)
    packed = run(*words, pack(plan), "-o", "json")
    assert (packed.document, packed.code) == (plain.document, plain.code)
    assert packed.document["rows"]


@pytest.mark.parametrize(
    ("option", "name"),
    [
        ("--lldpcli", "a.neighbors.json0"),
        ("--lldpcli", "a.neighbors.keyvalue.gz"),
        ("--snmpwalk", "a.snmpwalk.txt"),
        ("--snmpwalk", "a.snmprec.gz"),
    ],
)
def test_it_names_a_subfolder_with_input_once_with_a_total(
    tmp_path: Path, option: str, name: str
) -> None:
    for number in range(3):
        file = tmp_path / "rack1" / f"{number}{name}"
        file.parent.mkdir(exist_ok=True)
        file.write_text("x")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "README.md").write_text("x")
    ran = run("tree", option, tmp_path)
    assert "rack1: ignored: a subfolder with 3 files that look like input" in ran.err
    assert "docs" not in ran.err


def test_a_cut_gzip_is_named_and_nothing_is_planned_from_it(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    store, packed = scene.store(), pack(scene.sweep())
    packed.write_bytes(packed.read_bytes()[:-20])
    words = ("--reports", store / "neighborreports", "--ibnetdiscover", packed)
    ran = run("plan", "--store", store, *words, "-o", "json")
    assert (ran.code, ran.document) == (ExitCode.SKIPPED, [])
    assert "the file is cut" in ran.err


Write = Callable[[Scene], Path]


@pytest.mark.parametrize(
    "encode",
    [
        lambda raw: codecs.BOM_UTF8 + raw,
        lambda raw: codecs.BOM_UTF16_LE + raw.decode().encode("utf-16-le"),
        lambda raw: codecs.BOM_UTF16_BE + raw.decode().encode("utf-16-be"),
    ],
    ids=["UTF-8 with a mark", "UTF-16 LE", "UTF-16 BE"],
)
@pytest.mark.parametrize(
    "write", [Scene.nodes, Scene.kube_nodes, Scene.sweep], ids=["our list", "kubectl", "a sweep"]
)
def test_it_reads_a_file_with_a_byte_order_mark(
    tmp_path: Path, write: Write, encode: Callable[[bytes], bytes]
) -> None:
    scene = Scene.of(tmp_path, RAILS)
    raw = write(scene).read_bytes()
    plain = inspect_bytes(raw, source="x")
    assert plain.format in {"nodes", "ibnetdiscover"}
    assert inspect_bytes(encode(raw), source="x") == plain
    file = scene.write("marked", encode(raw))
    marked = run("inspect", file, "-o", "json").document[0]
    assert (marked["format"], marked["counts"]) == (plain.format, plain.counts)
