"""`toponaut serve` as a process: ready file, health, answers, signals."""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import subprocess  # noqa: TID251 - the real program is what is tested
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2

from generator.cli.exit_codes import ExitCode
from generator.rpc.client.typed_client import PlacementClient
from generator.rpc.server import PLACEMENT_SERVICE
from tests.generator.rpc.clusters import request_for
from tests.generator.scenes import PAIRS, Scene, run
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
        (address,) = [line["address"] for line in self.log if line.get("what") == "page"]
        with closing(http.client.HTTPConnection(address, timeout=SOON_S)) as client:
            client.request("GET", f"/{path}")
            return client.getresponse().read()

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


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Iterator[None]:
    """A server that is refused in this process has set up the log before."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    (tmp_path / "store").mkdir()
    return Scene.of(tmp_path, PAIRS)


@pytest.fixture
def serving(scene: Scene) -> Iterator[Serving]:
    ready, log = scene.root / "ready", scene.root / "log"
    words = ["serve", "--store", scene.root / "store", "--period", "100ms", "--insecure-loopback"]
    words += ["--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--ready-file", ready]
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


def test_it_serves_once_the_first_tree_is_known(scene: Scene, serving: Serving) -> None:
    serving.wait_ready()
    assert serving.status() == health_pb2.HealthCheckResponse.NOT_SERVING
    scene.store()
    serving.wait_serving()
    with PlacementClient(serving.address, SOON_S) as client:
        # The first tree may be that of the reports that were written by then.
        wait_until(
            lambda: not client.place(request_for(4, required="leaf")).is_feasible,
            deadline_s=SOON_S,
            what="a whole leaf",
        )
    ready = [line["address"] for line in serving.log if line["event"] == "generator ready"]
    assert ready == [serving.address]


def test_it_serves_the_page_of_its_fabric(scene: Scene, serving: Serving) -> None:
    scene.store()
    serving.wait_serving()
    wait_until(
        lambda: scene.hosts[0] not in str(serving.read_page("document.json")),
        deadline_s=SOON_S,
        what="document of the page",
    )
    assert b"<title>Toponaut" in serving.read_page("")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_cleanly_on(serving: Serving, number: signal.Signals) -> None:
    serving.wait_ready()
    assert b"<title>Toponaut" in serving.read_page("")
    assert serving.stop(number) == ExitCode.OK
    assert not serving.ready_file.exists()
    # A round that runs when the signal comes is let finish, and may log between the two.
    events = [line["event"] for line in serving.log]
    assert events.count("generator stopping") == 1
    assert events[-1] == "generator stopped"


def test_it_answers_place_like_the_command_on_the_same_reports(
    scene: Scene, serving: Serving
) -> None:
    reports = scene.reports()
    request = scene.write(
        "request.yaml",
        "apiVersion: toponaut.io/v1alpha1\nkind: PlacementRequest\n"
        "spec: {groups: [{name: w, count: 6}]}\n",
    )
    serving.wait_serving()
    local = run("place", "-f", request, "--reports", reports, "-o", "json")
    asked = run("place", "-f", request, "--server", serving.address, "-o", "json")
    assert (asked.code, asked.document) == (ExitCode.OK, local.document)
    text = run("place", "-f", request, "--server", serving.address)
    assert text.out.startswith("feasible: 6 pods within one ")


def test_it_refuses_to_serve_without_the_explicit_flag(scene: Scene) -> None:
    ran = run("serve", "--store", scene.root / "store")
    assert ran.code == ExitCode.USAGE
    assert "choose how callers authenticate" in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        pytest.param(["--listen", "0.0.0.0:0"], "is not a loopback address", id="another address"),
        pytest.param(["--listen", "nonsense"], "is not an address", id="no address"),
        pytest.param(["--web", "0.0.0.0:0"], "is not a loopback address", id="an open page"),
        pytest.param(["--web", "nonsense"], "is not an address", id="no address of the page"),
        pytest.param(["--period", "60"], "is not a duration", id="a period without a unit"),
        pytest.param(["--ready-file", "/nowhere/file"], "is no folder", id="an unwritable file"),
        pytest.param(["--nodes", "absent"], "does not exist", id="no such inventory"),
    ],
)
def test_it_refuses(scene: Scene, words: list[str], why: str) -> None:
    options = ["--insecure-loopback", "--listen", "127.0.0.1:0", *words]
    ran = run("serve", "--store", scene.root / "store", *options)
    assert ran.code == ExitCode.USAGE
    assert why in ran.err


def test_it_refuses_a_malformed_list_of_switches(scene: Scene) -> None:
    listed = scene.write("switches.yaml", "switches: []\n")
    store = scene.store()
    ran = run("serve", "--store", store, "--switches", listed, "--insecure-loopback")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "switches.yaml: switches: " in ran.err
