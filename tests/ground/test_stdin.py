"""`-` stands for stdin wherever a file is read, plain or packed, and for one file only."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.simulation.replay.replay import build_tree_of_shape
from tests.generator.scenes import PAIRS, RAILS, Scene
from tests.repository import ROOT
from topology.model.tree import render_tree

REQUEST = ROOT / "fixtures/demo/gang.yaml"
PLAN = "device_a,port_a,device_b,port_b\nleaf-1,1,leaf-2,1\n"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    rails = Scene.of(tmp_path_factory.mktemp("rails"), RAILS)
    pairs = Scene.of(tmp_path_factory.mktemp("pairs"), PAIRS)
    tree = json.dumps(render_tree(build_tree_of_shape("2x2x2")))
    return {
        "sweep": rails.sweep(),
        "nodes": rails.kube_nodes(),
        "reports": pairs.reports(),
        "tree": rails.write("tree.json", tree),
        "plan": rails.write("plan.csv", PLAN),
    }


def run(words: str, inputs: dict[str, Path], stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    argv = [word.format(**inputs, request=REQUEST) for word in words.split()]
    program = [sys.executable, "-m", "generator", *argv]
    return subprocess.run(program, input=stdin, capture_output=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        pytest.param("tree -", "sweep", id="a sweep"),
        pytest.param("inspect -", "sweep", id="a file to inspect"),
        pytest.param("tree --reports {reports} --nodes -", "nodes", id="a node list"),
        pytest.param("place -f {request} --tree -", "tree", id="a tree"),
        pytest.param("diff --reports {reports} --cabling -", "plan", id="a cabling plan"),
    ],
)
def test_it_reads_stdin(words: str, stdin: str, inputs: dict[str, Path]) -> None:
    ran = run(words, inputs, inputs[stdin].read_bytes())
    assert ran.returncode == ExitCode.OK, ran.stderr
    assert ran.stdout


def test_it_reads_packed_stdin(inputs: dict[str, Path]) -> None:
    packed = gzip.compress(inputs["sweep"].read_bytes())
    ran = run("tree --ibnetdiscover -", inputs, packed)
    assert ran.returncode == ExitCode.OK, ran.stderr
    assert ran.stdout


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("tree --nodes - -", id="a node list and a sweep"),
        pytest.param("diff --cabling - --nodes - --reports {reports}", id="a plan and a node list"),
    ],
)
def test_it_refuses_to_read_stdin_for_two_options(words: str, inputs: dict[str, Path]) -> None:
    ran = run(words, inputs, inputs["sweep"].read_bytes())
    assert ran.returncode == ExitCode.USAGE
    assert b"stdin is read by" in ran.stderr
