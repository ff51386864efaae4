"""The cluster options of `run` and `once`, and the pages of a running agent."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess  # noqa: TID251 - the process is the thing under test
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.cli.commands import cli
from tests.agent.nodes import card, chassis, heard, plant
from tests.agent.programs import write_answering

MAC = "b8:ce:f6:00:00:01"
DEADLINE_S = 30
NO_POD = {"KUBERNETES_SERVICE_HOST": None}


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    plant(tmp_path / "sys", card("eth0", "0000:03:00.0", MAC))
    answers = {"neighbors": heard(("eth0", "leaf1", "swp1")), "chassis": chassis(MAC)}
    lldpcli = write_answering(tmp_path / "lldpcli", answers)
    values = {
        "node-name": "node01",
        "sysfs-root": tmp_path / "sys",
        "lldpcli": lldpcli,
        "frames": "never",
        "nvidia-smi": "no-nvidia-smi",
    }
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def invoke(command: str, *words: object) -> Result:
    return CliRunner(env=NO_POD).invoke(cli, [command, *map(str, words)])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param((), "set where reports go", id="nowhere to publish"),
        pytest.param(("--kube", "--publish", "x"), "set where reports go", id="two places"),
        pytest.param(("--kube", "--store", "x"), "set where reports go", id="a store besides"),
        pytest.param(
            ("--store", "x", "--api-server", "https://10.0.0.1:6443"),
            "--api-server needs --kube",
            id="a server for a folder",
        ),
        pytest.param(("--kube",), "set --api-server", id="no pod and no address"),
        pytest.param(("--kube", "--api-server", "http://a"), "is not an address", id="no TLS"),
        pytest.param(("--publish", "x", "--sweep", "elected"), "--store or --kube", id="elections"),
        pytest.param(("--health-listen", "8081"), "is not an address", id="a port alone"),
        pytest.param(
            ("--publish", "x", "--metrics-listen", "192.0.2.1:80"), "cannot listen", id="not here"
        ),
    ],
)
def test_it_refuses(options: list[str], tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    placed = [str(tmp_path / "reports") if word == "x" else word for word in words]
    result = invoke("run", *options, *placed)
    assert (result.exit_code, told in result.output) == (2, True), result.output


def test_it_reads_the_sweepers_from_the_cluster_once(options: list[str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (tmp_path / "token").write_text("x")
    where = ("--api-server", f"https://127.0.0.1:{port}", "--token-file", tmp_path / "token")
    result = invoke("once", *options, "--kube", *where, "--sweep", "elected", "-o", "json")
    (report,) = json.loads(result.stdout)["items"]
    assert {row["name"]: row["outcome"] for row in report["status"]["collectors"]}["lldpd"] == "ok"
    assert "fabric unreadable" in result.stderr


@pytest.fixture
def pages(options: list[str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """Run an agent and yield the address of each page by path; check that it ends well."""
    words = ["--publish", str(tmp_path / "reports"), "--period", "100ms", "--jitter", "0s"]
    for option in ("--health-listen", "--metrics-listen"):
        words += [option, "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "agent", "run", *options, *words],
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    assert process.stderr is not None
    with process, closing(process.stderr):
        found: dict[str, str] = {}
        while "/metrics" not in found:
            line = json.loads(process.stderr.readline())
            if line["event"] == "pages served":
                found |= dict.fromkeys(line["paths"].split(), line["address"])
        yield found
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        assert process.wait(timeout=DEADLINE_S) == 0


def get(pages: dict[str, str], path: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(pages[path], timeout=DEADLINE_S)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_it_serves_probes_and_metrics(pages: dict[str, str]) -> None:
    assert get(pages, "/livez") == (200, "ok\n")
    for path in ("/startupz", "/readyz"):
        answers = iter(lambda: get(pages, path)[0], 200)  # noqa: B023 - used up at once
        assert set(answers) <= {503}
    lines = get(pages, "/metrics")[1].splitlines()
    assert 'toponaut_agent_collector_success{collector="lldpd"} 1.0' in lines
    assert 'toponaut_agent_neighbors{collector="lldpd"} 1.0' in lines
    assert pages["/livez"] != pages["/metrics"]
