"""`toponaut place` with another system's manifest: answer on stdout, notes on stderr."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from generator.placement.request import parse_request
from tests.generator.scenes import RAILS, Scene, run
from tests.repository import ROOT

MANIFESTS = ROOT / "fixtures" / "manifests"
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 3
  suspend: true
  template:
    metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: topology.toponaut.io/leaf}}
    spec:
      hostNetwork: true
      priorityClassName: high
      containers: [{name: c, resources: {requests: {nvidia.com/gpu: 8}}}]
"""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene.of(tmp_path, RAILS)


def test_it_places_a_job_and_says_what_it_ignored(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB, encoding="utf-8")
    ran = run(
        "place", "-f", file, "--preset", "optimal", "--reports", scene.reports(), "-o", "json"
    )
    assert (ran.code, ran.document["tier"]) == (ExitCode.SKIPPED, "leaf")
    assert len(ran.document["assignment"]["main"]) == 3
    said = ran.err.splitlines()
    assert said[0] == "read as a request of Kueue"
    assert any(line.startswith("ignored: ") and "priorityClassName" in line for line in said)
    assert any("no effect on placement" in line and "spec.suspend" in line for line in said)
    assert "note: groups[0]: the nodes list no devices, only slots: each pod takes 1" in said


def test_it_says_how_to_name_a_level_that_the_tree_lacks(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("toponaut.io/leaf", "example.com/rack"), encoding="utf-8")
    ran = run("place", "-f", file, "--reports", scene.reports())
    assert "infeasible: no-level, tier topology.example.com/rack" in ran.out
    assert "note: --level NAME=TIER says which tier a level of the manifest is" in ran.err


def test_it_warns_of_an_annotation_of_pods_on_their_job(scene: Scene, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    annotation = "annotations: {kueue.x-k8s.io/podset-required-topology: rack}"
    file.write_text(JOB.replace("name: train", f"name: train, {annotation}"), encoding="utf-8")
    ran = run("place", "-f", file, "--reports", scene.reports())
    (line,) = [line for line in ran.err.splitlines() if "required-topology" in line]
    assert line.startswith("ignored: Job 'train' (line 2): metadata.annotations[")
    assert line.endswith("Kueue reads this annotation on pod templates only; move it there")


def test_it_uses_the_tier_set_by_the_user(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB, encoding="utf-8")
    ran = run(
        "place",
        "-f",
        file,
        "--level",
        "topology.toponaut.io/leaf=spine",
        "--translate",
        "-o",
        "json",
    )
    assert ran.document["spec"]["groups"][0]["required"] == "topology.toponaut.io/leaf|spine|leaf"


def test_it_places_whole_nodes_for_sbatch(scene: Scene) -> None:
    words = "--nodes=4 --switches=1 --exclusive"
    ran = run(
        "place",
        "--sbatch",
        words,
        "--preset",
        "optimal",
        "--reports",
        scene.reports(),
        "-o",
        "json",
    )
    assert (ran.code, ran.document["feasible"]) == (ExitCode.OK, True)
    assert ran.document["objective"]["domains"]["leaf"] == 1


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("kueue-job-required", ExitCode.SKIPPED),
        ("kueue-leader-slices", ExitCode.OK),
        ("kueue-other-annotations", ExitCode.SKIPPED),
        ("kueue-partial-slices", ExitCode.OK),
        ("sbatch-script", ExitCode.SKIPPED),
        ("volcano-job-tier-number", ExitCode.OK),
    ],
)
def test_it_prints_a_request_that_it_can_read(case: str, code: ExitCode) -> None:
    (file,) = (MANIFESTS / case).glob("input.*")
    ran = run("place", "-f", file, "--translate")
    document = yaml.safe_load(ran.out)
    assert (ran.code, document["kind"]) == (code, "PlacementRequest")
    request = parse_request(document | {"spec": document["spec"] | {"preset": "optimal"}})
    assert request.groups


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param([], "give one request: either --file or --sbatch", id="no request"),
        pytest.param(["-f", "x", "--sbatch", "-N 1"], "give one request", id="two requests"),
        pytest.param(
            ["--sbatch", "-N 1", "--level", "x"],
            "for --level: 'x' is not NAME=TIER",
            id="a level alone",
        ),
        pytest.param(["--sbatch", "-N x"], "--sbatch: --nodes: expected", id="bad options"),
    ],
)
def test_it_refuses(words: list[str], why: str) -> None:
    ran = run("place", *words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert why in ran.err
