"""A HyperNode of ours that was deleted and has a finalizer: named, and no parent lists it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES
from tests.generator.scenes import PAIRS, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]
FINALIZER = "example.org/keep"
MERGE = "application/merge-patch+json"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    for name in made.hypernodes():
        set_finalizers(made, name, [])
    made.clear()


def set_finalizers(cluster: Cluster, name: str, finalizers: list[str]) -> None:
    change = {"metadata": {"finalizers": finalizers}}
    answer = cluster.api.request("PATCH", HYPERNODES.path(name), change, content_type=MERGE)
    assert answer.status == 200, answer.message


def delete_kept(cluster: Cluster, *, tier: int) -> str:
    """Delete a HyperNode of a tier that a finalizer keeps; return its name."""
    name = min(one.name for one in cluster.hypernodes().values() if one.tier == tier)
    set_finalizers(cluster, name, [FINALIZER])
    cluster.api.expect("DELETE", HYPERNODES.path(name))
    return name


def parents(cluster: Cluster, name: str) -> list[str]:
    return [one.name for one in cluster.hypernodes().values() if name in one.children]


def is_settled(cluster: Cluster) -> bool:
    """Return whether a plan has nothing left to do."""
    ran = run("plan", "--kube", "--kubeconfig", cluster.api.kubeconfig(WRITER), "-o", "json")
    return not list(ran.document)


def message(cluster: Cluster, kind: str) -> str:
    rows: list[dict[str, Any]] = cluster.fabric()["status"]["conditions"]
    return next(str(row["message"]) for row in rows if row["type"] == kind)


@pytest.mark.parametrize("tier", [1, 2])
def test_a_server_names_it_and_writes_it_again_once_it_is_gone(
    cluster: Cluster, tmp_path: Path, tier: int
) -> None:
    with serving(cluster, tmp_path):
        cluster.await_tree()
        name = delete_kept(cluster, tier=tier)
        cluster.await_that(
            lambda: (
                cluster.conditions().get("Ready") == "-ForeignHyperNodes"
                and not parents(cluster, name)
                and is_settled(cluster)
            ),
            "it is named, and no parent lists it",
        )
        assert f"HyperNode {name} was deleted and is kept by {FINALIZER}" in message(
            cluster, "Ready"
        )
        assert "output-refused" in message(cluster, "Degraded")
        before = cluster.versions()
        cluster.touch(minutes=1)
        cluster.touch(minutes=2)
        assert cluster.versions() == before, "it is not deleted again and again"
        set_finalizers(cluster, name, [])
        cluster.await_tree()
        assert "output-refused" not in message(cluster, "Degraded")


def test_a_plan_names_one_whose_domain_is_gone_and_does_not_delete_it_again(
    cluster: Cluster,
) -> None:
    words = "--kube", "--kubeconfig", cluster.api.kubeconfig(WRITER)
    assert run("apply", *words).code == ExitCode.OK
    name = delete_kept(cluster, tier=1)
    first = run("apply", *words, "-o", "json")
    assert first.code == ExitCode.SKIPPED
    assert f"HyperNode {name} was deleted and is kept by {FINALIZER}" in first.err
    again = run("plan", *words, "-o", "json")
    assert (again.code, again.document) == (ExitCode.SKIPPED, [])
    set_finalizers(cluster, name, [])
    assert run("apply", *words).code == ExitCode.OK
    assert name in cluster.hypernodes()
