"""The folder of lldpd's socket, mounted into the agent's pod as the kubelet does, and replaced."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from agent.node.mounts import find_deleted_mount
from tests.lab.agents import AGENT
from tests.lab.lldp import LldpFabric
from tests.lab.sandbox import Sandbox
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from topology.model.facts import PortName
from topology.synthetic.wiring import Cable

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("frames")]

NODE, DEADLINE_S = "n1", 60
PROBE = (
    "import http.client, sys\n"
    "asked = http.client.HTTPConnection('127.0.0.1:8081', timeout=10)\n"
    "asked.request('GET', sys.argv[1])\n"
    "answer = asked.getresponse()\n"
    "print(answer.status, answer.read().decode().strip())\n"
)
FIND = (
    "import sys; from pathlib import Path; from agent.node.mounts import find_deleted_mount\n"
    "print(find_deleted_mount(sys.argv[1], Path('/proc')))\n"
)


class FolderFabric(LldpFabric):
    """Daemons that each have a folder for their socket, as docs/install.md asks."""

    def socket(self, device: str) -> Path:
        """Return where a device's daemon listens."""
        return self._folder / device / "lldpd.socket"

    def _start_daemon(self, device: str) -> None:
        self.socket(device).parent.mkdir(exist_ok=True, mode=0o755)
        super()._start_daemon(device)


class Pod:
    """The container of an agent, which has the folder of lldpd as a mount."""

    def __init__(self, fabric: FolderFabric, folder: Path) -> None:
        self._fabric = fabric
        self._folder = folder
        # Beside the daemons' folders: lldpcli runs as a user of its own, who must reach it.
        self._mounted = fabric.socket("pod").parent
        self._mounted.mkdir(exist_ok=True, mode=0o755)

    @property
    def socket(self) -> str:
        return str(self._mounted / "lldpd.socket")

    def start(self) -> None:
        """Start the container: the mount is that of the folder which the path now names."""
        source = str(self._fabric.socket(NODE).parent)
        self._fabric.sandbox.run("mount", "--bind", source, str(self._mounted))
        words = ["run", "--publish", str(self._folder / "reports"), "--period", "1s"]
        words += ["--jitter", "0s", "--health-listen", "127.0.0.1:8081", "--frames", "never"]
        words += ["--lldpd-socket", self.socket, "--node-name", NODE, "--interfaces", "eth*"]
        log = self._folder / "agent.log"
        self._fabric.sandbox.start(*AGENT, *words, namespace=NODE, log=log)

    def stop(self) -> None:
        """End the container, as the kubelet does after its liveness probe has failed."""
        self._fabric.sandbox.kill("python*", namespace=NODE, signal="KILL")
        self._fabric.sandbox.run("umount", str(self._mounted))

    def probe(self, path: str = "/livez") -> str:
        return self._fabric.sandbox.run(sys.executable, "-c", PROBE, path, namespace=NODE).strip()

    def doctor(self) -> list[dict[str, str]]:
        words = ("doctor", "-o", "json", "--frames", "never", "--interfaces", "eth*")
        command = (*AGENT, *words, "--node-name", NODE, "--lldpd-socket", self.socket)
        done = self._fabric.sandbox.run(
            "sh", "-c", '"$@" || [ $? = 5 ]', "sh", *command, namespace=NODE
        )
        rows: list[dict[str, str]] = json.loads(done)
        return rows

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self._folder / "reports" / f"{NODE}.yaml").read_text())
        return report

    def outcome(self) -> tuple[str, str]:
        rows = self.report()["status"]["collectors"]
        (row,) = (row for row in rows if row["name"] == "lldpd")
        return row["outcome"], row.get("message", "")

    def neighbors(self) -> list[str]:
        ports = self.report()["spec"]["ports"]
        return [one["name"] for port in ports for one in port.get("neighbors", [])]

    def await_lldpd(self, outcome: str, message: str = "") -> None:
        """Wait until the report has an outcome of lldpd, and the neighbor."""

        def wrong() -> object:
            try:
                found = *self.outcome(), self.neighbors()
            except FileNotFoundError:
                return "no report"
            is_right = found[0] == outcome and message in found[1] and found[2] == ["leaf1"]
            return None if is_right else found

        wait_until(wrong, deadline_s=DEADLINE_S, what=f"lldpd is {outcome}")


@pytest.fixture(scope="module")
def fabric() -> Iterator[FolderFabric]:
    """Return a host on one leaf, with real daemons on both."""
    require_tools("unshare", "nsenter", "ip", "lldpd", "lldpcli", "mount", is_root_needed=True)
    cables = [Cable(PortName(NODE, "eth0"), PortName("leaf1", "swp1"))]
    with TemporaryDirectory(prefix="lldp-") as folder, Sandbox() as sandbox:
        yield FolderFabric(sandbox, cables, switches=frozenset({"leaf1"}), folder=Path(folder))


@pytest.fixture
def pod(fabric: FolderFabric, tmp_path: Path) -> Iterator[Pod]:
    made = Pod(fabric, tmp_path)
    made.start()
    made.await_lldpd("ok")
    yield made
    made.stop()


def test_an_lldpd_that_restarts_in_its_folder_is_heard_again(
    fabric: FolderFabric, pod: Pod
) -> None:
    with fabric.stopping(NODE):
        pod.await_lldpd("failed")
        assert pod.probe() == "200 ok"
    pod.await_lldpd("ok")
    assert pod.probe() == "200 ok"


def test_an_lldpd_whose_folder_is_replaced_is_heard_after_a_restart_of_the_pod(
    fabric: FolderFabric, pod: Pod
) -> None:
    folder = fabric.socket(NODE).parent
    with fabric.stopping(NODE):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    assert fabric.socket(NODE).is_socket(), "lldpd runs again, in a new folder"
    pod.await_lldpd("failed", "restart this agent; the last good facts are kept")
    assert pod.probe() == f"503 {pod.outcome()[1]}"
    assert pod.probe("/readyz") == "200 ok", "its other facts are fresh"
    (row,) = (row for row in pod.doctor() if row["subject"] == "LLDP")
    assert (row["outcome"], "restart" in row["fix"]) == ("error", True)
    pod.stop()
    pod.start()
    pod.await_lldpd("ok")
    assert pod.probe() == "200 ok"


def test_a_folder_with_a_blank_in_its_name_is_found(fabric: FolderFabric, tmp_path: Path) -> None:
    source, mounted = tmp_path / "run 1", tmp_path / "pod 1"
    for folder in (source, mounted):
        folder.mkdir()
    fabric.sandbox.run("mount", "--bind", str(source), str(mounted))

    def find() -> str:
        file = str(mounted / "lldpd.socket")
        return fabric.sandbox.run(sys.executable, "-c", FIND, file).strip()

    assert find() == "None"
    source.rmdir()
    source.mkdir()
    assert find() == str(mounted)
    fabric.sandbox.run("umount", str(mounted))
    assert find_deleted_mount(str(mounted), Path("/proc")) is None, "not outside of the sandbox"
