"""Every stored form of input, cut anywhere: named as cut, or read as the whole is.

A cut between two records of a form that states no size does not show; those forms and places are
those of `Form.is_silent`, described in docs/sweeps.md.
"""

from __future__ import annotations

import gzip
import random  # noqa: TID251 - seeded places of cuts
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from generator.cli.exit_codes import ExitCode
from generator.ingest.captures import parse_dump
from tests.effort import examples
from tests.generator.scenes import PAIRS, RAILS, Ran, Scene, run
from tests.topology.sources.ibnetdiscover.dump_text import db_csv, net_dump, subnet_lst
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from topology.synthetic import render_snmpwalks

NUM_CUTS = examples(40)
NUM_FIRST_SWITCHES = 3


class Form(NamedTuple):
    """A stored form of input."""

    write: Callable[[Scene], Path]
    """Writes it; returns the file that is cut."""
    words: Callable[[Path], tuple[object, ...]]
    """The options that read it, by the file."""
    is_silent: Callable[[bytes, int], bool] = lambda _raw, _end: False
    """Whether a cut there cannot show."""
    fault: str = " cut"
    """What names the cut. YAML does not say whether it is cut or broken."""


def write_dump(render: Callable[..., str], name: str) -> Callable[[Scene], Path]:
    def write(scene: Scene) -> Path:
        devices = parse_ibnetdiscover(scene.sweep_text().encode()).devices
        return scene.write(name, render(devices))

    return write


def write_capture(scene: Scene) -> Path:
    scene.captures()
    return min((scene.root / "captures").glob("*.neighbors.json0"))


def write_chassis(scene: Scene) -> Path:
    scene.captures()
    return min((scene.root / "captures").glob("*.chassis.json0"))


def write_keyvalue(scene: Scene) -> Path:
    lines = []
    for number in range(4):
        key = f"lldp.swp{number}"
        lines += [
            f"{key}.via=LLDP", f"{key}.rid=1", f"{key}.age=0 day, 00:00:10",
            f"{key}.chassis.mac=02:00:00:00:00:0{number}", f"{key}.chassis.name=n{number}",
            f"{key}.port.ifname=eth0", f"{key}.port.ttl=120",
        ]  # fmt: skip
    return scene.write("captures/leaf.neighbors.keyvalue", "\n".join(lines) + "\n")


def write_walk(scene: Scene) -> Path:
    name, text = next(iter(render_snmpwalks(scene.damaged)))
    return scene.write(f"walks/{name}", text)


def write_report(scene: Scene) -> Path:
    return min(scene.reports().glob("*.yaml"))


def has_few_switches(raw: bytes, end: int) -> bool:
    """Return whether a net_dump ends within its first switches: their peers look like hosts."""
    return raw[:end].count(b"Mellanox, 0x") <= NUM_FIRST_SWITCHES


def is_between_neighbors(raw: bytes, end: int) -> bool:
    """Return whether a keyvalue capture is cut after a port: at most its TTL is missing."""
    last = raw[:end].rpartition(b".via=")[2]
    return raw[end - 1 : end] == b"\n" and b".port.ifname=" in last


def is_between_tables(raw: bytes, end: int) -> bool:
    """Return whether a walk is cut in no table, or in a column that agents may leave out."""
    return raw[end - 1 : end] == b"\n"


FORMS = {
    "db_csv": Form(write_dump(db_csv, "x.db_csv"), lambda file: ("--ibnetdiscover", file)),
    "net_dump": Form(
        write_dump(net_dump, "x.net_dump"), lambda file: ("--ibnetdiscover", file), has_few_switches
    ),
    "lst": Form(write_dump(subnet_lst, "x.lst"), lambda file: ("--ibnetdiscover", file)),
    "ibnetdiscover": Form(Scene.sweep, lambda file: ("--ibnetdiscover", file)),
    "json0": Form(write_capture, lambda file: ("--lldpcli", file.parent)),
    "chassis": Form(write_chassis, lambda file: ("--lldpcli", file.parent)),
    "keyvalue": Form(write_keyvalue, lambda file: ("--lldpcli", file.parent), is_between_neighbors),
    "walk": Form(write_walk, lambda file: ("--snmpwalk", file.parent), is_between_tables),
    "report": Form(write_report, lambda file: ("--reports", file.parent), fault="not YAML| cut"),
}
ETHERNET = {"json0", "chassis", "keyvalue", "walk"}


def choose_cuts(raw: bytes) -> Iterator[int]:
    places = random.Random(len(raw))  # noqa: S311 - no secret
    ends = [place + 1 for place, byte in enumerate(raw[:-1]) if byte == ord("\n")]
    yield from places.sample(ends, min(NUM_CUTS, len(ends)))
    yield from (places.randrange(1, len(raw) - 2) for _ in range(NUM_CUTS // 2))


def is_honest(ran: Ran, planned: Ran, *, fault: str) -> bool:
    """Return whether a cut is named, with nothing planned."""
    return (
        ran.code in {ExitCode.SKIPPED, ExitCode.NOTHING}
        and re.search(fault, ran.err) is not None
        and (planned.out in {"", "[]\n"} or "cut" not in ran.err)
    )


@pytest.mark.parametrize("name", FORMS)
def test_a_cut_is_named_or_changes_nothing(tmp_path: Path, name: str) -> None:
    form, file, whole = open_form(tmp_path, name)
    raw = file.read_bytes()
    for end in choose_cuts(raw):
        if not form.is_silent(raw, end):
            file.write_bytes(raw[:end])
            assert_honest(form, file, whole, tmp_path / "new")


@pytest.mark.parametrize("name", ["ibnetdiscover", "chassis", "walk", "report"])
def test_a_cut_gzip_file_is_named_by_each_reader(tmp_path: Path, name: str) -> None:
    form, file, whole = open_form(tmp_path, name)
    raw = gzip.compress(file.read_bytes(), mtime=0)
    file.unlink()
    file = file.with_name(f"{file.name}.gz")
    file.write_bytes(raw[: len(raw) // 2])
    assert_honest(form, file, whole, tmp_path / "new")


def open_form(tmp_path: Path, name: str) -> tuple[Form, Path, Ran]:
    """Write a form, and return what is read from the whole of it."""
    scene = Scene.of(tmp_path, PAIRS if name in ETHERNET else RAILS)
    file = FORMS[name].write(scene)
    whole = run("tree", *FORMS[name].words(file), "-o", "json")
    assert (whole.code, "cut" in whole.err) == (ExitCode.OK, False), whole.err
    return FORMS[name], file, whole


def assert_honest(form: Form, file: Path, whole: Ran, store: Path) -> None:
    ran = run("tree", *form.words(file), "-o", "json")
    if (ran.code, ran.out) != (whole.code, whole.out):
        planned = run("plan", "--store", store, *form.words(file), "-o", "json")
        assert is_honest(ran, planned, fault=form.fault), (file.read_bytes()[-160:], ran)


@pytest.mark.parametrize("name", ["db_csv", "net_dump", "lst"])
def test_a_dump_that_is_cut_between_two_lines_is_named_as_cut(tmp_path: Path, name: str) -> None:
    raw = FORMS[name].write(Scene.of(tmp_path, RAILS)).read_bytes()
    whole = parse_dump(raw, source="x").devices
    lines = raw.splitlines(keepends=True)
    for number in range(8, len(lines) - 1, max(1, len(lines) // 40)):
        if FORMS[name].is_silent(raw, sum(map(len, lines[:number]))):
            continue
        parsed = parse_dump(b"".join(lines[:number]), source="x")
        is_same = tuple(parsed.devices) == tuple(whole)
        assert is_same or any("cut" in str(error) for error in parsed.errors), number


@pytest.mark.parametrize("end", [9, 40, -20])
def test_a_cut_chassis_file_stops_every_plan(tmp_path: Path, end: int) -> None:
    file = write_chassis(Scene.of(tmp_path, PAIRS))
    file.write_bytes(file.read_bytes()[:end])
    ran = run("findings", "--lldpcli", file.parent, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert "the capture is cut" in ran.err
    assert [row["kind"] for row in ran.document] == ["cut-input"]


def test_an_unusable_file_of_a_report_is_a_finding_of_its_node(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    folder = scene.reports()
    for name in (scene.hosts[1], f"{scene.hosts[0]}.sweep.0"):
        file = folder / f"{name}.yaml"
        file.write_bytes(file.read_bytes()[:300])
    ran = run("findings", "--reports", folder, "-o", "json", "--kind", "unusable-report")
    assert ran.code == ExitCode.SKIPPED
    assert [row["subject"]["device"] for row in ran.document] == scene.hosts[:2]
    assert f"{scene.hosts[1]}.yaml" in ran.document[1]["message"]


@pytest.mark.parametrize("name", FORMS)
def test_a_hole_of_zeros_is_named_as_a_cut(tmp_path: Path, name: str) -> None:
    """A machine that lost its power leaves blocks of zeros in files that it had just written."""
    form, file, whole = open_form(tmp_path, name)
    raw, places = file.read_bytes(), random.Random(7)  # noqa: S311 - no secret
    for size in (1, 512):
        start = places.randrange(max(len(raw) - size, 0) + 1)
        file.write_bytes(raw[:start] + bytes(min(size, len(raw))) + raw[start + size :])
        ran = run("tree", *form.words(file), "-o", "json")
        assert (ran.code, ran.out) != (whole.code, whole.out)
        assert_honest(form, file, whole, tmp_path / "new")
