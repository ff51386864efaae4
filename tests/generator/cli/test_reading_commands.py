"""The reading commands with every kind of input: one document on stdout, and the exit code."""

from __future__ import annotations

import json
import os
import re
import subprocess  # noqa: TID251 - runs the program under test
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import RAILS, Scene, domain_names, partition, run
from topology.model.tree import render_tree
from topology.synthetic import derive_truth


@pytest.fixture(scope="module")
def rails(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.of(tmp_path_factory.mktemp("rails"), RAILS)


@pytest.fixture(scope="module")
def hypernodes(rails: Scene) -> Path:
    """The HyperNodes of the fabric."""
    store = rails.store()
    assert run("apply", "--store", store).code == ExitCode.OK
    rails.write("tree.json", run("tree", rails.sweep(), "-o", "json").out)
    return store / "hypernodes"


Words = Callable[[Scene], list[object]]
RAIL_INPUTS: dict[str, Words] = {
    "agents' reports": lambda scene: ["--reports", scene.reports()],
    "one sweep given twice": lambda scene: [scene.sweep(), "--ibnetdiscover", scene.sweep()],
    "reports and a sweep": lambda scene: [scene.sweep(), "--reports", scene.reports()],
    "a sweep with an inventory": lambda scene: [scene.sweep(), "--nodes", scene.nodes()],
    "reports with kubectl's YAML": lambda scene: [
        *("--reports", scene.reports()),
        *("--nodes", scene.kube_nodes(form="yaml")),
    ],
    "a sweep with CRLF line ends": lambda scene: [
        scene.write("crlf.txt", scene.sweep_text().replace("\n", "\r\n"))
    ],
}


@pytest.mark.parametrize("words", RAIL_INPUTS.values(), ids=RAIL_INPUTS.keys())
def test_it_infers_the_true_tree_of_rails_from(rails: Scene, words: Words) -> None:
    ran = run("tree", *words(rails), "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    assert ran.err == ""
    assert partition(ran.document) == partition(render_tree(derive_truth(rails.damaged)))
    assert ran.document["unplaced"] == []


def test_it_gives_domains_the_same_names_from_reports_and_from_a_sweep(rails: Scene) -> None:
    by_reports = run("tree", "--reports", rails.reports(), "-o", "json").document
    by_sweep = run("tree", rails.sweep(), "-o", "json").document
    assert domain_names(by_reports) == domain_names(by_sweep)
    assert by_reports["tiers"] == by_sweep["tiers"]


def test_it_reads_back_the_tree_of_the_hypernodes_that_it_writes(
    rails: Scene, hypernodes: Path
) -> None:
    first = run("tree", "--reports", rails.reports(), "-o", "json").document
    again = run("tree", "--hypernodes", hypernodes, "-o", "json")
    assert again.code == ExitCode.OK, again.err
    assert partition(again.document) == partition(first)
    assert domain_names(again.document) == domain_names(first)
    assert [tier["name"] for tier in again.document["tiers"]] == ["leaf", "spine", "core"][
        : len(first["tiers"])
    ]


def test_it_prints_a_tree_that_the_schema_accepts(rails: Scene) -> None:
    schema = json.loads(run("schema", "tree").out)
    document = run("tree", rails.sweep(), "-o", "json").document
    jsonschema.validate(document, schema)


def test_yaml_is_the_document_of_json(rails: Scene) -> None:
    ran = run("tree", rails.sweep(), "-o", "yaml")
    assert list(yaml.safe_load_all(ran.out)) == [run("tree", rails.sweep(), "-o", "json").document]
    assert ran.err == ""


def test_it_keeps_stdout_a_document_when_input_is_skipped(rails: Scene) -> None:
    bad = rails.write("bad/sweep.txt", rails.sweep_text() + "\n[1] nonsense\n")
    ran = run("tree", bad, "-o", "json")
    assert ran.code == ExitCode.SKIPPED
    assert partition(ran.document) == partition(render_tree(derive_truth(rails.damaged)))
    assert f"skipped: {bad}:" in ran.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param("--kube --reports .", "no --reports", id="a folder and a cluster"),
        pytest.param("--context a", "need --kube", id="a context without a cluster"),
        pytest.param("--kube --hypernodes .", "no other source", id="a tree and a cluster"),
        pytest.param("--kube --kubeconfig /no", "kubeconfig /no", id="a missing kubeconfig"),
        pytest.param("{hypernodes} {sweep}", "no other source", id="a tree and a sweep"),
        pytest.param("{hypernodes} --tier-names a,b", "--tier-names", id="a tree and names"),
        pytest.param("{hypernodes} --previous {tree}", "--previous", id="a tree and another"),
    ],
)
def test_it_refuses(words: str, problem: str, rails: Scene, hypernodes: Path) -> None:
    files = {"sweep": rails.sweep(), "tree": rails.root / "tree.json"}
    ran = run("tree", *words.format(hypernodes=f"--hypernodes {hypernodes}", **files).split())
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert problem in ran.err


def test_it_keeps_only_listed_nodes_of_hypernodes(rails: Scene, hypernodes: Path) -> None:
    listed = rails.kube_nodes(*rails.hosts[:-1], "node-new")
    ran = run("tree", "--hypernodes", hypernodes, "--nodes", listed, "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    placed = {node for row in ran.document["tiers"][0]["domains"] for node in row["nodes"]}
    assert placed == set(rails.hosts[:-1])
    assert [row["node"] for row in ran.document["unplaced"]] == ["node-new"]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ("leaf", "this tree has 3 tiers, lowest first, so give 3 names; got 1: leaf"),
        ("node,row,hall", "'node' always means a single node"),
        ("rack,,hall,site", "empty"),
    ],
    ids=["too few", "the node", "an empty name"],
)
def test_it_refuses_tier_names_that_are(rails: Scene, names: str, says: str) -> None:
    ran = run("tree", rails.sweep(), "--tier-names", names)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert says in ran.err


def test_it_says_where_to_look_if_no_host_has_a_name(rails: Scene) -> None:
    text = re.sub(r"node-\d+ mlx5_\d", "MT4129 ConnectX7", rails.sweep_text())
    sweep = rails.write("nameless.txt", text)
    tree, findings = (
        run("tree", sweep),
        run("findings", sweep, "--kind", "unresolved-host", "-o", "wide"),
    )
    assert (tree.code, findings.code) == (ExitCode.OK, ExitCode.OK)
    assert "`toponaut findings` with the same options" in tree.out
    rows = [line for line in findings.out.splitlines() if line.startswith("warning ")]
    assert sum("unresolved-host" in line for line in rows) == 4 * len(rails.hosts)


def test_it_uses_the_given_tier_names(rails: Scene) -> None:
    ran = run("tree", rails.sweep(), "--tier-names", "rack, row, hall", "-o", "json")
    names = [tier["name"] for tier in ran.document["tiers"]]
    assert names == ["rack", "row", "hall"][: len(names)]


def test_it_keeps_the_names_of_the_previous_tree(rails: Scene) -> None:
    first = run("tree", rails.sweep(), "-o", "json").document
    for tier in first["tiers"]:
        for row in tier["domains"]:
            row["name"] = f"old-{row['name']}"
            row["parent"] = row["parent"] and f"old-{row['parent']}"
    previous = rails.write("previous.json", json.dumps(first))
    again = run("tree", rails.sweep(), "--previous", previous, "-o", "json").document
    assert domain_names(again) == domain_names(first)


def test_it_takes_options_from_the_environment(rails: Scene) -> None:
    ran = run("tree", "-o", "json", env={"TOPONAUT_TREE_REPORTS": str(rails.reports())})
    assert ran.code == ExitCode.OK
    assert len(ran.document["tiers"][0]["domains"]) > 1


def test_it_prints_under_a_locale_that_knows_ascii_only(tmp_path: Path) -> None:
    file = tmp_path / f"{'x' * 180}.txt"
    file.write_text("Switch 4 \u00fcber\n" * 3)
    done = subprocess.run(
        [sys.executable, "-m", "generator", "inspect", file],
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict", "PYTHONUTF8": "0"},
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (ExitCode.SKIPPED, ExitCode.NOTHING)
