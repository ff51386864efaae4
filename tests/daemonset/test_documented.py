"""docs/install.md as a reader follows it: its lines, word for word, by Helm and kubectl."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.kube.resources import HYPERNODES, NODES
from tests.daemonset.clusters import bare_cluster, inventory
from tests.daemonset.test_installing import leave_traces
from tests.daemonset.tools import find_tool
from tests.lab.api_server import ApiServer
from tests.repository import ROOT

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("chart")]

DEADLINE_S = 180
SPACE = "kubectl delete namespace toponaut-system"


class Reader:
    """A person with a shell in the checkout, and a cluster that is the current one."""

    def __init__(self, api: ApiServer, home: Path) -> None:
        programs = [Path(find_tool(name)).parent for name in ("helm", "kubectl")]
        path = [*programs, Path(sys.executable).parent, os.environ["PATH"]]
        config = str(api.kubeconfig())
        self._env = {"PATH": ":".join(map(str, path)), "HOME": str(home), "KUBECONFIG": config}

    def type(self, lines: str) -> str:
        """Run lines, of which each must succeed; return what they print."""
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=ROOT,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def written(section: str) -> list[str]:
    """Return the commands of a section, block by block."""
    text = (ROOT / "docs" / "install.md").read_text()
    (found,) = re.findall(rf"^## {section}\n(.*?)^## ", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^```sh\n(.*?)^```", found, re.MULTILINE | re.DOTALL)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A cluster with Volcano's kinds, as it is before Toponaut."""
    with bare_cluster(tmp_path_factory.mktemp("fresh")) as server:
        yield server


def test_its_lines_install_show_and_remove_everything(fresh: ApiServer, tmp_path: Path) -> None:
    before = inventory(fresh)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    fresh.expect("POST", NODES.path(), node)
    reader = Reader(fresh, tmp_path)
    install, look = written("Install")
    reader.type(install)
    leave_traces(fresh)
    shown = reader.type(look)
    assert re.search(r"fabric\.toponaut\.io/default", shown), shown
    assert re.search(r"neighborreport\.toponaut\.io/n1", shown), shown
    uninstall, remove = written("Uninstall")
    reader.type(uninstall)
    assert fresh.request("GET", HYPERNODES.path("leaf-1")).status == 200
    # Nothing here finalizes namespaces: that is the controller manager's.
    reader.type(remove.replace(SPACE, f"{SPACE} --wait=false"))
    left = {
        (kind, name)
        for kind, name in inventory(fresh) - before
        if not kind.endswith(" in toponaut-system") and kind not in {"namespaces", "nodes"}
    }
    assert left == set()
    assert fresh.request("GET", HYPERNODES.path("leaf-1")).status == 404


def test_plain_manifests_are_applied_as_it_says(fresh: ApiServer, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "install.md").read_text()
    (line,) = re.findall(r"Without Helm: `(kubectl apply [^`]*)`", text)
    reader = Reader(fresh, tmp_path)
    reader.type(written("Install")[0].partition("helm ")[0])
    reader.type(line)
    assert "fabrics.toponaut.io" in reader.type("kubectl get crd -o name")


def test_kubectl_runs_toponaut_as_its_plugin(fresh: ApiServer, tmp_path: Path) -> None:
    reader = Reader(fresh, tmp_path)
    reader.type(written("Install")[0])
    leave_traces(fresh)
    assert "toponaut" in reader.type("kubectl plugin list 2>/dev/null")
    assert reader.type("kubectl toponaut --version") == reader.type("toponaut --version")
