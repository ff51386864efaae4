"""`--snmpwalk`: saved walks, as a source of every reading command."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import Ran, run
from tests.shared_samples import SAMPLES, needs_samples

OWN16 = SAMPLES / "fabric" / "own16"
REAL = SAMPLES / "snmp"
LEAF = """\
.1.3.6.1.2.1.1.5.0 = STRING: {name}
.1.3.6.1.2.1.31.1.1.1.1.1 = STRING: swp1
.1.0.8802.1.1.2.1.3.1.0 = INTEGER: 4
.1.0.8802.1.1.2.1.3.2.0 = Hex-STRING: 44 38 39 00 00 {number:02x}
.1.0.8802.1.1.2.1.4.1.1.4.0.1.1 = INTEGER: 4
.1.0.8802.1.1.2.1.4.1.1.5.0.1.1 = Hex-STRING: 44 38 39 00 01 {number:02x}
.1.0.8802.1.1.2.1.4.1.1.6.0.1.1 = INTEGER: 5
.1.0.8802.1.1.2.1.4.1.1.7.0.1.1 = STRING: eth0
.1.0.8802.1.1.2.1.4.1.1.9.0.1.1 = STRING: node{number:02d}
"""


def save(folder: Path, file: str, number: int, name: str = "") -> None:
    (folder / file).write_text(LEAF.format(name=name, number=number))


def leaves(ran: Ran) -> dict[str, list[str]]:
    (tier,) = ran.document["tiers"]
    return {row["switches"][0]: row["nodes"] for row in tier["domains"]}


def test_it_reads_a_folder_of_walks_and_nothing_else_there(tmp_path: Path) -> None:
    save(tmp_path, "leaf01.snmpwalk.txt", 1, name="leaf01")
    save(tmp_path, "leaf02.snmpwalk", 2, name="leaf02")
    save(tmp_path, "leaf03.txt", 3, name="leaf03")
    (tmp_path / "README.md").write_text("walked on Monday")
    (tmp_path / "leaf01.neighbors.json0").write_text("{}")
    ran = run("tree", "--snmpwalk", tmp_path, "-o", "json")
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert leaves(ran) == {f"leaf0{at}": [f"node0{at}"] for at in (1, 2, 3)}


def test_it_names_a_switch_without_a_name_after_its_file(tmp_path: Path) -> None:
    save(tmp_path, "rack7-top.snmpwalk.txt", 1)
    ran = run("tree", "--snmpwalk", tmp_path, "-o", "json")
    assert leaves(ran) == {"rack7-top": ["node01"]}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no file <device>.snmpwalk.txt in this folder"),
        (b"", "no rows: expected"),
        (b"Timeout: No Response from 10.0.0.1\n", "an error of snmpwalk: check the address"),
    ],
    ids=["holds none", "holds an empty one", "holds what a dead switch said"],
)
def test_it_reads_nothing_from_a_folder_that(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "leaf01.snmpwalk.txt").write_bytes(content)
    ran = run("tree", "--snmpwalk", tmp_path, "-o", "json")
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert problem in ran.err


def test_it_opens_no_pipe_in_the_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "leaf01.snmpwalk.txt")
    save(tmp_path, "leaf02.snmpwalk.txt", 2, name="leaf02")
    ran = run("tree", "--snmpwalk", tmp_path, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert "not a regular file" in ran.err
    assert leaves(ran) == {"leaf02": ["node02"]}


@needs_samples
def test_it_finds_every_cable_of_a_real_fabric_by_its_switches_alone() -> None:
    ran = run(
        *("diff", "--snmpwalk", OWN16, "--cabling", OWN16 / "cabling.csv", "-o", "json"),
    )
    assert (ran.code, ran.err) == (ExitCode.OK, "")
    assert (ran.document["rows"], ran.document["unplanned"]) == ([], [])
    assert ran.document["asPlanned"] == 27


@needs_samples
def test_it_sees_the_same_fabric_by_walks_as_by_lldpcli() -> None:
    walked, printed = (
        run("tree", option, OWN16, "-o", "json") for option in ("--snmpwalk", "--lldpcli")
    )
    assert walked.document == printed.document


@needs_samples
def test_it_reads_saved_walks_of_many_vendors() -> None:
    ran = run("findings", "--snmpwalk", REAL, "-o", "json")
    assert ran.code == ExitCode.SKIPPED  # some hold lines that a recorder broke
    kinds = {row["kind"] for row in ran.document}
    assert kinds >= {"one-sided-link", "unresolved-host"}
    assert "duplicate-id" not in kinds  # Junos' internal interfaces share MACs, and speak no LLDP


@needs_samples
@pytest.mark.parametrize(
    "file", sorted(REAL.glob("*")) if REAL.is_dir() else [], ids=lambda file: file.name
)
def test_it_recognises_a_saved_walk_by_its_content(file: Path) -> None:
    ran = run("inspect", file, "-o", "json")
    assert ran.document[0]["format"] == "snmpwalk"
    assert ran.document[0]["counts"]["devices"] == 1
