"""A wrong setting of the tree, with no good value known: nothing is planned, and it is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.objects.plane_config import PlaneChoice
from tests.generator.folders import StoreFolder
from tests.generator.scenes import RAILS, Scene, run
from tests.generator.server.test_loop import Loop

WRONG_SPECS: dict[str, object] = {
    "planes": {"planes": [{"name": "compute", "any": [{"ports": "mlx5_0*"}]}]},
    "planes.pattern": {"planes": [{"name": "compute", "any": [{"hosts": ["node-[0-"]}]}]},
    "outputs.plane": {"outputs": [{"type": "hypernode", "plane": "compue"}]},
    "tierNames": {"tierNames": ["1"]},
    "outputs": {"outputs": [{"type": "slurm"}]},
    "sweepers": {"sweepers": "node-0001"},
    "spec": ["planes"],
}


def name_of(field: str) -> str:
    return field if field == "spec" else f"spec.{field.removesuffix('.pattern')}"


def write_spec(scene: Scene, spec: object) -> None:
    StoreFolder(scene.root / "store").write_fabric(
        {
            "apiVersion": "toponaut.io/v1alpha1",
            "kind": "Fabric",
            "metadata": {"name": "default"},
            "spec": spec,
        }
    )


def read_conditions(scene: Scene) -> dict[str, Any]:
    document = StoreFolder(scene.root / "store").read_fabric() or {}
    return {row["type"]: row for row in document["status"]["conditions"]}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return a store whose HyperNodes are one host apart from the tree, within the budget."""
    scene = Scene.of(tmp_path, RAILS)
    store = scene.store()
    assert run("apply", "--store", store, "--nodes", scene.nodes()).code == ExitCode.OK
    (store / "neighborreports" / f"{scene.hosts[0]}.yaml").unlink()
    return scene


def test_commands_plan_nothing_and_name_the_field(scene: Scene) -> None:
    before = sorted((scene.root / "store" / "hypernodes").iterdir())
    for field, wrong in WRONG_SPECS.items():
        write_spec(scene, wrong)
        for command in ("plan", "apply"):
            ran = run(command, "--store", scene.root / "store", "-o", "json")
            assert (ran.code, ran.document) == (ExitCode.SKIPPED, [])
            assert f"{name_of(field)}: " in ran.err
            assert "no earlier good value is known" in ran.err
    assert sorted((scene.root / "store" / "hypernodes").iterdir()) == before


@pytest.mark.parametrize("field", ["planes", "outputs.plane", "spec"])
def test_a_server_that_starts_with_it_plans_and_publishes_nothing(
    tmp_path: Path, field: str
) -> None:
    scene = Scene.of(tmp_path, RAILS)
    scene.store()
    write_spec(scene, WRONG_SPECS[field])
    loop = Loop(scene, planes=None)
    loop.tick()
    assert (loop.files(), loop.snapshots) == ({}, [])
    ready = read_conditions(scene)["Ready"]
    assert (ready["status"], "no earlier good value is known" in ready["message"]) == (
        "False",
        True,
    )
    status = (StoreFolder(loop.root).read_fabric() or {})["status"]
    assert {"kind": "unusable-field", "severity": "error", "count": 1} in status["findings"]
    assert not status.get("sweepers"), "an election without the list of sweepers may choose others"
    write_spec(scene, {})
    loop.tick()
    assert len(loop.files()) > 1
    assert len(loop.snapshots) == 1
    assert read_conditions(scene)["Ready"]["status"] == "True"


def test_a_server_that_knows_a_good_value_keeps_it(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    scene.store()
    loop = Loop(scene, planes=None)
    loop.tick()
    before = loop.files()
    for field, wrong in WRONG_SPECS.items():
        write_spec(scene, wrong)
        loop.tick()
        assert loop.files() == before
        conditions = read_conditions(scene)
        assert conditions["Ready"]["status"] == "True"
        degraded = conditions["Degraded"]
        assert degraded["status"] == "True"
        assert f"{name_of(field)}: " in degraded["message"]
        assert "the last good value counts" in degraded["message"]
    write_spec(scene, {})
    loop.tick()
    assert name_of(field) not in read_conditions(scene)["Degraded"]["message"]


def test_a_plane_without_ports_is_named_with_the_planes_that_have_some(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    scene.store()
    write_spec(scene, {"outputs": [{"type": "hypernode", "plane": "storage"}]})
    loop = Loop(scene, planes=None)
    loop.tick()
    ready = read_conditions(scene)["Ready"]
    message = "no port is in plane storage; planes with ports: compute"
    assert (ready["status"], ready["message"]) == ("False", message)


def test_planes_of_an_option_need_no_planes_of_the_object(tmp_path: Path) -> None:
    scene = Scene.of(tmp_path, RAILS)
    scene.store()
    write_spec(scene, WRONG_SPECS["planes"])
    loop = Loop(scene, planes=PlaneChoice())
    loop.tick()
    assert loop.files()
