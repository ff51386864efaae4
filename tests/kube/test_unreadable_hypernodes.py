"""A HyperNode that cannot be read is never written: it is a conflict that is named."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.kube.resources import HYPERNODES
from tests.generator.scenes import PAIRS, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import DEADLINE_S, Cluster, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]

CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/hypernodes.topology.volcano.sh"


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


@contextmanager
def unchecked_names(api: ApiServer) -> Iterator[None]:
    """Let the CRD accept member names of any length, as a later version of it might."""
    crd = api.expect("GET", CRD)
    checked = json.dumps(crd["spec"])

    def write(spec: str) -> None:
        found = api.expect("GET", CRD)
        api.expect("PUT", CRD, found | {"spec": json.loads(spec)})

    loose = re.sub(r'"maxLength": 253, ', "", checked)
    assert loose != checked
    write(loose)
    try:
        yield
    finally:
        write(checked)


@pytest.mark.parametrize("has_our_label", [False, True])
def test_it_stays_as_it_is_while_all_others_are_written(
    cluster: Cluster, tmp_path: Path, *, has_our_label: bool
) -> None:
    with serving(cluster, tmp_path) as first:
        cluster.await_tree()
        assert first.stop() == ExitCode.OK
    leaf, other, *_ = (one.name for one in cluster.hypernodes().values() if one.tier == 1)
    path = HYPERNODES.path(leaf)
    taken = cluster.api.expect("GET", path)
    labels = taken["metadata"]["labels"] if has_our_label else {}
    # Longer than any name of an object: the CRD allows it, and we do not read it.
    member = {"type": "Node", "selector": {"exactMatch": {"name": "x" * 300}}}
    taken["metadata"] = {"name": leaf, "labels": labels}
    taken["spec"]["members"] = [member]
    cluster.api.expect("DELETE", path)
    with unchecked_names(cluster.api):
        wait_until(
            lambda: cluster.api.request("POST", HYPERNODES.path(), taken).message,
            deadline_s=DEADLINE_S,
            what="the loose schema is served",
        )
    cluster.api.expect("DELETE", HYPERNODES.path(other))
    before = cluster.api.expect("GET", path)
    with serving(cluster, tmp_path):
        # `await_that` would read all HyperNodes, and this one cannot be read.
        wait_until(
            lambda: "" if other in cluster.versions() else "missing",
            deadline_s=DEADLINE_S,
            what="the other leaf is written",
        )
        wait_until(
            lambda: cluster.conditions().get("Ready") != "-ForeignHyperNodes",
            deadline_s=DEADLINE_S,
            what="it is named",
        )
        (ready,) = (
            row for row in cluster.fabric()["status"]["conditions"] if row["type"] == "Ready"
        )
        assert leaf in ready["message"]
        ran = run("plan", "--kube", "--kubeconfig", cluster.api.kubeconfig(WRITER))
        assert ran.code == ExitCode.SKIPPED
        assert f"HyperNode {leaf} is left out" in ran.err
        assert cluster.api.expect("GET", path) == before
        cluster.api.expect("DELETE", path)
        cluster.await_tree()
