"""Prints of tools that no parser reads: each is named, with the command that gives what is read."""

import re
from pathlib import Path

import pytest

from generator.ingest.file_inspection import inspect_bytes
from generator.store.file_kinds import FileKind, explain_kind
from tests.repository import ROOT
from topology.sources.cabling.formats import parse_cabling
from topology.sources.lldp.lldpcli import parse_neighbors
from topology.sources.lldp_mib.walk import parse_snmpwalk_text
from topology.sources.unsupported_formats import explain_output

FILE = ROOT / "fixtures" / "unsupported_formats" / "prints.txtar"
_, *PARTS = re.split(r"^-- (.+) -> (.+) --\n", FILE.read_text(), flags=re.MULTILINE)
PRINTS = {
    name: (text, advice)
    for name, advice, text in zip(PARTS[::3], PARTS[1::3], PARTS[2::3], strict=True)
}
"""Each print, and what the answer must contain."""


@pytest.mark.parametrize("name", PRINTS)
def test_it_names_a_print_and_says_what_to_run(name: str, tmp_path: Path) -> None:
    text, advice = PRINTS[name]
    found = inspect_bytes(text.encode(), source="FILE")
    (problem,) = map(str, found.problems)
    assert found.format in {"unknown", "lldpcli-neighbors"}
    assert advice in problem
    assert explain_output(text) in problem
    file = tmp_path / "file"
    file.write_text(text, newline="\r\n")
    assert explain_output(text) in explain_kind(file, FileKind.SWEEP)


@pytest.mark.parametrize("name", PRINTS)
def test_every_reader_of_text_says_the_same(name: str) -> None:
    text, _ = PRINTS[name]
    raw, said = text.encode(), explain_output(text)
    device, walk_errors = parse_snmpwalk_text(raw)
    capture = parse_neighbors(raw)
    assert device is None
    assert not capture.ports
    assert [error.problem for error in walk_errors] == [said]
    assert [error.problem for error in capture.errors] == [said]
    if not text.startswith(("{", "[")):
        assert [error.problem for error in parse_cabling(raw).errors] == [said]


READABLE = [
    path
    for source in ("cabling", "ibdiagnet", "ibnetdiscover", "lldp_mib", "opensm", "nvidia_smi")
    for path in (ROOT / "fixtures" / source).glob("*/input.*")
    if path.parent.name != "something-else"
]


@pytest.mark.parametrize("path", READABLE, ids=lambda path: "/".join(path.parts[-3:-1]))
def test_it_takes_no_file_that_is_read_for_another(path: Path) -> None:
    assert not explain_output(path.read_text(encoding="utf-8", errors="replace"))


def test_a_walk_without_on_is_read_if_its_oids_are_numbers() -> None:
    walk = 'iso.3.6.1.2.1.1.5.0 = STRING: "leaf-1"\niso.3.6.1.2.1.31.1.1.1.1.3 = STRING: "swp1"\n'
    device, errors = parse_snmpwalk_text(walk.encode())
    assert device is not None
    assert (device.name, [port.name for port in device.ports], errors) == ("leaf-1", ["swp1"], ())
    assert inspect_bytes(walk.encode(), source="FILE").format == "snmpwalk"


def test_a_walk_that_is_named_in_part_reports_each_named_line() -> None:
    walk = (
        'iso.0.8802.1.1.2.1.3.3.0 = STRING: "leaf-1"\nIF-MIB::ifName.3 = STRING: swp1\n'
        "IF-MIB::ifName.4 = STRING: swp2\niso.0.8802.1.1.2.1.3.1.0 = INTEGER: 4\n"
    )
    device, errors = parse_snmpwalk_text(walk.encode(), source="leaf-1")
    assert device is not None
    assert device.name == "leaf-1"
    assert [(error.line, error.problem.partition(":")[0]) for error in errors] == [
        (2, "its OID is a name"), (3, "its OID is a name"),
    ]  # fmt: skip
