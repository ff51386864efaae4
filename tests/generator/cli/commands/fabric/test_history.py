"""`toponaut history`, and `diff` and `findings` with `--since`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.history.history_file import HistoryWriter
from tests.generator.history.test_changes import BEFORE, finding_of, tree_of
from tests.generator.scenes import RAILS, Scene, run

START = 1_761_955_200  # 2025-11-01T00:00:00Z


@pytest.fixture
def store(tmp_path: Path) -> Path:
    writer = HistoryWriter(tmp_path / "history.sqlite")
    writer.record(BEFORE, [finding_of("a"), finding_of("b")], START)
    moved = tree_of({"a": ("n1",), "b": ("n2", "n3")})
    writer.record(moved, [finding_of("b"), finding_of("c\x1b[1m")], START + 86_400)
    return tmp_path


def test_it_lists_the_generations(store: Path) -> None:
    shown = run("history", "--store", store)
    assert shown.code == 0
    assert [line.split()[:2] for line in shown.out.splitlines()[1:]] == [
        ["2", "2025-11-02T00:00:00Z"],
        ["1", "2025-11-01T00:00:00Z"],
    ]
    assert "1 moved" in shown.out
    head = "DOMAINS CHANGED  SWITCHES CHANGED  NODES CHANGED"
    assert shown.out.splitlines()[0].endswith(head)
    document = run("history", "--history", store / "history.sqlite", "-o", "json").document
    assert document["generations"][0]["changes"]["node"] == {
        "added": 0, "removed": 0, "moved": 1, "renamed": 0,
    }  # fmt: skip
    assert run("history", "--store", store, "--limit", 1).out.endswith("--limit 2 lists all\n")
    assert run("history", "--store", store, "--since", "2026-01-01").out == "no generation\n"
    assert run("history", "--store", store, "-o", "csv").out.count("\n") == 3


def test_diff_names_what_moved_since(store: Path) -> None:
    words = ("diff", "--since", "2025-11-01", "--store", store)
    shown = run(*words, "--check")
    assert shown.code == ExitCode.CHECK_FAILED
    assert shown.out.splitlines()[1].split() == ["node", "n2", "a", "b"]
    assert run(*words, "-o", "json").document["rows"] == [
        {"part": "node", "name": "n2", "before": "a", "after": "b", "formerName": None}
    ]
    later = run("diff", "--since", "2025-11-02T00:00:00Z", "--store", store, "--check")
    assert (later.code, later.out) == (0, "no differences\n")


def test_a_renamed_domain_moves_none_of_its_nodes(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.sqlite")
    writer.record(BEFORE, [], START)
    writer.record(tree_of({"new": ("n1", "n2"), "b": ("n3",)}), [], START + 60)
    row = run("history", "--store", tmp_path).out.splitlines()[1]
    assert row.endswith("none")
    assert "  1 renamed  " in row
    words = ("diff", "--since", "2025-11-01", "--store", tmp_path)
    assert run(*words).out.splitlines()[1].split(maxsplit=2) == ["domain", "new", "named a  spine"]


def test_findings_are_new_lasting_or_gone(store: Path) -> None:
    words = ("findings", "--since", "2025-11-01", "--store", store)
    rows = run(*words, "-o", "json").document
    assert [(row["age"], row["subject"]["device"]) for row in rows] == [
        ("new", "c\x1b[1m"), ("lasting", "b"), ("gone", "a"),
    ]  # fmt: skip
    text = run(*words).out
    assert "new since 2025-11-01T00:00:00Z: 1 finding" in text
    assert "\x1b" not in text
    csv = run(*words, "-o", "csv", "--age", "gone").out.splitlines()
    assert len(csv) == 2
    assert csv[1].endswith(",gone")
    assert run(*words, "--age", "gone", "--check").code == 0
    assert run(*words, "--age", "new", "--check").code == ExitCode.CHECK_FAILED


def test_the_present_comes_from_sources_if_there_are_any(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    tree = run("tree", "--reports", scene.reports(), "-o", "json")
    assert tree.code == 0
    words = ("--reports", scene.reports(), "--history", tmp_path / "h")
    HistoryWriter(tmp_path / "h").record(BEFORE, [finding_of("gone")], START)
    diff = run("diff", "--since", "2025-11-01", *words, "-o", "json").document
    parts = {(row["name"], row["before"]) for row in diff["rows"] if row["part"] == "node"}
    assert (scene.hosts[0], None) in parts
    assert ("n1", "a") in parts
    gone = run("findings", "--since", "2025-11-01", *words, "-o", "json", "--age", "gone").document
    assert [row["subject"]["device"] for row in gone] == ["gone"]


def test_a_renamed_domain_is_found_by_both_of_its_names(tmp_path: Path) -> None:
    writer = HistoryWriter(tmp_path / "history.sqlite")
    writer.record(BEFORE, [finding_of("n1")], START)
    writer.record(tree_of({"new": ("n1", "n2"), "b": ("n3",)}), [finding_of("n2")], START + 60)
    words = ("findings", "--since", "2025-11-01", "--store", tmp_path, "-o", "json", "--device")
    for name in ("a", "new"):
        rows = run(*words, name).document
        assert {(row["age"], row["subject"]["device"]) for row in rows} == {
            ("new", "n2"), ("gone", "n1"),
        }  # fmt: skip
    assert run(*words, "b").document == []
    wrong = run(*words, "newx")
    assert (wrong.code, "'newx' in these sources; did you mean new?" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("history",), "either --store or --history"),
        (("diff", "--since", "2025-11-01"), "either --store or --history"),
        (("diff", "--since", "yesterday", "--store", "."), "is not a date such as"),
        (("diff", "--since", "2025-13-01", "--store", "."), "is not a date such as"),
        (("diff", "--cabling", __file__, "--store", "."), "apply to --since only"),
        (("diff", "--since", "2025-11-01", "--against", "labels"), "give one thing"),
        (("findings", "--store", "."), "--store applies to --since only"),
        (("findings", "--age", "new"), "--age applies to --since only"),
    ],
)
def test_wrong_use_is_one_line(words: tuple[str, ...], problem: str) -> None:
    shown = run(*words)
    assert shown.code == ExitCode.USAGE
    assert problem in shown.err


def test_a_time_before_the_history_says_when_it_begins(store: Path) -> None:
    shown = run("diff", "--since", "2025-10-01", "--store", store)
    assert shown.code == ExitCode.NOTHING
    assert shown.err.endswith("the history begins at 2025-11-01T00:00:00Z, with generation 1\n")
    shutil.rmtree(store)
    store.mkdir()
    missing = run("findings", "--since", "2025-10-01", "--store", store)
    assert missing.code == ExitCode.NOTHING
