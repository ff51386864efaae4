import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from generator.kube.cache import Listing
from generator.outputs.hypernode.model import HyperNode, build_unreadable, render_manifest
from generator.reconcile.hypernode_plan import plan_changes
from generator.reconcile.writer import apply_plan
from generator.store.object_files import MAX_FILE_BYTES
from generator.store.object_folders import read_hypernodes, read_reports
from tests.generator.folders import StoreFolder
from tests.generator.reconcile.cluster import hypernode
from topology.model.errors import StoreError
from topology.model.facts import Device, DeviceKind, Neighbor, Port, Source
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    build_report,
    render_report,
)
from topology.reports.packed_reports import PackedReport, unpack_report

TREE = [
    hypernode("leaf-1", 1, "a"),
    hypernode("leaf-2", 1, "b"),
    hypernode("pod", 2, "leaf-1", "leaf-2"),
]


def report(name: str, *, at: str | None = None, port: str = "eth0") -> NeighborReport:
    heard = Neighbor((), "leaf", (), "swp1", Source.LLDP)
    ids = (Id(IdKind.HOSTNAME, name),)
    device = Device(DeviceKind.HOST, name, ids, (Port(port, neighbors=(heard,)),))
    return build_report(device, name=name, status=ReportStatus(observed_at=at))


def names(reports: tuple[PackedReport, ...]) -> list[str]:
    return [found.name for found in reports]


@pytest.fixture
def store(tmp_path: Path) -> StoreFolder:
    return StoreFolder(tmp_path / "store")


def test_it_is_empty_before_the_first_write_and_creates_no_folder(store: StoreFolder) -> None:
    assert store.read_reports() == Listing()
    assert store.read_hypernodes() == Listing()
    assert not store.reports.parent.exists()


def test_it_reads_back_the_written_reports(store: StoreFolder) -> None:
    written = [report("n2", at="2026-11-21T12:00:00Z"), report("n10"), report("n1.sweep.0")]
    assert [store.write_report(found) for found in written] == [True, True, True]
    read = store.read_reports()
    assert read.all_problems == ()
    assert sorted((unpack_report(found) for found in read.values), key=str) == sorted(
        written, key=str
    )
    assert names(read.values) == ["n1.sweep.0", "n10", "n2"]


def test_it_writes_reports_that_yaml_reads_like_json(store: StoreFolder) -> None:
    strange = report("n1", port="\u202e\x7f\x85\u2028 \U0001f600 é \"'\\ \t")
    store.write_report(strange)
    text = (store.reports / "n1.yaml").read_text()
    assert yaml.safe_load(text) == json.loads(text) == render_report(strange)
    assert all(char.isprintable() or char == "\n" for char in text)
    assert [unpack_report(found) for found in store.read_reports().values] == [strange]


def test_it_writes_hypernodes_in_blocks_for_people(store: StoreFolder) -> None:
    store.put(TREE[0])
    text = (store.hypernodes / "leaf-1.yaml").read_text()
    assert text.startswith("apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n")
    assert text.endswith("  - type: Node\n    selector:\n      exactMatch:\n        name: a\n")
    assert yaml.safe_load(text) == render_manifest(TREE[0])


def test_it_applies_plans_and_then_rests(store: StoreFolder) -> None:
    assert apply_plan(plan_changes(TREE, []), store).error is None
    read = store.read_hypernodes()
    assert (list(read.values), read.all_problems) == (TREE, ())
    assert plan_changes(TREE, read.values) == ()
    apply_plan(plan_changes([], read.values), store)
    assert list(store.hypernodes.iterdir()) == []


def test_it_does_not_rewrite_what_is_unchanged(store: StoreFolder) -> None:
    store.put(TREE[0])
    before = (store.hypernodes / "leaf-1.yaml").stat()
    assert store.put(TREE[0]) is False
    assert (store.hypernodes / "leaf-1.yaml").stat() == before
    assert store.put(hypernode("leaf-1", 1, "other")) is True


def test_it_leaves_readable_files_and_no_temporary_ones(store: StoreFolder) -> None:
    store.put(TREE[0])
    (file,) = store.hypernodes.iterdir()
    assert file.name == "leaf-1.yaml"
    assert file.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "A", "a\x00b", "x" * 254])
def test_it_refuses_invalid_object_names(store: StoreFolder, name: str) -> None:
    with pytest.raises(StoreError, match="not the name of an object"):
        store.put(hypernode(name, 1, "a"))
    with pytest.raises(StoreError, match="not the name of an object"):
        store.remove(name)
    assert not store.hypernodes.exists()


def test_it_names_the_file_that_could_not_be_written(store: StoreFolder) -> None:
    (store.hypernodes / "leaf-1.yaml").mkdir(parents=True)
    with pytest.raises(StoreError, match=r"leaf-1\.yaml: not a regular file"):
        store.put(TREE[0])
    with pytest.raises(StoreError, match=r"leaf-1\.yaml: not a regular file"):
        store.remove("leaf-1")
    assert [file.name for file in store.hypernodes.iterdir()] == ["leaf-1.yaml"]


def test_it_reports_a_name_that_is_too_long_for_the_file_system(store: StoreFolder) -> None:
    store.put(TREE[0])
    with pytest.raises(StoreError, match="File name too long"):
        store.put(hypernode("x" * 253, 1, "a"))


def test_it_replaces_neither_a_link_nor_its_target(store: StoreFolder, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    store.hypernodes.mkdir(parents=True)
    (store.hypernodes / "leaf-1.yaml").symlink_to(precious)
    with pytest.raises(StoreError, match="not a regular file"):
        store.put(TREE[0])
    assert precious.read_text() == "keep"
    assert store.read_hypernodes().values == (build_unreadable("leaf-1"),)


def test_it_uses_only_files_named_after_their_object(
    store: StoreFolder,
) -> None:
    store.put(TREE[0])
    (store.hypernodes / "mine.yaml").write_text(yaml.safe_dump(render_manifest(TREE[1])))
    read = store.read_hypernodes()
    assert read.values == (TREE[0], build_unreadable("mine"))
    (problem,) = read.all_problems
    assert str(problem).endswith(
        "mine.yaml: ignored: the store keeps one object per file, as NAME.yaml"
    )


def test_it_reads_several_forms_of_one_folder(tmp_path: Path) -> None:
    first, second, third = (json.dumps(render_report(report(name))) for name in ("a", "b", "c"))
    (tmp_path / "one.json").write_text(first)
    (tmp_path / "two.yml").write_bytes(f"---\r\n{second}\r\n---\r\n{third}\r\n".encode())
    items = [render_report(report("d")), render_report(report("e"))]
    (tmp_path / "three.yaml").write_text(yaml.safe_dump({"kind": "List", "items": items}))
    (tmp_path / "README.md").write_text("not for us")
    (tmp_path / ".a.yaml").write_text("half-writ")
    read = read_reports(tmp_path)
    assert (names(read.values), read.all_problems) == (list("abcde"), ())


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "bad.yaml: contains no object"),
        (b"---\n", "bad.yaml: contains no object"),
        (b"\x00\x01\x02", "bad.yaml: not YAML: "),
        (b"\xff\xfea\x00", "bad.yaml:1: expected a NeighborReport object, got str"),
        (b'{"apiVersion": "toponaut.io/v1alpha1", "kind": "Neigh', "bad.yaml:1: not YAML: "),
        (
            b"a: b",
            "bad.yaml:1: expected NeighborReport of toponaut.io/v1alpha1, got an object without",
        ),
        (b"- 1", "bad.yaml:1: expected a NeighborReport object, got list"),
        (b"#" * (MAX_FILE_BYTES + 1), "bad.yaml: larger than 16777216 bytes"),
    ],
    ids=[
        "empty",
        "an empty document",
        "binary",
        "UTF-16",
        "truncated",
        "foreign",
        "a list",
        "huge",
    ],
)
def test_it_loses_only_a_bad_file(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    (tmp_path / "good.yaml").write_text(json.dumps(render_report(report("a"))))
    read = read_reports(tmp_path)
    assert names(read.values) == ["a"]
    assert [str(one).startswith(f"{tmp_path}/{problem}") for one in read.all_problems] == [True]


def test_it_refuses_nested_lists_of_any_depth(tmp_path: Path) -> None:
    depths = [*range(1, 800, 50), *range(850, 1050)]  # around the interpreter's own limit
    for depth in depths:
        kind = "[" * depth + "]" * depth
        (tmp_path / f"{depth}.json").write_text(f'{{"kind": {kind}}}')
    read = read_reports(tmp_path)
    assert read.values == ()
    assert len(read.all_problems) == len(depths)


def test_it_loses_only_a_bad_document(tmp_path: Path) -> None:
    good = yaml.safe_dump(render_report(report("a")))
    (tmp_path / "mixed.yaml").write_text(f"kind: Odd\n---\n{good}---\nx: *y\n")
    read = read_reports(tmp_path)
    assert names(read.values) == ["a"]
    assert [one.line for one in read.all_problems] == [1, good.count("\n") + 4]


def test_it_skips_links_folders_and_pipes_without_waiting(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    outside = tmp_path / "outside.yaml"
    outside.write_text(json.dumps(render_report(report("a"))))
    (folder / "link.yaml").symlink_to(outside)
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "folder.yaml").mkdir()
    os.mkfifo(folder / "pipe.yaml")
    read = read_reports(folder)
    assert read.values == ()
    assert [one.problem for one in read.all_problems] == ["not a regular file"] * 4


def test_it_reports_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read folder .*gone: No such file"):
        read_reports(tmp_path / "gone")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Not a directory"):
        read_hypernodes(tmp_path / "file")


EARLY, LATE = "2026-11-21T12:00:00Z", "2026-11-21T13:30:00+01:00"
AHEAD, FURTHER = "2026-11-22T00:00:00Z", "2099-01-01T00:00:00Z"
NOW = datetime(2026, 11, 21, 13, tzinfo=UTC)


@pytest.mark.parametrize(
    ("first", "second", "kept", "verdict"),
    [
        pytest.param(
            report("a", at=EARLY, port="x"), report("a", at=LATE, port="y"), "y", "one is used",
            id="the newer one is used",
        ),
        pytest.param(
            report("a", at=LATE, port="x"), report("a", port="y"), "x", "one is used",
            id="one with a time beats one without",
        ),
        pytest.param(
            report("a", at=EARLY, port="x"), report("a", at=EARLY, port="y"), None,
            "none is used: they differ",
            id="none is used if times are equal and facts differ",
        ),
        pytest.param(
            report("a", at="noon", port="x"), report("a", at="2026-11-21T12:00:00", port="y"),
            None, "none is used: they differ",
            id="times without a zone or form do not count",
        ),
        pytest.param(
            report("a", port="x"), report("a", port="x"), "x", "one is used",
            id="equal facts need no time",
        ),
        pytest.param(
            report("a", at=FURTHER, port="x"), report("a", at=EARLY, port="y"), "y", "one is used",
            id="one that is dated ahead does not count",
        ),
        pytest.param(
            report("a", at=FURTHER, port="x"), report("a", port="y"), "y", "one is used",
            id="one without a time beats one that is dated ahead",
        ),
        pytest.param(
            report("a", at=AHEAD, port="x"), report("a", at=FURTHER, port="y"), "y", "one is used",
            id="the newest counts if all are ahead of a clock that is behind",
        ),
    ],
)  # fmt: skip
def test_it_chooses_between_two_reports_of_one_name(
    tmp_path: Path,
    first: NeighborReport,
    second: NeighborReport,
    *,
    kept: str | None,
    verdict: str,
) -> None:
    for file, one in (("1.yaml", first), ("2.yaml", second)):
        (tmp_path / file).write_text(json.dumps(render_report(one)))
    read = read_reports(tmp_path, now=NOW)
    assert [unpack_report(found).spec.ports[0].name for found in read.values] == (
        [kept] if kept else []
    )
    assert [str(one) for one in read.all_problems] == [
        f"{tmp_path}/1.yaml: a is also in 2.yaml; {verdict}"
    ]


@pytest.mark.parametrize(
    ("second", "kept"),
    [
        pytest.param(TREE[0], [TREE[0]], id="equal ones count once"),
        pytest.param(hypernode("leaf-1", 1, "other"), [], id="different ones do not count"),
    ],
)
def test_it_chooses_between_two_hypernodes_of_one_name(
    tmp_path: Path, second: HyperNode, kept: list[HyperNode]
) -> None:
    documents = [render_manifest(TREE[0]), render_manifest(second)]
    (tmp_path / "both.yaml").write_text(yaml.safe_dump_all(documents))
    read = read_hypernodes(tmp_path)
    assert list(read.values) == kept
    assert len(read.all_problems) == 1
