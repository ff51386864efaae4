"""`toponaut serve --kube` as a real program, and a cluster with made-up agents."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from generator.kube.lease_record import LEASE_NAME
from generator.kube.resources import (
    FABRICS,
    HYPERNODES,
    LEASES,
    NODES,
    RECORDS,
    REPORTS,
    Resource,
)
from generator.outputs.formats import DEFAULT_PREFIX
from generator.outputs.hypernode.forest import build_hypernode_tree
from generator.outputs.hypernode.model import HyperNode, parse_manifest
from generator.reconcile.rendered import KINDS
from generator.telemetry.metrics import PREFIX
from tests.generator.folders import StoreFolder
from tests.generator.scenes import Ran, Scene, kube_node, run
from tests.kube.conftest import WRITER, with_volcano
from tests.kube.proxy import FaultProxy
from tests.lab.api_server import Answer, ApiServer, find_assets
from tests.lab.audit import Write
from tests.lab.wait import wait_until
from tests.repository import ROOT
from tests.topology.synthetic.fabrics import swap
from topology.model.tree import host_partitions
from topology.reports.neighbor_report import NeighborReport, render_report
from topology.reports.packed_reports import unpack_report
from topology.synthetic import derive_truth

DEADLINE_S = 90
OFTEN = ("--period", "1s")
LEAF = f"{DEFAULT_PREFIX}/leaf"
PORT_OPTIONS = ("--metrics-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0")
"""Let a replica serve metrics and probes."""
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"


class Cluster:
    """A server with the reports of a scene's agents."""

    def __init__(self, api: ApiServer, scene: Scene, *, has_volcano: bool = True) -> None:
        self.api = with_volcano(api) if has_volcano else api
        self.scene = scene
        self.namespace = api.namespace()
        self.clear()
        for name in scene.hosts:
            self.add_node(name)
        self.report(scene)

    def report(self, scene: Scene) -> None:
        """Write the reports of a scene, and delete all others; equal reports are not written."""
        reports = StoreFolder(scene.store()).read_reports().values
        for report in reports:
            self.write_report(unpack_report(report))
        self.forget(
            {one["metadata"]["name"] for one in self.items(REPORTS)}.difference(
                report.name for report in reports
            )
        )

    def forget(self, names: Collection[str]) -> None:
        """Delete reports."""
        for name in names:
            self.api.expect("DELETE", REPORTS.path(name))

    def touch(self, minutes: int) -> None:
        """Renew the times of all reports, with unchanged facts."""
        for report in self.items(REPORTS):
            report["status"] = {"observedAt": f"2026-11-05T10:{minutes:02}:00Z"}
            path = f"{REPORTS.path(report['metadata']['name'])}/status"
            self.api.expect("PUT", path, report)

    def run_gang(self, *hosts: str) -> list[str]:
        """Run a pod of one gang on each host; return the paths of the pods."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        self.api.request("POST", account, {"metadata": {"name": "default"}})
        for at, host in enumerate(hosts):
            marks = {"scheduling.k8s.io/group-name": "llm"}
            spec = {"nodeName": host, "containers": [{"name": "c", "image": "i"}]}
            metadata = {"name": f"llm-{at}", "annotations": marks}
            made = self.api.expect("POST", pods, {"metadata": metadata, "spec": spec})
            status = made | {"status": {"phase": "Running"}}
            self.api.expect("PUT", f"{pods}/llm-{at}/status", status)
        return [f"{pods}/llm-{at}" for at in range(len(hosts))]

    def end_gang(self, pods: Iterable[str]) -> None:
        """End the pods of a gang."""
        for pod in pods:
            self.api.expect("DELETE", pod, {"gracePeriodSeconds": 0})

    def write_report(self, report: NeighborReport) -> None:
        path = f"{REPORTS.path(report.metadata.name)}?fieldManager=agent&force=true"
        self.api.apply(path, render_report(report))

    def add_node(self, name: str) -> None:
        node = kube_node(name)
        made = self.api.expect("POST", NODES.path(), node | {"status": {}})
        made = self.api.expect(
            "PUT", f"{NODES.path(name)}/status", made | {"status": node["status"]}
        )
        made["spec"].pop("taints", None)  # the server's own: nothing may be placed there yet
        self.api.expect("PUT", NODES.path(name), made)

    def clear(self) -> None:
        """Remove the leftovers of a test."""
        for resource in (HYPERNODES, RECORDS, FABRICS, REPORTS, NODES):
            for found in self.items(resource):
                self.api.request("DELETE", resource.path(found["metadata"]["name"]))
        for pod in self.api.expect("GET", "/api/v1/pods")["items"]:
            metadata = pod["metadata"]
            self.end_gang([f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"])

    def items(self, resource: Resource) -> list[dict[str, Any]]:
        """Return all objects of a kind; empty if the kind is not installed."""
        answers: list[Answer] = []

        def refused() -> str:
            answers.append(self.api.request("GET", resource.path()))
            return "" if answers[-1].status in (200, 404) else answers[-1].message

        wait_until(refused, deadline_s=DEADLINE_S, what=f"{resource.plural} can be listed")
        found: list[dict[str, Any]] = answers[-1].body.get("items", [])
        return found

    def hypernodes(self) -> dict[str, HyperNode]:
        head = {"apiVersion": HYPERNODES.api_version, "kind": HYPERNODES.kind}
        found = [parse_manifest({**one, **head}) for one in self.items(HYPERNODES)]
        return {one.name: one for one in found}

    def versions(self) -> dict[str, str]:
        """Return the version of each HyperNode, which changes with each write."""
        return {
            one["metadata"]["name"]: one["metadata"]["resourceVersion"]
            for one in self.items(HYPERNODES)
        }

    def fabric(self) -> dict[str, Any]:
        """Return the Fabric object, or an empty one if there is none."""
        return next(iter(self.items(FABRICS)), {})

    def conditions(self) -> dict[str, str]:
        """Return the reason of each condition, with a minus if it is false."""
        rows = self.fabric().get("status", {}).get("conditions", [])
        return {
            row["type"]: row["reason"] if row["status"] == "True" else f"-{row['reason']}"
            for row in rows
        }

    def want(self, **spec: object) -> None:
        """Write the spec of the Fabric object."""
        document = {
            "apiVersion": FABRICS.api_version,
            "kind": FABRICS.kind,
            "metadata": {"name": "default"},
            "spec": spec,
        }
        path = f"{FABRICS.path('default')}?fieldManager=person&force=true"
        self.api.apply(path, document)

    def held(self) -> str:
        """Return the hash of the held plan; empty without one."""
        return str(self.fabric().get("status", {}).get("held", {}).get("hash", ""))

    def holder(self) -> str:
        """Return the identity of the leader."""
        answer = self.api.request("GET", LEASES.path(LEASE_NAME, namespace=self.namespace))
        return str(answer.body.get("spec", {}).get("holderIdentity") or "")

    def await_that(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds."""
        wait_until(lambda: None if condition() else self.state(), deadline_s=DEADLINE_S, what=what)

    def await_tree(self, scene: Scene | None = None, *, but_for: Collection[str] = ()) -> None:
        """Wait until the HyperNodes match the cabling, and the status says so."""
        self.await_that(lambda: self.is_cabled(scene, but_for=but_for), "HyperNodes as cabled")

    def is_cabled(self, scene: Scene | None = None, *, but_for: Collection[str] = ()) -> bool:
        """Return whether the HyperNodes match the cabling, and the status says so."""
        gone = frozenset(but_for)
        truth = host_partitions(derive_truth((scene or self.scene).damaged))
        wanted = [{hosts - gone for hosts in tier} for tier in truth]
        ours = [one for one in self.hypernodes().values() if one.is_ours]
        found = [set(tier) for tier in host_partitions(build_hypernode_tree(ours).tree)]
        return found == wanted and self.conditions().get("Ready") == "HyperNodesWritten"

    def writes(self, since: int = 0) -> list[Write]:
        """Return the writes of the generators in order, without the Lease."""
        found = self.api.writes_by(WRITER)[since:]
        return [one for one in found if one.resource != LEASES.plural]

    def num_writes(self) -> int:
        """Return the number of writes so far, including renewals."""
        return len(self.api.writes_by(WRITER))

    def await_rounds(self, ports: Ports, num: int = 3) -> None:
        """Wait for some more rounds of a replica."""

        def num_rounds() -> float:
            return sum(ports.metric("reconcile_duration_seconds_count").values())

        done = num_rounds()
        self.await_that(lambda: num_rounds() >= done + num, f"{num} more rounds")

    def check_rest(self, ports: Ports) -> None:
        """Check that several rounds write nothing, once that of the last change has ended."""
        self.await_rounds(ports, 1)
        before = self.num_writes()
        self.await_rounds(ports)
        written = self.writes(before)
        assert written == [], written

    def message(self, kind: str) -> str:
        """Return the message of a condition."""
        rows = self.fabric()["status"]["conditions"]
        return next(str(row["message"]) for row in rows if row["type"] == kind)

    def toponaut(self, command: str, *words: str) -> Ran:
        """Run a command on this cluster."""
        return run(command, *words, "--kube", "--kubeconfig", self.api.kubeconfig(WRITER))

    def traded(self, one: str, other: str) -> Scene:
        """Return the scene with the cables of two hosts exchanged."""
        found = self.scene.damaged
        for port in ("eth0", "eth1"):
            found = swap(found, (one, port), (other, port))
        return Scene(self.scene.root, found)

    @contextmanager
    def denied_writes(
        self,
        resource: Resource,
        which: str,
        is_denied: Callable[[], bool],
        *,
        reason: str = "denied",
    ) -> Iterator[None]:
        """Let an admission policy deny some writes of a kind.

        The API server follows its policies with a delay, so both ends wait until it does.

        Args:
            resource: what is written.
            which: a condition of the policy, in CEL.
            is_denied: tries such a write.
            reason: what the server answers.
        """
        name = f"deny-{resource.plural}"
        rule = {
            "apiGroups": [resource.group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": [resource.plural],
        }
        policy = {
            "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "matchConditions": [{"name": "which", "expression": which}],
                "validations": [{"expression": "false", "message": reason}],
            },
        }
        binding = {
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }
        kinds = {
            f"{_ADMISSION}/validatingadmissionpolicies": policy,
            f"{_ADMISSION}/validatingadmissionpolicybindings": binding,
        }
        try:
            for kind, document in kinds.items():
                self.api.expect("POST", kind, document)
            self.await_that(is_denied, "the policy is in force")
            yield
        finally:
            for kind in kinds:
                self.api.request("DELETE", f"{kind}/{name}")
            self.await_that(lambda: not is_denied(), "the policy is gone")

    def state(self) -> object:
        return self.conditions(), self.fabric().get("status", {}), sorted(self.hypernodes())


class OutputCluster(Cluster):
    """A cluster with the kinds of other schedulers."""

    @classmethod
    def of_consumers(cls, api: ApiServer, scene: Scene) -> OutputCluster:
        """Return a cluster in which every consumer is installed."""
        api.install_all(find_assets("consumers"))
        return cls(api, scene)

    def clear(self) -> None:
        """Remove the leftovers of a test."""
        super().clear()
        for kind in {one for kinds in KINDS.values() for one in kinds} - {NODES}:
            for name in self.named(kind):
                self.api.request("DELETE", kind.path(name))

    def choose(self, *outputs: Mapping[str, object]) -> None:
        """Set the outputs of the Fabric."""
        self.want(outputs=list(outputs))

    def states(self) -> dict[str, str]:
        """Return the state of each output in the status."""
        rows = self.fabric().get("status", {}).get("outputs", [])
        return {str(row["type"]): str(row["state"]) for row in rows}

    def await_states(self, wanted: Mapping[str, str]) -> None:
        """Wait until the status says that the outputs are in these states."""
        self.await_that(lambda: self.states() == wanted, f"{wanted}")

    def await_written(self, *outputs: Mapping[str, object]) -> None:
        """Wait until the status says that just these outputs are written."""
        self.await_states({str(row["type"]): "Written" for row in outputs})

    def labels(self, key: str = LEAF) -> dict[str, str]:
        """Return the value of a label by node, without nodes that lack it."""
        found = {
            node["metadata"]["name"]: node["metadata"].get("labels", {}).get(key)
            for node in self.items(NODES)
        }
        return {node: value for node, value in found.items() if value is not None}

    def set_labels(self, node: str, labels: Mapping[str, str | None]) -> None:
        """Set labels as another program does; None removes one."""
        self.api.merge(f"{NODES.path(node)}?fieldManager=other", {"metadata": {"labels": labels}})

    def named(self, resource: Resource) -> set[str]:
        """Return the names of our objects of a kind."""
        return {
            one["metadata"]["name"]
            for one in self.items(resource)
            if any(
                row["manager"].startswith("toponaut-")
                for row in one["metadata"].get("managedFields", [])
            )
        }


class Generator:
    """A running replica."""

    def __init__(
        self, cluster: Cluster, folder: Path, url: str, *words: str, env: Mapping[str, str]
    ) -> None:
        """Start it."""
        self.name = f"replica-{secrets.token_hex(3)}"
        self.log_file = folder / f"{self.name}.log"
        self.ready_file = folder / f"{self.name}.ready"
        kubeconfig = str(cluster.api.kubeconfig(WRITER, url=url))
        options = ("--kubeconfig", kubeconfig, "--namespace", cluster.namespace)
        calls = ["--log-format", "json"]
        if "--listen" not in words:
            calls += ["--listen", "127.0.0.1:0"]
        if "--tls-cert" not in words:
            calls.append("--insecure-loopback")
        argv = [sys.executable, "-m", "generator", "serve", "--kube", *options, *calls]
        argv += ["--identity", self.name, "--ready-file", str(self.ready_file), *words]
        with self.log_file.open("wb") as stream:
            self.program = subprocess.Popen(
                argv,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env={**os.environ, "http_proxy": "http://127.0.0.1:1", **env},
            )

    @property
    def log(self) -> list[Mapping[str, Any]]:
        """Its log so far."""
        lines = self.log_file.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]

    @property
    def events(self) -> list[str]:
        return [str(row["event"]) for row in self.log]

    @property
    def address(self) -> str:
        return self.ready_file.read_text().strip()

    def await_event(self, event: str) -> None:
        """Wait for a log event."""
        wait_until(
            lambda: None if event in self.events else self.events[-10:] or "silence",
            deadline_s=DEADLINE_S,
            what=event,
        )

    def kill(self) -> None:
        """Kill it, as a crash of its node would."""
        self.program.kill()
        self.program.wait(DEADLINE_S)

    def stop(self) -> int:
        """Stop it as the kubelet does."""
        self.program.send_signal(signal.SIGTERM)
        return self.program.wait(DEADLINE_S)


class Ports:
    """The ports of a replica for probes and metrics, from its log."""

    def __init__(self, generator: Generator) -> None:
        generator.await_event("generator ready")
        opened = [row for row in generator.log if row["event"] == "port open"]
        self._addresses = {str(row["what"]): str(row["address"]) for row in opened}

    def health(self, path: str) -> tuple[int, str]:
        return self._ask("health", path)

    def metric(self, name: str) -> dict[tuple[str, ...], float]:
        """Return the samples of a metric by the values of their labels."""
        status, page = self._ask("metrics", "/metrics")
        assert status == 200
        return {
            tuple(sample.labels.values()): sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name == f"{PREFIX}_{name}"
        }

    def _ask(self, what: str, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self._addresses[what], timeout=30)
        with closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode().strip()


@contextmanager
def serving(
    cluster: Cluster,
    folder: Path,
    *words: str,
    proxy: FaultProxy | None = None,
    env: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Generator]:
    """Run a replica, and check at the end that it did not fail."""
    running = Generator(cluster, folder, proxy.url if proxy else "", *words, env=env)
    try:
        yield running
    finally:
        running.kill()
    text = running.log_file.read_text()
    assert "Traceback" not in text, text[-4000:]
