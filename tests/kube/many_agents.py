"""The agents of many devices in one process, each with its own daemon, sysfs, token and report.

As a program: the first line of stdin says who they are, each further one how many seconds go by
before all of them run a round, which is answered with a line when it has ended. It sees the files
and processes of a lab's sandbox.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import SystemRandom
from time import monotonic
from types import TracebackType
from typing import Any, Self

from agent.collection import NodeContext
from agent.loop import ReportLoop
from agent.node.command import Runner, command_env
from agent.publish.kube.credentials import ApiCredentials, parse_api_url
from agent.publish.kube.https_client import ApiClient
from agent.publish.kube.report_writer import ReportWriter
from agent.settings import AgentSettings, NvlinkMode
from runtime.logs import start_logging
from runtime.retry import Cooldown
from tests.lab.lldp import LldpFabric
from tests.repository import ROOT
from topology.model.facts import DeviceKind

PERIOD_S = 60.0
_AT_ONCE = 4


@dataclass(slots=True)
class ShiftedClock:
    """The machine's clock, ahead by the skipped seconds."""

    ahead_s: float = 0.0

    def now(self) -> datetime:
        """Return the time of day."""
        return datetime.now(UTC) + timedelta(seconds=self.ahead_s)

    def monotonic(self) -> float:
        """Return seconds."""
        return monotonic() + self.ahead_s


class ManyAgents:
    """The program, run on the devices of an LLDP fabric."""

    def __init__(
        self, fabric: LldpFabric, folder: Path, tokens: Mapping[str, str], *, url: str, ca: Path
    ) -> None:
        """Start them, and run no round yet.

        Args:
            fabric: where they run.
            folder: for tokens, mounts and the log.
            tokens: of the devices to run on.
            url: of the API server.
            ca: whom it is signed by.
        """
        rows = [_laid_out(fabric, folder, name, token) for name, token in tokens.items()]
        self.log = folder / "agents.log"
        with self.log.open("wb") as stream:
            self._program = subprocess.Popen(
                fabric.sandbox.outside(sys.executable, "-m", __name__),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                text=True,
            )
        self._say({"url": url, "ca": str(ca), "agents": rows})

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End them."""
        self._program.kill()
        self._program.communicate()

    def round(self, *, after_s: float = PERIOD_S) -> None:
        """Let time pass, then run one round of each agent."""
        self._say(after_s)
        assert self._program.stdout is not None
        assert self._program.stdout.readline() == "ended\n", self.log.read_text()[-2000:]

    def events(self) -> list[str]:
        """Return the logged events, without those of working collectors."""
        rows = (json.loads(line) for line in self.log.read_text().splitlines())
        return [row["event"] for row in rows if row["level"] != "info"]

    def _say(self, words: object) -> None:
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps(words) + "\n")
        self._program.stdin.flush()


def _laid_out(fabric: LldpFabric, folder: Path, name: str, token: str) -> dict[str, str]:
    """Write a device's token, mount its sysfs, and return the settings of its agent."""
    token_file, sysfs = folder / f"{name}.token", folder / f"{name}.sys"
    token_file.write_text(token)
    sysfs.mkdir()
    # A sysfs shows the network namespace that it was mounted from.
    enter = ("nsenter", f"--net=/run/netns/{name}")
    fabric.sandbox.run(*enter, "mount", "-t", "sysfs", "none", str(sysfs))
    kind = DeviceKind.SWITCH if name in fabric.switches else DeviceKind.HOST
    return {
        "name": name,
        "kind": kind.value,
        "socket": str(fabric.socket(name)),
        "sysfs": str(sysfs),
        "token": str(token_file),
    }


def _rounds(row: Mapping[str, str], told: Mapping[str, Any], clock: ShiftedClock) -> ReportLoop:
    settings = AgentSettings(
        node_name=row["name"],
        hostname=row["name"],
        sysfs_root=Path(row["sysfs"]),
        interfaces=("eth*", "swp*"),
        lldpcli="lldpcli",
        lldpd_socket=row["socket"],
        deadline_s=30.0,
        max_output_bytes=1 << 20,
        sweep=None,
        kind=DeviceKind(row["kind"]),
        frames=None,
        proc_root=Path("/proc"),
        ethtool="ethtool",
        nvlink=NvlinkMode.NEVER,
        nvidia_smi="no-nvidia-smi",
    )
    uniform = SystemRandom().uniform
    credentials = ApiCredentials(parse_api_url(told["url"]), Path(row["token"]), Path(told["ca"]))
    server = ApiClient(credentials, Cooldown(clock, uniform, period_s=PERIOD_S), deadline_s=30.0)
    cooldown = Cooldown(clock, uniform, period_s=PERIOD_S)
    objects = ReportWriter(server, row["name"], clock, uniform, cooldown=cooldown)
    return ReportLoop(NodeContext(settings, Runner(command_env(os.environ)), clock), objects)


def main() -> None:
    """Run rounds on request."""
    start_logging("json")
    told, clock = json.loads(sys.stdin.readline()), ShiftedClock()
    agents = [_rounds(row, told, clock) for row in told["agents"]]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for line in sys.stdin:
            clock.ahead_s += json.loads(line)
            list(pool.map(lambda one: one.tick(), agents))
            print("ended", flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
