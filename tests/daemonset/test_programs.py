"""The programs themselves, with the rights that the chart gives them and no others."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from generator.kube.resources import FABRICS, LEASES, REPORTS
from tests.daemonset.callers import Caller, make_node, on_node
from tests.daemonset.tools import NAMESPACE
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]
DEADLINE_S = 60
REFUSED = ("forbidden", '"status": 403', " 403")


@contextmanager
def running(*argv: object, log: Path) -> Iterator[None]:
    """Run one of our programs meanwhile; fail where the API server refused it anything."""
    with log.open("wb") as output:
        program = subprocess.Popen(
            [sys.executable, "-m", *(str(one) for one in argv)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
            assert program.poll() is None, log.read_text()
        finally:
            program.terminate()
            program.wait(timeout=DEADLINE_S)
    text = log.read_text()
    assert not any(word in text.lower() for word in REFUSED), text


def kubeconfig(api: ApiServer, caller: Caller, folder: Path) -> Path:
    """Write the file by which a program connects as this caller."""
    cluster = {"server": api.url, "certificate-authority": str(api.ca)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": cluster}],
        "users": [{"name": "pod", "user": {"token": caller.token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "pod"}}],
        "current-context": "lab",
    }
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


def found(api: ApiServer, path: str) -> dict[str, Any]:
    """Return an object, empty while there is none."""
    answer = api.request("GET", path)
    return answer.body if answer.status == 200 else {}


def test_it_lets_an_agent_report(cluster: ApiServer, tmp_path: Path) -> None:
    node = make_node(cluster)
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    token = tmp_path / "token"
    token.write_text(on_node(cluster, "toponaut-agent", name).token)
    (tmp_path / "sys").mkdir()
    options = [f"--api-server={cluster.url}", f"--token-file={token}", f"--ca-file={cluster.ca}"]
    options += [f"--node-name={name}", f"--sysfs-root={tmp_path / 'sys'}", "--frames=never"]
    options += ["--lldpcli=/nowhere", "--sweep=never", "--period=1s", "--jitter=0s"]
    path = REPORTS.path(name)
    with running("agent", "run", "--kube", *options, log=tmp_path / "log"):
        wait_until(
            lambda: "agentVersion" not in found(cluster, path).get("status", {}),
            deadline_s=DEADLINE_S,
            what="the report is there with its status",
        )
    (owner,) = found(cluster, path)["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"]) == (name, uid)


def test_it_lets_a_generator_lead(cluster: ApiServer, tmp_path: Path) -> None:
    node = make_node(cluster)["metadata"]["name"]
    file = kubeconfig(cluster, on_node(cluster, "toponaut-generator", node), tmp_path)
    options = [f"--kubeconfig={file}", f"--namespace={NAMESPACE}", "--period=1s"]
    options += ["--listen=127.0.0.1:0", "--insecure-loopback"]
    options += ["--metrics-listen=127.0.0.1:0", "--health-listen=127.0.0.1:0"]
    with running("generator", "serve", "--kube", *options, log=tmp_path / "log"):
        wait_until(
            lambda: "conditions" not in found(cluster, FABRICS.path("default")).get("status", {}),
            deadline_s=DEADLINE_S,
            what=f"the Fabric has conditions, see {tmp_path / 'log'}",
        )
    lease = cluster.expect("GET", LEASES.path("toponaut-generator", namespace=NAMESPACE))
    assert lease["metadata"]["name"] == "toponaut-generator"
