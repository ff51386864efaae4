"""`toponaut doctor` on a real API server, before and after a generator runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from tests.generator.scenes import PAIRS, Scene, run
from tests.kube.conftest import WRITER
from tests.kube.servers import Cluster, serving
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube serving")]


@pytest.fixture
def cluster(other_api: ApiServer, tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(other_api, Scene.of(tmp_path / "scene", PAIRS))
    yield made
    made.clear()


def outcomes(cluster: Cluster) -> dict[str, str]:
    """Return the worst outcome per subject."""
    kubeconfig = cluster.api.kubeconfig(WRITER)
    words = ("--kubeconfig", kubeconfig, "--namespace", cluster.namespace, "-o", "json")
    found: dict[str, str] = {}
    rank = ("ok", "unknown", "warning", "error")
    for row in run("doctor", *words).document:
        before = found.get(row["subject"], "ok")
        found[row["subject"]] = max(before, row["outcome"], key=rank.index)
    return found


def test_it_finds_what_is_missing_and_that_it_is_mended(cluster: Cluster, tmp_path: Path) -> None:
    before = outcomes(cluster)
    assert before["Toponaut's kinds"] == before["Kubernetes"] == "ok"
    assert before["Agents"] == "warning"  # these reports have no time
    assert before["Generator"] == "error"
    with serving(cluster, tmp_path):
        wait_until(
            lambda: outcomes(cluster)["Fabric object"] != "ok", deadline_s=60, what="it is ready"
        )
        after = outcomes(cluster)
    assert after["Generator"] == after["Volcano"] == "ok"


def test_check_exits_with_5_while_something_is_wrong(cluster: Cluster) -> None:
    ran = run("doctor", "--kubeconfig", cluster.api.kubeconfig(WRITER), "--check")
    assert ran.code == ExitCode.CHECK_FAILED
    assert "-> kubectl -n toponaut-system get pods,leases" in ran.out


def test_an_api_server_that_does_not_answer_is_one_error(tmp_path: Path) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    file = tmp_path / "config"
    document = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}
    lists = {"clusters": [cluster], "contexts": [context], "users": [user]}
    file.write_text(json.dumps(document | lists))
    ran = run("doctor", "--kubeconfig", file)
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert len(ran.err.splitlines()) == 1
