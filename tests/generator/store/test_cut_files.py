"""Object files whose end is missing: named, never read as other members, and ours are mended."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from generator.objects.tree_record import TreeRecord
from generator.outputs.hypernode.model import (
    HyperNode,
    Member,
    MemberType,
    build_unreadable,
    render_manifest,
)
from generator.store.object_files import list_files
from generator.store.object_folders import read_hypernodes, read_reports
from tests.generator.folders import StoreFolder, with_approval
from tests.generator.reconcile.cluster import tree_of
from tests.generator.store.test_directory import report
from topology.model.errors import CutInput, StoreError
from topology.reports.neighbor_report import render_report

MEMBERS = tuple(Member(MemberType.NODE, f"node-{number}") for number in (7, 12, 123))
OWN = HyperNode("leaf-1", 1, "leaf", MEMBERS)
FOREIGN = HyperNode("leaf-1", 1, "leaf", MEMBERS, labels=())


def render(hypernode: HyperNode) -> bytes:
    return yaml.safe_dump(render_manifest(hypernode), sort_keys=False).encode()


def all_cuts(whole: bytes) -> range:
    """Return every place within a line after the name of the object, also within a member."""
    return range(whole.index(b"spec"), len(whole) - 1)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_no_hypernode_of_a_file_that_ends_within_a_line_is_used(
    tmp_path: Path, encoding: str
) -> None:
    whole = render(OWN)
    (tmp_path / "whole.yaml").write_bytes(whole.decode().encode(encoding))
    assert read_hypernodes(tmp_path).values == (OWN,)
    for place in all_cuts(whole):
        (tmp_path / "whole.yaml").write_bytes(whole[:place].decode().encode(encoding))
        read = read_hypernodes(tmp_path)
        if whole[place - 1 : place] != b"\n":
            assert (read.values, len(read.all_problems)) == ((), 1), place


def test_the_other_objects_of_a_cut_file_are_used(tmp_path: Path) -> None:
    other = HyperNode("leaf-0", 1, "leaf", MEMBERS)
    (tmp_path / "both.yaml").write_bytes(render(other) + b"---\n" + render(OWN)[:-2])
    read = read_hypernodes(tmp_path)
    assert read.values == (other,)
    (problem,) = read.all_problems
    assert isinstance(problem, CutInput)
    assert "may be cut: its last line has no line break" in str(problem)


@pytest.mark.parametrize(
    "text",
    [
        (
            b"{kind: HyperNode, apiVersion: topology.volcano.sh/v1alpha1, metadata: {name: leaf-1},"
            b" spec: {tier: 1, members: []}}"
        ),
        (
            b"kind: HyperNode\napiVersion: topology.volcano.sh/v1alpha1\nspec: {tier: 1}\n"
            b"metadata:\n  name: 'leaf-1'"
        ),
    ],
    ids=["braces", "quotes"],
)
def test_a_file_whose_end_is_certain_needs_no_line_break(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "one.yaml").write_bytes(text)
    read = read_hypernodes(tmp_path)
    assert [hypernode.name for hypernode in read.values] == ["leaf-1"]
    assert read.all_problems == ()


def test_our_own_cut_file_is_named_and_written_anew(tmp_path: Path) -> None:
    store = StoreFolder(tmp_path)
    store.put(OWN)
    file = tmp_path / "hypernodes" / "leaf-1.yaml"
    whole = file.read_bytes()
    for place in all_cuts(whole):
        file.write_bytes(whole[:place])
        read = store.read_hypernodes()
        (found,) = read.values
        assert not found.matches(OWN), place
        assert read.all_problems or whole[place - 1 : place] == b"\n", place
        if found.is_ours:
            assert store.put(OWN)
            assert store.read_hypernodes().values == (OWN,)


def test_a_foreign_cut_file_keeps_its_name(tmp_path: Path) -> None:
    store = StoreFolder(tmp_path)
    store.hypernodes.mkdir()
    (store.hypernodes / "leaf-1.yaml").write_bytes(render(FOREIGN)[:-2])
    read = store.read_hypernodes()
    assert read.values == (build_unreadable("leaf-1"),)
    assert len(read.all_problems) == 1


def test_no_report_of_a_file_that_ends_within_a_line_is_used(tmp_path: Path) -> None:
    whole = yaml.safe_dump(render_report(report("n1"))).encode()
    (tmp_path / "n1.yaml").write_bytes(whole)
    assert read_reports(tmp_path).all_problems == ()
    (tmp_path / "n1.yaml").write_bytes(whole[:-2])
    read = read_reports(tmp_path)
    assert (read.values, len(read.all_problems)) == ((), 1)


def _replace_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def replace(file: Path) -> None:
        file.unlink()
        make(file)

    return replace


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda file: file.write_bytes(b""), id="is empty"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:-20]), id="is cut"),
        pytest.param(_replace_by(Path.mkdir), id="is a folder"),
        pytest.param(_replace_by(os.mkfifo), id="is a named pipe"),
        pytest.param(_replace_by(lambda file: file.symlink_to("x")), id="is a link to nothing"),
    ],
)
def test_no_object_counts_as_absent_while_its_file(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    store = StoreFolder(tmp_path)
    store.put(OWN)
    store.write_report(report("n1"))
    store.write_fabric(with_approval(None, "0" * 16))
    store.write_record(TreeRecord(tree_of([OWN])))
    for folder in (store.hypernodes, store.reports, store.fabrics, store.records):
        (file,) = list_files(folder)
        damage(file)
    assert [row.name for row in store.read_hypernodes().values] == ["leaf-1"]
    assert store.read_reports().all_problems
    assert store.read_record().problems
    with pytest.raises(StoreError):
        store.read_fabric()


@pytest.mark.parametrize("name", ["neighborreports", "hypernodes"])
def test_a_folder_that_is_a_link_to_nothing_does_not_count_as_empty(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).symlink_to("unmounted")
    store = StoreFolder(tmp_path)
    with pytest.raises(StoreError, match="cannot read folder"):
        (store.read_reports if name == "neighborreports" else store.read_hypernodes)()
