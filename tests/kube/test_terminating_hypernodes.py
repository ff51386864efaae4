"""A HyperNode of ours that was deleted and has a finalizer: named, and no parent lists it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES
from tests.generator.scenes import PAIRS, Scene
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]
FINALIZER = "example.org/keep"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    for name in made.hypernodes():
        set_finalizers(made, name, [])
    made.clear()


def set_finalizers(cluster: Cluster, name: str, finalizers: list[str]) -> None:
    change = {"metadata": {"finalizers": finalizers}}
    cluster.api.merge(HYPERNODES.path(name), change)


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
    return not list(cluster.toponaut("plan", "-o", "json").document)


def test_it_is_named_and_written_again_once_it_is_gone(cluster: Cluster, tmp_path: Path) -> None:
    """A leaf and a spine, first for a command and then for a server."""
    assert cluster.toponaut("apply").code == ExitCode.OK
    spine, leaf = (delete_kept(cluster, tier=tier) for tier in (2, 1))
    kept = [f"HyperNode {name} was deleted and is kept by {FINALIZER}" for name in (spine, leaf)]
    ran = cluster.toponaut("apply")
    assert ran.code == ExitCode.SKIPPED
    assert all(text in ran.err for text in kept)
    with serving(cluster, tmp_path):
        cluster.await_that(
            lambda: (
                cluster.conditions().get("Ready") == "-ForeignHyperNodes"
                and not parents(cluster, leaf)
                and is_settled(cluster)
            ),
            "they are named, and no parent lists them",
        )
        assert all(text in cluster.message("Ready") for text in kept)
        assert "output-refused" in cluster.message("Degraded")
        before = cluster.versions()
        cluster.touch(minutes=1)
        cluster.touch(minutes=2)
        assert cluster.versions() == before, "they are not deleted again and again"
        for name in (leaf, spine):
            set_finalizers(cluster, name, [])
        cluster.await_tree()
        assert "output-refused" not in cluster.message("Degraded")
