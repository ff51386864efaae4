"""Agents as a cluster runs them: a Node, a pod bound to it, its token, and just enough rights."""

import logging
from pathlib import Path
from random import Random
from typing import Any

from agent.loop import ReportLoop, RoundObserver
from agent.publish.kube.credentials import ApiCredentials, parse_api_url
from agent.publish.kube.https_client import ApiClient as Server
from agent.publish.kube.report_writer import REPORTS_PATH, ReportWriter
from agent.settings import SweepSettings
from agent.sweep_schedule import read_cluster_fabric
from runtime.retry import Cooldown
from tests.agent.fakes import Answer, FakeClock, FakeRunner, printed
from tests.agent.nodes import card, chassis, heard, node_for, plant
from tests.lab.api_server import ApiServer
from topology.reports.neighbor_report import NeighborReport, parse_stored_report

ACCOUNT = "toponaut-agent"
MAC = "b8:ce:f6:00:00:01"
PERIOD_S = 60.0
RULES = [
    {
        "apiGroups": ["toponaut.io"],
        "resources": ["neighborreports"],
        "verbs": ["create", "patch"],
    },
    {"apiGroups": ["toponaut.io"], "resources": ["neighborreports/status"], "verbs": ["patch"]},
    {
        "apiGroups": ["toponaut.io"],
        "resources": ["fabrics"],
        "resourceNames": ["default"],
        "verbs": ["get"],
    },
]
"""The rights of an agent, except the names of its objects, which a policy binds to its token."""
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def account_in(api: ApiServer) -> str:
    """Make a namespace with an agent's ServiceAccount, and return its name."""
    namespace = api.namespace()
    role = {"metadata": {"name": namespace}, "rules": RULES}
    binding = {
        "metadata": {"name": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": namespace,
        },
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    api.expect("POST", accounts, {"metadata": {"name": ACCOUNT}})
    api.expect("POST", f"{_RBAC}/clusterroles", role)
    api.expect("POST", f"{_RBAC}/clusterrolebindings", binding)
    return namespace


def user_of(namespace: str) -> str:
    """Return the user name of a namespace's agents in the audit log."""
    return f"system:serviceaccount:{namespace}:{ACCOUNT}"


class ClusterNode:
    """A Node of the cluster, and a pod on it that has a token."""

    def __init__(self, api: ApiServer, namespace: str, name: str) -> None:
        """Make both, unless the Node exists already."""
        self.api, self.namespace, self.name = api, namespace, name
        api.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
        self.uid = str(api.expect("GET", f"/api/v1/nodes/{name}")["metadata"]["uid"])
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self.pod_uid = self.start_pod()

    def start_pod(self) -> str:
        """Make the agent's pod, and return its uid."""
        spec = {
            "serviceAccountName": ACCOUNT,
            "nodeName": self.name,
            "containers": [{"name": "agent", "image": "none"}],
        }
        pod = {"metadata": {"name": self.name}, "spec": spec}
        return str(self.api.expect("POST", self._pods, pod)["metadata"]["uid"])

    def remove_pod(self) -> None:
        """Delete the pod at once, which revokes its token."""
        self.api.expect("DELETE", f"{self._pods}/{self.name}", {"gracePeriodSeconds": 0})

    def token(self) -> str:
        """Return a new token of the pod."""
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{ACCOUNT}/token"
        bound = {"kind": "Pod", "apiVersion": "v1", "name": self.name, "uid": self.pod_uid}
        spec = {"expirationSeconds": 3600, "boundObjectRef": bound}
        answer = self.api.expect("POST", path, {"spec": spec})
        return str(answer["status"]["token"])

    def report(self, part: int | None = None) -> dict[str, Any]:
        """Return the node's report, or a part of its sweeps, as the server has it."""
        suffix = "" if part is None else f".sweep.{part}"
        return self.api.expect("GET", f"{REPORTS_PATH}/{self.name}{suffix}")


class ClusterAgent:
    """The agent of one node, round by round, on a clock that a test moves."""

    def __init__(self, node: ClusterNode, root: Path, *, url: str = "", mac: str = MAC) -> None:
        """Start nothing yet.

        Args:
            node: on which it runs.
            root: for its files.
            url: of the API server, where it is another one than the real one's.
            mac: of its node's port.
        """
        self.node = node
        self._mac = mac
        self.clock = FakeClock()
        self.answers: dict[str, Answer] = {}
        self.sysfs = plant(root / "sys", card("eth0", "0000:03:00.0", mac))
        self.token_file = root / "token"
        self.token_file.write_text(node.token())
        self._address = parse_api_url(url or node.api.url)
        self._random = Random(7)  # noqa: S311 - it spreads retries
        self._rounds: ReportLoop | None = None
        self.hear(("eth0", "leaf1", "swp1"))

    def hear(self, *rows: tuple[str, str, str]) -> None:
        """Set the neighbors of lldpd, as port, switch and the switch's port."""
        self.answers |= {"neighbors": printed(heard(*rows)), "chassis": printed(chassis(self._mac))}

    def start(
        self,
        *observers: RoundObserver,
        sweep: SweepSettings | None = None,
        deadline_s: float = 30.0,
    ) -> None:
        """Start or restart it; it remembers nothing."""
        credentials = ApiCredentials(self._address, self.token_file, self.node.api.ca)
        server = Server(credentials, self._cooldown(), deadline_s=deadline_s)
        objects = ReportWriter(
            server,
            self.node.name,
            self.clock,
            self._random.uniform,
            cooldown=self._cooldown(),
        )
        told = {"node_name": self.node.name, "hostname": self.node.name, "sweep": sweep}
        node = node_for(self.sysfs, FakeRunner(self.answers), self.clock, **told)
        elections = read_cluster_fabric(server) if sweep else None
        self._rounds = ReportLoop(node, objects, elections, observers)

    def run(self, rounds: int = 1, *, period_s: float = PERIOD_S) -> None:
        """Run some rounds, each a period after the one before."""
        if self._rounds is None:
            self.start()
        assert self._rounds is not None
        for _ in range(rounds):
            self.clock.seconds += period_s
            self.clock.moment = self.clock.moment.replace(microsecond=0)
            self._rounds.tick()

    @property
    def report(self) -> NeighborReport:
        return parse_stored_report(self.node.report())

    @property
    def heard(self) -> list[str]:
        return [one.name for port in self.report.spec.ports for one in port.neighbors]

    @property
    def outcomes(self) -> dict[str, str]:
        return {one.name: one.outcome for one in self.report.status.collectors}

    def writes(self) -> list[tuple[str, str]]:
        """Return (resource, name) of each write of the namespace's agents, in order."""
        rows = self.node.api.writes_by(user_of(self.node.namespace))
        return [(row.resource.removeprefix("neighborreports"), row.name) for row in rows]

    def _cooldown(self) -> Cooldown:
        return Cooldown(self.clock, self._random.uniform, period_s=PERIOD_S)


def events(records: list[logging.LogRecord], *, least: int = logging.WARNING) -> list[str]:
    """Return the logged events, without those of working collectors."""
    return [one.message for one in records if one.levelno >= least]
