"""The project's own programs in the lab: agents on devices, and the commands of `toponaut`."""

import json
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.lab.lldp import LldpFabric, Seen
from tests.lab.wait import wait_until
from tests.repository import ROOT
from topology.model.facts import PortName

DEADLINE_S = 30
AGENT = (sys.executable, "-m", "agent")
# The cables of the lab are veth pairs, which agents ignore unless configured otherwise.
_CABLES = ("--interfaces", "eth*", "--interfaces", "swp*")


def toponaut(*arguments: str) -> Any:  # noqa: ANN401 - the document that the command prints
    """Run a command of `toponaut` that succeeds, and return the document it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "generator", *arguments, "-o", "json"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{arguments}: exit {done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout)


def write_objects(folder: Path, objects: list[dict[str, Any]]) -> Path:
    """Write Kubernetes objects as the store has them, one file each."""
    folder.mkdir(exist_ok=True)
    for item in objects:
        (folder / f"{item['metadata']['name']}.yaml").write_text(json.dumps(item))
    return folder


class Agents:
    """Running agents on devices of an LLDP fabric; all publish into one folder."""

    def __init__(
        self,
        fabric: LldpFabric,
        folder: Path,
        *,
        devices: Collection[str] | None = None,
        publish: Path | None = None,
    ) -> None:
        """Start them; ready once settled.

        Args:
            fabric: where they run.
            folder: for logs.
            devices: on which; all where not given.
            publish: what they publish into; a folder beside the logs where not given.
        """
        self.folder = publish or folder / "reports"
        self._fabric = fabric
        self._logs = folder
        self._devices = sorted(fabric.devices if devices is None else devices)
        for device in self._devices:
            self._start(device)

    def end(self) -> None:
        """End all agents; the daemons that they ask stay."""
        for device in self._devices:
            self._fabric.sandbox.kill("python*", namespace=device, signal="KILL")

    def settle(self) -> None:
        """Wait until every agent has published what its daemon sees.

        An agent whose daemon is silent has reported that, and keeps its last facts.
        """
        wait_until(self._wrong, deadline_s=DEADLINE_S, what="reports follow the fabric")

    @contextmanager
    def killing(self, device: str) -> Iterator[None]:
        """Kill an agent for a while, without a chance to say goodbye."""
        self._fabric.sandbox.kill("python*", namespace=device, signal="KILL")
        try:
            yield
        finally:
            self._start(device)

    def _start(self, device: str) -> None:
        self._fabric.sandbox.start(
            *(*AGENT, "run", "--publish", str(self.folder), "--period", "1s", "--jitter", "0s"),
            *device_options(self._fabric, device),
            namespace=device,
            log=self._logs / f"{device}.log",
        )

    def _wrong(self) -> object:
        missing = [name for name in self._devices if not self._path(name).exists()]
        if missing:
            return missing
        reports = {name: self._report(name) for name in self._devices}
        silent = self._fabric.silent & set(self._devices)
        deaf = {name for name, report in reports.items() if not _is_hearing(report)}
        reported = {
            entry
            for name, report in reports.items()
            if name not in silent
            for entry in _neighbors(name, report)
        }
        expected = {seen for seen in self._fabric.expected() if seen.port.device in reports}
        return (deaf ^ silent) or (reported ^ expected)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.yaml"

    def _report(self, name: str) -> dict[str, Any]:
        report: dict[str, Any] = json.loads(self._path(name).read_text())
        return report


def device_options(fabric: LldpFabric, device: str) -> tuple[str, ...]:
    """Return the options of an agent for the device that it runs on."""
    kind = "switch" if device in fabric.switches else "host"
    where = ("--lldpd-socket", str(fabric.socket(device)))
    return ("--node-name", device, "--kind", kind, *where, *_CABLES)


def _is_hearing(report: dict[str, Any]) -> bool:
    outcomes = {row["name"]: row["outcome"] for row in report["status"]["collectors"]}
    return bool(outcomes["lldpd"] == "ok")


def _neighbors(name: str, report: dict[str, Any]) -> list[Seen]:
    return [
        Seen(PortName(name, port["name"]), PortName(heard["name"], heard["portName"]))
        for port in report["spec"]["ports"]
        for heard in port.get("neighbors", ())
    ]
