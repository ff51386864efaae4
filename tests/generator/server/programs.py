"""`toponaut serve` as a process of its own."""

from __future__ import annotations

import http.client
import json
import os
import pty
import resource
import signal
import subprocess  # noqa: TID251 - the real program is what is tested
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from generator.rpc.server import PLACEMENT_SERVICE
from tests.generator.scenes import Scene
from tests.lab.wait import wait_until
from tests.repository import ROOT

SOON_S = 30.0


@dataclass
class Serving:
    """A running server."""

    program: subprocess.Popen[bytes]
    ready_file: Path
    log_file: Path

    @property
    def address(self) -> str:
        return self.ready_file.read_text().strip()

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log_file.read_text().splitlines()]

    def count_descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.program.pid}/fd").iterdir()))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.program.send_signal(number)
        return self.program.wait(SOON_S)

    def status(self) -> int:
        """Return the status of a health page; 0 while the port is closed."""
        with grpc.insecure_channel(self.address) as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            asked = health_pb2.HealthCheckRequest(service=PLACEMENT_SERVICE)
            found: health_pb2.HealthCheckResponse = check(asked, timeout=SOON_S)
            return found.status

    def read_page(self, path: str) -> bytes:
        """Return what the page answers."""
        with closing(http.client.HTTPConnection(self.port_of("page"), timeout=SOON_S)) as client:
            client.request("GET", f"/{path}")
            return client.getresponse().read()

    def port_of(self, what: str) -> str:
        """Return the address of the page, the health port or the metrics port."""
        (address,) = [line["address"] for line in self.log if line.get("what") == what]
        return str(address)

    def wait_ready(self) -> None:
        wait_until(self._why_not_ready, deadline_s=SOON_S, what="ready file")

    def wait_serving(self) -> None:
        self.wait_ready()
        wait_until(
            lambda: self.status() != health_pb2.HealthCheckResponse.SERVING,
            deadline_s=SOON_S,
            what="health",
        )

    def _why_not_ready(self) -> str:
        assert self.program.poll() is None, self.log_file.read_text()
        return "" if self.ready_file.exists() else "absent"


@contextmanager
def serving(scene: Scene, *options: str, max_descriptors: int | None = None) -> Iterator[Serving]:
    """Run the server of a scene; it may have a limit of descriptors, which it cannot raise."""
    words = ["--period", "100ms", "--web", "127.0.0.1:0", *options]
    with started(scene.root, *words) as server:
        if max_descriptors is not None:
            limits = (max_descriptors, max_descriptors)
            resource.prlimit(server.program.pid, resource.RLIMIT_NOFILE, limits)
        yield server


@contextmanager
def started(root: Path, *options: str) -> Iterator[Serving]:
    """Run a server of the folder `store`."""
    ready, log = root / "ready", root / "log"
    words = ["serve", "--store", root / "store", "--insecure-loopback", "--listen", "127.0.0.1:0"]
    words += ["--ready-file", ready, *options]
    with log.open("wb") as stream:
        program = subprocess.Popen(
            [sys.executable, "-m", "generator", *map(str, words)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env=os.environ | {"http_proxy": "http://127.0.0.1:1"},
        )
    try:
        yield Serving(program, ready, log)
    finally:
        program.kill()
        program.wait(SOON_S)


def read_terminal(scene: Scene, log_format: str) -> str:
    """Return what a server with all ports writes to a terminal until the fabric is known."""
    words = [sys.executable, "-m", "generator", "serve", "--store", str(scene.store())]
    words += ["--listen", "127.0.0.1:0", "--insecure-loopback", "--log-format", log_format]
    words += ["--web", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0"]
    primary, secondary = pty.openpty()
    with subprocess.Popen(words, stderr=secondary, cwd=ROOT) as program:
        os.close(secondary)
        text = b""
        with suppress(OSError):  # the terminal ends with the program
            while chunk := os.read(primary, 4096):
                is_first = b"fabric known" not in text
                text += chunk
                if is_first and b"fabric known" in text:
                    program.send_signal(signal.SIGTERM)
    os.close(primary)
    return text.decode()
