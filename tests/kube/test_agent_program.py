"""`toponaut-agent run --kube` as a real program, with the real API server."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.agent.cli.test_run import SKIPPED
from tests.agent.nodes import card, chassis, heard, plant
from tests.agent.programs import write_answering
from tests.kube.agent_nodes import ClusterNode, account_in
from tests.lab.api_server import ApiServer
from tests.lab.wait import wait_until
from topology.reports.neighbor_report import parse_stored_report

pytestmark = [pytest.mark.lab, pytest.mark.timeout(300), pytest.mark.xdist_group("kube")]

MAC = "b8:ce:f6:00:00:01"
DEADLINE_S = 60


class Program:
    """A running agent."""

    def __init__(self, node: ClusterNode, root: Path) -> None:
        """Start it."""
        plant(root / "sys", card("eth0", "0000:03:00.0", MAC))
        answers = {"neighbors": heard(("eth0", "leaf1", "swp1")), "chassis": chassis(MAC)}
        lldpcli = write_answering(root / "lldpcli", answers)
        self.answer = lldpcli.with_suffix(".neighbors")
        (root / "token").write_text(node.token())
        variables = {
            "KUBE": "true",
            "API_SERVER": node.api.url,
            "TOKEN_FILE": str(root / "token"),
            "CA_FILE": str(node.api.ca),
            "SYSFS_ROOT": str(root / "sys"),
            "LLDPCLI": str(lldpcli),
            "FRAMES": "never",
            "PERIOD": "500ms",
            "JITTER": "0s",
            "HEALTH_LISTEN": "127.0.0.1:0",
            "METRICS_LISTEN": "127.0.0.1:0",
            "LOG_FORMAT": "json",
        }
        told = {f"TOPONAUT_AGENT_{name}": value for name, value in variables.items()}
        self.log = root / "agent.log"
        with self.log.open("wb") as stream:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "agent", "run"],
                stderr=stream,
                env=told | {"NODE_NAME": node.name, "PATH": os.environ["PATH"]},
            )

    def rows(self) -> list[dict[str, str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def get(self, path: str) -> tuple[int, str]:
        """Return a page; status 0 if it is not served yet."""
        served = [one for one in self.rows() if path in one.get("paths", "").split()]
        if not served:
            return 0, ""
        with closing(http.client.HTTPConnection(served[0]["address"], timeout=30)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def fails(self, path: str) -> bool:
        return self.get(path)[0] != 200


@contextmanager
def running(node: ClusterNode, root: Path) -> Iterator[Program]:
    program = Program(node, root)
    try:
        yield program
    finally:
        program.process.kill()
        program.process.wait(timeout=DEADLINE_S)


def heard_by(node: ClusterNode) -> list[str]:
    found = node.api.request("GET", f"/apis/toponaut.io/v1alpha1/neighborreports/{node.name}")
    if found.status != 200:
        return []
    ports = parse_stored_report(found.body).spec.ports
    return [one.name for port in ports for one in port.neighbors]


def test_it_publishes_is_probed_and_ends(api: ApiServer, tmp_path: Path) -> None:
    namespace = account_in(api)
    node = ClusterNode(api, namespace, f"n-{namespace}")
    with running(node, tmp_path) as program:
        for path in ("/livez", "/startupz", "/readyz"):
            wait_until(partial(program.fails, path), deadline_s=DEADLINE_S, what=path)
        wait_until(lambda: heard_by(node) != ["leaf1"], deadline_s=DEADLINE_S, what="a report")
        beside = program.answer.with_suffix(".new")
        beside.write_text(heard(("eth0", "leaf2", "swp9")))
        beside.rename(program.answer)
        wait_until(lambda: heard_by(node) != ["leaf2"], deadline_s=DEADLINE_S, what="a change")
        counted = 'toponaut_agent_publishes_total{result="spec"} 2.0\n'
        wait_until(
            lambda: counted not in program.get("/metrics")[1],
            deadline_s=DEADLINE_S,
            what="two writes counted",
        )
        assert 'toponaut_agent_api_requests_total{code="200"}' in program.get("/metrics")[1]
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(timeout=DEADLINE_S) == 0
        others = {row["event"] for row in program.rows() if row["level"] != "info"}
        assert others <= {SKIPPED}, "on a slow machine a round takes longer than the period"
