"""`toponaut place` with millicores and Ki: node lists, requests, manifests and running gangs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.cli.exit_codes import ExitCode
from tests.generator.placement.documents import racks
from tests.generator.scenes import Ran, run
from topology.model.tree import API_VERSION, render_tree

POD = {"requests": {"cpu": "3950m", "memory": "1000Mi"}}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "parallelism": 8,
        "completions": 8,
        "completionMode": "Indexed",
        "template": {
            "spec": {
                "containers": [
                    {"name": "a", "resources": POD},
                    {"name": "b", "resources": POD},
                ]
            }
        },
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One node of 63850m and 16384000Ki, as a tree and as a node list."""
    capacity = {"cpu": "63850m", "memory": "16384000Ki"}
    (tmp_path / "tree.json").write_text(json.dumps(render_tree(racks(1))))
    nodes = {"nodes": [{"name": "n0", "capacity": capacity}]}
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump(nodes))
    (tmp_path / "job.json").write_text(json.dumps(JOB))
    return tmp_path


def place(folder: Path, document: object, *words: object) -> Ran:
    file = folder / "asked.json"
    file.write_text(json.dumps(document))
    where = ("--tree", folder / "tree.json", "--nodes", folder / "nodes.yaml")
    return run("place", "-f", file, *where, *words)


def asking(count: int = 8, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - quantities
    groups = [{"name": "w", "count": count, "request": request}]
    return {"apiVersion": API_VERSION, "kind": "PlacementRequest", "spec": {"groups": groups}}


@pytest.mark.parametrize(
    ("document", "is_feasible"),
    [
        pytest.param(JOB, True, id="8 pods of two containers of 3950m and 1000Mi"),
        pytest.param(asking(cpu="7900m", memory="2000Mi"), True, id="8 pods of 7900m and 2000Mi"),
        pytest.param(asking(cpu="7982m"), False, id="8 pods of 7982m"),
        pytest.param(asking(memory="2048001Ki"), False, id="8 pods of a Ki too much"),
    ],
)
def test_it_answers_for(folder: Path, document: dict[str, Any], *, is_feasible: bool) -> None:
    ran = place(folder, document, "-o", "json")
    assert (ran.code, ran.document["feasible"]) == (ExitCode.OK, is_feasible)
    assert "rounded" not in ran.err


def test_it_translates_to_the_quantities_that_people_write(folder: Path) -> None:
    ran = run("place", "-f", folder / "job.json", "--translate", "-o", "json")
    (group,) = ran.document["spec"]["groups"]
    assert group["request"] == {"cpu": "7900m", "memory": 2000 * 2**20}
    assert place(folder, ran.document, "-o", "json").document["feasible"]


def test_it_names_the_quantities_that_people_write(folder: Path) -> None:
    ran = place(folder, asking(1, cpu="63851m"))
    assert "a pod needs 63851m cpu, and the largest node lists 63850m" in ran.out


@pytest.mark.parametrize(("used", "is_feasible"), [("650m", True), ("651m", False)])
def test_it_subtracts_the_millicores_of_running_gangs(
    folder: Path, used: str, *, is_feasible: bool
) -> None:
    running = folder / "running.json"
    pods = [{"node": "n0", "request": {"cpu": used}}]
    running.write_text(json.dumps([{"gang": "other", "preemptible": False, "pods": pods}]))
    ran = place(folder, asking(cpu="7900m"), "--running", running, "-o", "json")
    assert ran.document["feasible"] == is_feasible


def test_it_names_the_field_of_a_malformed_quantity(folder: Path) -> None:
    ran = place(folder, asking(cpu="7.9 cores"))
    assert ran.code == ExitCode.USAGE
    assert "groups[0].request.cpu: expected a quantity such as 8, 500m or 16Gi" in ran.err
    assert ran.err.count("got") == 1
