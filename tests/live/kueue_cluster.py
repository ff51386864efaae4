"""A cluster with the manager of Kueue, and its Topology and ResourceFlavor from Toponaut.

Kueue admits a Workload and says which nodes its pods will get; no pod is created. The manager runs
in a root folder of its own, because it reads its certificates from a fixed path. Its webhooks are
served and not registered.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from generator.placement.presets import Preset
from tests.lab.api_server import ApiServer, find_assets, free_ports
from tests.lab.programs import Program
from tests.lab.tools import require_tools
from tests.lab.wait import wait_until
from tests.live.gangs import HOST_LABEL, Gang, add_ready_node

API: Final = "kueue.x-k8s.io/v1beta2"
QUEUE: Final = "lab"
FLAVOR_LABEL: Final = "lab.toponaut.io/flavor"
FLAVOR: Final = "gpu"
_KINDS: Final = frozenset(
    {"workloads", "clusterqueues", "localqueues", "resourceflavors", "topologies", "cohorts"}
)
_DEADLINE_S: Final = 60


class KueueCluster:
    """Nodes, and the gangs that Kueue places on them."""

    preset = Preset.KUEUE
    lowest_tier = 0
    exports: Sequence[str] = (
        "kueue",
        "--flavor",
        FLAVOR,
        "--flavor-label",
        f"{FLAVOR_LABEL}={FLAVOR}",
    )

    def __init__(self, api: ApiServer) -> None:
        """Create a namespace for the workloads."""
        self.api = api
        self.namespace = api.namespace()
        self._numbers = itertools.count()
        self._keys: Sequence[str] = ()

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node of the flavor that is ready."""
        add_ready_node(self.api, name, {FLAVOR_LABEL: FLAVOR, **labels})

    def install(self, exported: str, keys: Sequence[str]) -> None:
        """Create the Topology and the flavor, and a queue with quota for every gang."""
        self._keys = keys
        for document in yaml.safe_load_all(exported):
            plural = {"Topology": "topologies", "ResourceFlavor": "resourceflavors"}
            path = f"/apis/{document['apiVersion']}/{plural[document['kind']]}"
            self.api.expect("POST", path, document)
        quota = {"name": "cpu", "nominalQuota": "1000000"}
        group = {
            "coveredResources": ["cpu"],
            "flavors": [{"name": FLAVOR, "resources": [quota]}],
        }
        spec = {
            "namespaceSelector": {},
            "resourceGroups": [group],
            "preemption": {"withinClusterQueue": "LowerPriority"},
        }
        queues = f"/apis/{API}/clusterqueues"
        self._create(queues, "ClusterQueue", QUEUE, spec)
        local_queues = f"/apis/{API}/namespaces/{self.namespace}/localqueues"
        self._create(local_queues, "LocalQueue", QUEUE, {"clusterQueue": QUEUE})
        path = f"{queues}/{QUEUE}"
        wait_until(
            lambda: _find_condition(self.api.expect("GET", path), "Active")[0] != "True",
            deadline_s=_DEADLINE_S,
            what="the queue is active",
        )

    def submit(
        self,
        gang: Gang,
        *,
        tier: int | None = None,
        nodes: Sequence[str] = (),
        priority: int = 0,
    ) -> tuple[str, tuple[str, ...] | None]:
        """Let Kueue place a gang of equal pods, as `GangCluster` says."""
        name = self._queue(gang, tier=tier, nodes=nodes, priority=priority)
        wait_until(
            lambda: "" if self._find_verdict(name)[0] else "no verdict",
            deadline_s=_DEADLINE_S,
            what=f"a verdict on {name}",
        )
        return name, self.find_assignment(name)

    def preempt(self, gang: Gang, *, tier: int, priority: int) -> tuple[str, set[str], bool]:
        """Let Kueue admit a gang at the expense of gangs of lower priority, which end.

        Returns the name of the gang, the gangs that were evicted, and whether it is admitted.
        """
        name = self._queue(gang, tier=tier, priority=priority)
        evicted: set[str] = set()

        def is_open() -> str:
            for found in self.api.expect("GET", self._workloads)["items"]:
                if _find_condition(found, "Evicted")[0] == "True":
                    evicted.add(found["metadata"]["name"])
                    self.remove(found["metadata"]["name"])
            status, message = self._find_verdict(name)
            is_waiting = status != "True" and "preempt" in message.lower()
            return "" if status and not is_waiting else f"waits: {message}"

        wait_until(is_open, deadline_s=_DEADLINE_S, what=f"a verdict on {name}")
        return name, evicted, self._find_verdict(name)[0] == "True"

    def submit_job(self, job: Mapping[str, Any]) -> tuple[str, ...]:
        """Create a suspended Job; return the node of each pod, once its workload is admitted."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        self.api.expect("POST", path, job)
        found: list[tuple[str, ...]] = []

        def is_open() -> str:
            for row in self.api.expect("GET", self._workloads)["items"]:
                owners = row["metadata"].get("ownerReferences", ())
                if any(owner["name"] == job["metadata"]["name"] for owner in owners):
                    nodes = self.find_assignment(row["metadata"]["name"])
                    found.extend([nodes] if nodes else [])
            return "" if found else "the workload of the job is not admitted"

        wait_until(is_open, deadline_s=_DEADLINE_S, what=f"job {job['metadata']['name']}")
        return found[0]

    def remove(self, gang: str) -> None:
        """Delete a gang."""
        self.api.expect("DELETE", f"{self._workloads}/{gang}")

    def find_assignment(self, workload: str) -> tuple[str, ...] | None:
        """Return the node of each pod, in the order of ranks; None without an admission."""
        status = self.api.expect("GET", f"{self._workloads}/{workload}").get("status", {})
        rows = status.get("admission", {}).get("podSetAssignments", ())
        return tuple(node for row in rows for node in _list_nodes(row)) or None

    def _create(self, path: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        head = {"apiVersion": API, "kind": kind, "metadata": {"name": name}}
        self.api.expect("POST", path, {**head, "spec": spec})

    @property
    def _workloads(self) -> str:
        return f"/apis/{API}/namespaces/{self.namespace}/workloads"

    def _queue(
        self,
        gang: Gang,
        *,
        tier: int | None = None,
        nodes: Sequence[str] = (),
        priority: int = 0,
    ) -> str:
        """Create the workload of a gang; return its name."""
        (millicores,) = set(gang.millicores)
        name = f"gang-{next(self._numbers)}"
        request = {"unconstrained": True} if tier is None else {"required": self._keys[tier]}
        pods = {
            "name": "main",
            "count": len(gang.millicores),
            "template": {"spec": _render_pod(millicores, nodes)},
            "topologyRequest": request,
        }
        spec = {"queueName": QUEUE, "active": True, "priority": priority, "podSets": [pods]}
        self._create(self._workloads, "Workload", name, spec)
        return name

    def _find_verdict(self, gang: str) -> tuple[str, str]:
        """Return whether a gang has its place, empty while Kueue has not tried it, and why not."""
        return _find_condition(self.api.expect("GET", f"{self._workloads}/{gang}"), "QuotaReserved")


@contextmanager
def kueue_cluster(folder: Path) -> Iterator[KueueCluster]:
    """Start the programs, and end them at the end.

    Args:
        folder: for keys, logs, what etcd stores, and the root folder of Kueue.
    """
    require_tools("chroot", is_root_needed=True)
    assets = find_assets("kueue")
    with ApiServer(find_assets("programs"), folder) as api:
        api.install_all(assets / "crds")
        wait_until(
            lambda: _KINDS - _list_kinds(api), deadline_s=_DEADLINE_S, what="all kinds are listed"
        )
        root = _make_root(folder, assets, api)
        log = folder / "kueue.log"
        argv = ["chroot", str(root), "/kueue", "--config=/config.json"]
        program = Program([*argv, "--kubeconfig=/kubeconfig"], log)
        try:
            wait_until(
                lambda: "" if "Starting workers" in log.read_text() else f"no workers, see {log}",
                deadline_s=_DEADLINE_S,
                what="Kueue starts",
            )
            yield KueueCluster(api)
        finally:
            program.end()


def _list_kinds(api: ApiServer) -> set[str]:
    """Return the kinds of Kueue in the list by which its manager finds them."""
    listed = api.request("GET", f"/apis/{API}").body.get("resources", ())
    return {str(row["name"]) for row in listed}


def _make_root(folder: Path, assets: Path, api: ApiServer) -> Path:
    """Return a folder with all files that Kueue reads."""
    root = folder / "kueue-root"
    certificates = root / "etc/kueue/metrics/certs"
    certificates.mkdir(parents=True)
    (root / "tmp").mkdir()
    for source, name in (("server.crt", "tls.crt"), ("server.key", "tls.key")):
        shutil.copy(folder / source, certificates / name)
    shutil.copy(assets / "kueue", root / "kueue")
    shutil.copy(api.kubeconfig(), root / "kubeconfig")
    (webhook_port,) = free_ports(1)
    config = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": "0"},
        "metrics": {"bindAddress": "0"},
        "webhook": {
            "host": "127.0.0.1",
            "port": webhook_port,
            "certDir": "/etc/kueue/metrics/certs",
        },
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": -1},
        "integrations": {"frameworks": ["batch/job"]},
        "featureGates": {"VisibilityOnDemand": False, "MultiKueue": False},
    }
    (root / "config.json").write_text(json.dumps(config))
    return root


def _render_pod(millicores: int, nodes: Sequence[str]) -> dict[str, Any]:
    requests = {"cpu": f"{millicores}m"}
    container = {"name": "main", "image": "x", "resources": {"requests": requests}}
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if nodes:
        row = {"key": HOST_LABEL, "operator": "In", "values": sorted(set(nodes))}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [row]}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
    return spec


def _find_condition(document: Mapping[str, Any], kind: str) -> tuple[str, str]:
    """Return the status and the message of a condition; empty without one."""
    rows = document.get("status", {}).get("conditions", ())
    found = (row for row in rows if row["type"] == kind)
    return next(((str(row["status"]), str(row["message"])) for row in found), ("", ""))


def _list_nodes(assignment: Mapping[str, Any]) -> Iterator[str]:
    """Yield the node of each pod of an assignment, which lists domains in runs of equal shape."""
    for part in assignment.get("topologyAssignment", {}).get("slices", ()):
        hosts, counts = part["valuesPerLevel"][-1], part["podCounts"]
        names = [hosts.get("universal")] * part["domainCount"]
        if spread := hosts.get("individual"):
            before, after = spread.get("prefix", ""), spread.get("suffix", "")
            names = [f"{before}{name}{after}" for name in spread["roots"]]
        nums = counts.get("individual") or [counts["universal"]] * part["domainCount"]
        for name, num in zip(names, nums, strict=True):
            yield from [str(name)] * num
