"""`toponaut export cabling`: a plan from which its own fabric never differs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.cli.commands.outputs.export import CABLING_HEADER
from generator.cli.exit_codes import ExitCode
from generator.cli.output import render_csv
from tests.effort import examples
from tests.generator.scenes import run
from tests.topology.cables import claims
from topology.cabling.plan_diff import compare_cabling, list_cables
from topology.join.fabric_join import build_fabric
from topology.model.cabling_plan import CablingPlan
from topology.model.tree import API_VERSION
from topology.sources.cabling.formats import parse_cabling

NETBOX_FIELDS = {
    *("side_a_site", "side_a_device", "side_a_type", "side_a_name"),
    *("side_b_site", "side_b_device", "side_b_type", "side_b_name"),
    *("type", "status", "profile", "tenant", "label", "color", "length", "length_unit"),
    *("description", "comments", "tags"),
}
"""Fields of CableImportForm, dcim/forms/bulk_import.py of NetBox 4.4; it refuses all others."""


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--hosts", "64", "--rails", "4", "--radix", "16"], id="an intact fabric"),
        pytest.param(["--hosts", "64", "--swap", "2", "--lose-links", "5%"], id="a damaged one"),
        pytest.param(
            ["--hosts", "64", "--silent", "30%", "--medium", "ethernet"], id="a quiet one"
        ),
    ],
)
def test_the_fabric_does_not_differ_from_its_own_plan(words: list[str], tmp_path: Path) -> None:
    out = tmp_path / "fabric"
    assert run("simulate", "fabric", *words, "--out", out).code == ExitCode.OK
    for source in (["--reports", out / "reports"], ["--lldpcli", out / "lldpcli"]):
        text = run("export", "cabling", *source).out
        plan = tmp_path / "plan.csv"
        plan.write_text(text, encoding="utf-8")
        document = run("diff", *source, "--cabling", plan, "-o", "json").document
        assert (document["rows"], document["moves"]) == ([], [])
        assert document["asPlanned"] == len(text.splitlines()) - 1 > 0
        rows = list(csv.DictReader(text.splitlines()))
        assert rows[0].keys() <= NETBOX_FIELDS
        assert {(row["side_a_type"], row["status"]) for row in rows} == {
            ("dcim.interface", "connected")
        }


NAMES = st.text(
    st.characters(codec="ascii", categories=["L", "N"], include_characters="=+-@'\"_. ")
)


@settings(max_examples=examples(60))
@given(
    names=st.lists(
        NAMES.map(str.strip).filter(lambda name: name and not name.startswith("'")),
        min_size=3,
        max_size=8,
        unique_by=str.lower,
    ),
    port=st.sampled_from(["=1+1", "+e0", "-1", "@x", 'a"b', "swp1"]),
)
def test_a_hostile_name_is_no_formula_and_is_read_back(names: list[str], port: str) -> None:
    hosts, leaf = names[1:], f"{names[0]}-leaf"
    cables = [((host, port), (leaf, f"{port}{place}")) for place, host in enumerate(hosts)]
    fabric = build_fabric(claims(cables))
    listed = list_cables(fabric)
    rows = [(one.device_a, "", one.port_a, one.device_b, "", one.port_b, "") for one in listed]
    text = render_csv(CABLING_HEADER, rows)
    for row in csv.reader(text.splitlines()):
        assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
    read = parse_cabling(text.encode(), source="today.csv")
    assert [cable.ends for cable in read.cables] == [cable.ends for cable in listed]
    assert compare_cabling(CablingPlan(tuple(listed)), fabric).moves == ()


def test_a_tree_without_cables_has_no_plan(tmp_path: Path) -> None:
    tree = tmp_path / "tree.json"
    leaf = {"name": "leaf", "parent": None, "nodes": ["a"]}
    tiers = [{"tier": 1, "name": "leaf", "domains": [leaf]}]
    head = {"apiVersion": API_VERSION, "kind": "TopologyTree", "tiers": tiers, "unplaced": []}
    tree.write_text(json.dumps(head), encoding="utf-8")
    ran = run("export", "cabling", "--tree", tree)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "have no cables" in ran.err
