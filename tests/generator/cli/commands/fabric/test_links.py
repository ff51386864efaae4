"""`toponaut links`: every cable with both ends, filtered, and as a plan that `diff` reads."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import run


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the reports of sixteen hosts with two rails, of which two cables are exchanged."""
    folder = tmp_path_factory.mktemp("links") / "fabric"
    words = ("--hosts", 16, "--rails", 2, "--radix", 8, "--swap", 1, "--out", folder)
    assert run("simulate", "fabric", *words).code == ExitCode.OK
    return folder / "reports"


def test_it_lists_each_cable_from_the_host_with_its_network_and_rail(reports: Path) -> None:
    links = run("links", "--reports", reports, "-o", "json").document["links"]
    assert len(links) == 64
    assert links[0] == {
        "a": {"device": "node-0001", "port": "mlx5_0/1"},
        "b": {"device": "leaf-g01-r1", "port": "1"},
        "rateBps": 400_000_000_000,
        "state": "up",
        "plane": "compute",
        "rail": 1,
        "findings": [],
    }
    between = [row for row in links if row["a"]["device"].startswith("leaf")]
    assert {(row["plane"], row["rail"]) for row in between} == {("compute", None)}


@pytest.mark.parametrize(
    ("words", "num"),
    [
        (("--device", "node-0001"), 2),
        (("--device", "spine-*"), 32),
        (("--device", "node-0001", "--device", "node-0002"), 4),
        (("--state", "one-sided"), 0),
        (("--plane", "compute"), 64),
        (("--faulty",), 4),
    ],
)
def test_it_prints_only_the_cables_that_are_asked_for(
    words: tuple[str, ...], num: int, reports: Path
) -> None:
    ran = run("links", "--reports", reports, *words)
    rows = ran.out.splitlines()[1:-1]
    assert (len(rows), ran.code) == (num, ExitCode.OK), ran.err
    assert num or ran.out == "no cables\n"


def test_its_csv_is_a_plan_that_agrees_with_the_cables(reports: Path, tmp_path: Path) -> None:
    text = run("links", "--reports", reports, "-o", "csv").out
    rows = list(csv.DictReader(io.StringIO(text)))
    assert (rows[0]["device_a"], rows[0]["rate_gbps"], rows[0]["findings"]) == (
        "node-0001",
        "400",
        "",
    )
    plan = tmp_path / "plan.csv"
    plan.write_text(text, encoding="utf-8")
    assert run("diff", "--cabling", plan, "--reports", reports).out == (
        "no differences, 64 cables as planned\n"
    )


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(("--lose-links", "3%"), id="cables"),
        pytest.param(("--lose", "spine-p02-03"), id="a spine"),
        pytest.param(("--lose", "leaf-p02-g03-r2"), id="a leaf"),
        pytest.param(("--lose", "core-05"), id="a core"),
        pytest.param(("--lose", "spine-p02-03", "--lose-links", "2%"), id="a spine and cables"),
    ],
)
def test_missing_cables_are_those_that_were_lost(loss: Sequence[str], tmp_path: Path) -> None:
    words = ("--hosts", 64, "--rails", 4, "--radix", 16)
    for name, more in (("whole", ()), ("damaged", loss)):
        assert run("simulate", "fabric", *words, *more, "--out", tmp_path / name).code == 0
    whole = list_ends(tmp_path / "whole")
    damaged = list_ends(tmp_path / "damaged")
    missing = list_ends(tmp_path / "damaged", "--state", "missing")
    known = {ends for ends in missing if all(port for _, port in ends)}
    assert known or "--lose-links" not in loss
    assert known <= whole - damaged
    assert {end for ends in missing for end in ends if end[1]} <= {
        end for ends in whole - damaged for end in ends
    }
    assert len(missing) == len(whole - damaged)
    faulty = list_ends(tmp_path / "damaged", "--faulty")
    assert missing <= faulty <= missing | damaged
    assert missing == list_absent_on_page(tmp_path / "damaged")


def list_absent_on_page(folder: Path) -> set[frozenset[tuple[str, str]]]:
    """Return both ends of each absent cable in the exported page."""
    text = run("export", "html", "--reports", folder / "reports").out
    found = re.search(r'<script[^>]*id="document"[^>]*>(.*?)</script>', text, re.DOTALL)
    assert found
    document = json.loads(found[1])
    names = document["devices"]["name"]
    lost = [row["lostName"] for row in document["findings"]]
    return {
        frozenset(((names[a], a_port), (names[b] if b >= 0 else lost[place], b_port)))
        for a, a_port, b, b_port, place in document["absent"]
    }


def list_ends(folder: Path, *words: str) -> set[frozenset[tuple[str, str]]]:
    """Return both ends of each cable that the command lists."""
    links = run("links", "--reports", folder / "reports", *words, "-o", "json").document["links"]
    return {
        frozenset((row[end]["device"], row[end]["port"]) for end in ("a", "b")) for row in links
    }


def test_a_tree_without_cables_is_refused(tmp_path: Path) -> None:
    ran = run("links", "--hypernodes", tmp_path)
    assert (ran.code, "have no cables" in ran.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("no-such", id="a name"),
        pytest.param("no-such-*", id="a pattern"),
    ],
)
def test_it_refuses_a_device_that_does_not_exist(reports: Path, pattern: str) -> None:
    ran = run("links", "--reports", reports, "--device", pattern)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert f"there is no device '{pattern}' in these sources" in ran.err
