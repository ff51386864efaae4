"""docs/operations.md as a reader follows it: its objects and its lines, word for word."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from generator.kube.resources import FABRICS, RESERVATIONS
from generator.objects.tree_spec import DEFAULT_TREE_SPEC, parse_tree_spec
from generator.objects.write_policy import WritePolicy, parse_write_policy
from tests.daemonset.readers import Reader, written
from tests.generator.folders import StoreFolder
from tests.generator.scenes import PAIRS, Scene
from tests.kube.examples import made
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]

PAGE = "operations.md"
HASH = re.compile(r"\b[0-9a-f]{16}\b")
CALLER = "system:serviceaccount:volcano-system:volcano-scheduler"
FABRIC = {"apiVersion": FABRICS.api_version, "kind": FABRICS.kind, "metadata": {"name": "default"}}
STRICT = "fieldManager=test&force=true&fieldValidation=Strict&dryRun=All"


def specs() -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in written(PAGE, "Let it through, or stop it", "yaml")]


def test_the_server_takes_the_fabrics_that_it_shows_whole(cluster: ApiServer) -> None:
    shown = specs()
    assert len(shown) == 2
    for part in shown:
        answer = cluster.apply(f"{FABRICS.path('default')}?{STRICT}", FABRIC | part)
        assert answer["spec"].items() >= part["spec"].items()


def test_the_server_takes_the_status_that_it_shows(cluster: ApiServer) -> None:
    (text,) = written(PAGE, "When a plan is held", "yaml")
    status = yaml.safe_load(text)["status"]
    # Lines that a server of ours always prints, and that the page leaves out.
    for condition in status["conditions"]:
        condition["lastTransitionTime"] = status["held"]["since"]
    cluster.apply(f"{FABRICS.path('default')}?fieldManager=test&force=true", FABRIC | {"spec": {}})
    path = f"{FABRICS.path('default')}/status?{STRICT}"
    answer = cluster.apply(path, FABRIC | {"status": status})
    assert answer["status"]["held"] == status["held"]


def test_the_generator_understands_the_fabrics_that_it_shows() -> None:
    limits, outputs = (FABRIC | part for part in specs())
    policy = parse_write_policy(limits)
    assert policy.is_paused
    assert policy.budget != WritePolicy().budget
    assert not policy.problems
    shape, problems = parse_tree_spec(outputs)
    assert not problems
    assert shape != DEFAULT_TREE_SPEC


def test_its_lines_approve_a_plan_and_carry_it_out(tmp_path: Path) -> None:
    scene, reader = Scene.of(tmp_path, PAIRS), Reader(tmp_path)
    store = StoreFolder(scene.store())
    folder, nodes = str(tmp_path / "store"), str(scene.nodes())
    reader.type(f"toponaut apply --store {folder} --nodes {nodes}")
    before = len(store.read_hypernodes().values)
    lose_half(scene)
    (block,) = written(PAGE, "Let it through, or stop it")
    look, approve, carry_out = (
        line.replace("DIR", folder).replace("nodes.yaml", nodes) for line in block.splitlines()
    )
    (plan,) = set(HASH.findall(reader.type(f"{look} 2>&1 >/dev/null")))
    for line in (approve, carry_out):
        reader.type(HASH.sub(plan, line))
    assert len(store.read_hypernodes().values) < before


def lose_half(scene: Scene) -> None:
    """Remove half of the hosts, and all evidence of them."""
    gone = set(scene.hosts[len(scene.hosts) // 2 :])
    for name in gone:
        (scene.root / "store" / "neighborreports" / f"{name}.yaml").unlink()
    nodes = scene.root / "nodes.yaml"
    document = yaml.safe_load(nodes.read_text())
    document["nodes"] = [row for row in document["nodes"] if row["name"] not in gone]
    nodes.write_text(yaml.safe_dump(document))


def test_its_line_lets_a_scheduler_place(cluster: ApiServer, tmp_path: Path) -> None:
    (block,) = written(PAGE, "Who may ask for placements")
    (grant,) = (line for line in block.splitlines() if line.startswith("kubectl "))
    assert not may_place(cluster)
    Reader(tmp_path, cluster).type(grant)
    # The server's authorizer follows bindings by a watch.
    wait_until(lambda: not may_place(cluster), deadline_s=60, what="the grant")


def may_place(cluster: ApiServer) -> bool:
    """Ask as the generator does; kubectl knows no resource that nobody serves."""
    wanted = {"group": "toponaut.io", "resource": "placements", "verb": "create"}
    review = {"spec": {"user": CALLER, "resourceAttributes": wanted}}
    answer = cluster.expect("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


def test_its_line_releases_a_reservation(cluster: ApiServer, tmp_path: Path) -> None:
    (line,) = written(PAGE, "Reservations")
    name = line.split()[-1]
    path = RESERVATIONS.path(name)
    cluster.apply(f"{path}?fieldManager=test", made(RESERVATIONS, name=name))
    Reader(tmp_path, cluster).type(line)
    assert cluster.request("GET", path).status == 404
