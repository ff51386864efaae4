"""A file of another format than was expected is answered in one line, in every command."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.store.file_kinds import FileKind, detect_kind
from tests.generator.scenes import run
from tests.repository import ROOT

TREE = """{"apiVersion": "toponaut.io/v1alpha1", "kind": "TopologyTree", "plane": "compute",
"tiers": [], "unplaced": []}"""
SWEEP = """#
# Topology file: generated on Mon Nov  2 12:00:00 2026
vendid=0x2c9
Switch\t2 "S-0002c90000000001"\t\t# "leaf-1" enhanced port 0 lid 1 lmc 0
"""
CONTENTS = {
    "a PNG image": b"\x89PNG\r\n\x1a\n\0\0",
    "HTML": b"<!DOCTYPE html><html><body>404</body></html>",
    "binary data": bytes(range(128, 256)),
    "an empty file": b"\n",
    FileKind.SWEEP: SWEEP.encode(),
    FileKind.TREE: TREE.encode(),
    FileKind.NODES: b"nodes:\n- {name: n1}\n",
    FileKind.CABLING_PLAN: b"device_a,port_a,device_b,port_b\na,1,b,2\n",
    FileKind.PLANES: b"planes: []\n",
    FileKind.PODS: b"apiVersion: v1\nkind: PodList\nitems: []\n",
    FileKind.REQUEST: (ROOT / "fixtures/demo/gang.yaml").read_bytes(),
    FileKind.NEIGHBORS: b'{"lldp": [{"interface": []}]}',
    FileKind.WALK: b".1.0.8802.1.1.2.1.3.2.0 = Hex-STRING: 00 11 22 33 44 55\n",
    "an object of kind HyperNode": b"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\n",
}
COMMANDS = {
    FileKind.TREE: ("place", "--tree", "FILE", "-f", "REQUEST"),
    FileKind.NODES: ("tree", "SWEEP", "--nodes", "FILE"),
    FileKind.SWEEP: ("tree", "FILE"),
    FileKind.CABLING_PLAN: ("diff", "SWEEP", "--cabling", "FILE"),
    FileKind.SILENCES: ("findings", "SWEEP", "--silence", "FILE"),
    FileKind.PLANES: ("planes", "SWEEP", "--planes", "FILE"),
    FileKind.REQUEST: ("place", "--tree", "TREE", "-f", "FILE"),
    FileKind.PODS: ("where", "job", "--tree", "TREE", "--pods", "FILE"),
}
"""By what it expects, a command that reads a file; upper-case words are files."""


@pytest.mark.parametrize("kind", CONTENTS)
def test_it_knows(kind: str) -> None:
    assert detect_kind(CONTENTS[kind]) == kind


@pytest.mark.parametrize(
    "head",
    [
        "side_a_device,side_a_type,side_a_name,side_b_device",
        "ID,Label,Device A,Termination A",
        '"Side A","Termination A","Side B","Termination B"',
    ],
)
def test_it_knows_every_form_of_a_table_of_cables(head: str) -> None:
    assert detect_kind(f"{head}\nx,y\n".encode()) == FileKind.CABLING_PLAN


@pytest.mark.parametrize("raw", [b"a: 1\n", b"- {kind: missing-link, device: n1}\n", b"text"])
def test_it_knows_no_other_content(raw: bytes) -> None:
    assert not detect_kind(raw)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    names = {"TREE": FileKind.TREE, "SWEEP": FileKind.SWEEP, "REQUEST": FileKind.REQUEST}
    for name, kind in names.items():
        (tmp_path / name).write_bytes(CONTENTS[kind])
    return {name: tmp_path / name for name in names}


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        *((expected, "HTML") for expected in COMMANDS),
        *((FileKind.TREE, kind) for kind in ("a PNG image", FileKind.WALK, FileKind.CABLING_PLAN)),
    ],
    ids=lambda kind: kind.split(" (")[0],
)
def test_one_line_says_what_it_is_and_what_was_expected(
    expected: FileKind, kind: str, files: dict[str, Path], tmp_path: Path
) -> None:
    file = tmp_path / "FILE"
    is_packed = expected is FileKind.TREE
    file.write_bytes(gzip.compress(CONTENTS[kind]) if is_packed else CONTENTS[kind])
    ran = run(*(files.get(word, file if word == "FILE" else word) for word in COMMANDS[expected]))
    lines = [line for line in ran.err.splitlines() if str(file) in line]
    assert len(lines) == 1, ran.err
    assert lines[0].endswith(f"{file}: expected {expected}, got {kind}")
    assert ran.code in {ExitCode.USAGE, ExitCode.NOTHING}


def test_a_file_of_the_expected_kind_keeps_the_place_of_its_fault(
    files: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "tree.json").write_text(TREE.replace('"tiers": []', '"tiers": 3'))
    ran = run("place", "--tree", tmp_path / "tree.json", "-f", files["REQUEST"])
    assert ran.code == ExitCode.USAGE
    assert "expected a list, got int" in ran.err
    assert "expected a TopologyTree" not in ran.err
