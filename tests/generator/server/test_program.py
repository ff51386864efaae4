"""`toponaut serve` as a process: ready file, health, answers, signals."""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc_health.v1 import health_pb2

from generator.cli.exit_codes import ExitCode
from generator.rpc.client import PlacementClient
from tests.generator.rpc.clusters import request_for
from tests.generator.scenes import PAIRS, Scene, run
from tests.generator.server.programs import SOON_S, Serving, read_terminal, serving
from tests.lab.wait import wait_until


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
def server(scene: Scene) -> Iterator[Serving]:
    with serving(scene) as running:
        yield running


def test_it_serves_from_the_first_tree_to_the_end(scene: Scene, server: Serving) -> None:
    server.wait_ready()
    assert server.status() == health_pb2.HealthCheckResponse.NOT_SERVING
    assert b"<title>Toponaut" in server.read_page("")
    reports = scene.reports()
    server.wait_serving()
    with PlacementClient(server.address, SOON_S) as client:
        # The first tree may be that of the reports that were written by then.
        wait_until(
            lambda: not client.place(request_for(4, required="leaf")).is_feasible,
            deadline_s=SOON_S,
            what="a whole leaf",
        )
    wait_until(
        lambda: scene.hosts[0] not in str(server.read_page("document.json")),
        deadline_s=SOON_S,
        what="document of the page",
    )
    request = scene.write(
        "request.yaml",
        "apiVersion: toponaut.io/v1alpha1\nkind: PlacementRequest\n"
        "spec: {groups: [{name: w, count: 6}]}\n",
    )
    local = run("place", "-f", request, "--reports", reports, "-o", "json")

    def differs() -> str:
        asked = run("place", "-f", request, "--server", server.address, "-o", "json")
        is_same = (asked.code, asked.document) == (ExitCode.OK, local.document)
        return "" if is_same else asked.out or asked.err

    # A leaf may be whole, and its host on the page, before the reports of all hosts are read.
    wait_until(differs, deadline_s=SOON_S, what="the answer from the tree of all reports")
    text = run("place", "-f", request, "--server", server.address)
    assert text.out.startswith("feasible: 6 pods within one ")
    (ready,) = [line for line in server.log if line["event"] == "generator ready"]
    opened = {row["what"]: row["address"] for row in server.log if row["event"] == "port open"}
    assert ready["address"] == server.address
    assert ready["page"] == f"http://{opened['page']}/"
    check_stop(server, signal.SIGTERM)


def test_on_a_terminal_it_prints_its_addresses_on_lines_of_their_own(scene: Scene) -> None:
    text = read_terminal(scene, "text")
    page = re.search(r"^page: +(http://127\.0\.0\.1:[0-9]+/)\r$", text, re.MULTILINE)
    assert page, text
    assert re.search(r"^metrics: http://127\.0\.0\.1:[0-9]+/metrics\r$", text, re.MULTILINE)
    assert re.search(r"^gRPC: +127\.0\.0\.1:[0-9]+\r$", text, re.MULTILINE)


def test_json_on_a_terminal_has_lines_of_json_alone(scene: Scene) -> None:
    lines = read_terminal(scene, "json").splitlines()
    assert [line for line in lines if not line.startswith("{")] == []


def test_it_stops_on_an_interrupt(server: Serving) -> None:
    server.wait_ready()
    check_stop(server, signal.SIGINT)


def check_stop(server: Serving, number: signal.Signals) -> None:
    assert server.stop(number) == ExitCode.OK
    assert not server.ready_file.exists()
    # A round that runs when the signal comes is let finish, and may log between the two.
    events = [line["event"] for line in server.log]
    assert events.count("generator stopping") == 1
    assert events[-1] == "generator stopped"


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
