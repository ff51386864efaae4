"""A cluster with the scheduler of Kubernetes and its topology-aware gangs (alpha in 1.36).

No kubelet and no controllers run: a pod that is bound uses its node until it is deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.lab.api_server import ApiServer, find_assets
from tests.lab.programs import Program
from tests.lab.wait import wait_until

_FEATURES = ("GenericWorkload", "GangScheduling", "TopologyAwareWorkloadScheduling")
GATES = f"--feature-gates={','.join(f'{name}=true' for name in _FEATURES)}"
GROUPS = "scheduling.k8s.io/v1alpha2"
NODE_MILLICORES = 64_000
NODE_BYTES = 1 << 40
DEADLINE_S = 60
HOST_LABEL = "kubernetes.io/hostname"
_GANG_LABEL = "gang"


class Gang(NamedTuple):
    """Pods that run together or not at all."""

    millicores: tuple[int, ...]
    """Of each pod, in the order in which the pods are created."""


class KubeCluster:
    """Nodes, and the gangs that the scheduler of Kubernetes places on them."""

    def __init__(self, api: ApiServer) -> None:
        """Create a namespace for the pods."""
        self.api = api
        self._namespace = api.namespace()
        self._numbers = itertools.count()
        # No controller creates the account that every pod has.
        account = {"metadata": {"name": "default"}}
        api.expect("POST", f"/api/v1/namespaces/{self._namespace}/serviceaccounts", account)

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node that is ready."""
        metadata = {"name": name, "labels": {HOST_LABEL: name, **labels}}
        self.api.expect("POST", "/api/v1/nodes", {"metadata": metadata})
        path = f"/api/v1/nodes/{name}"
        node = self.api.expect("GET", path)
        node["spec"]["taints"] = []  # the server adds `not-ready`
        node = self.api.expect("PUT", path, node)
        room = {"cpu": f"{NODE_MILLICORES}m", "memory": str(NODE_BYTES), "pods": "256"}
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        node["status"] = {"capacity": room, "allocatable": room, "conditions": [ready]}
        self.api.expect("PUT", f"{path}/status", node)

    def submit(
        self, gang: Gang, *, key: str | None = None, nodes: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...] | None]:
        """Let the scheduler place a gang; return its name, and the node of each pod.

        Args:
            gang: the pods.
            key: the label key whose value all nodes share; None for any nodes.
            nodes: by pod: the only node that it may use; empty for any nodes.

        Returns None in place of the nodes if the scheduler refuses the gang.
        """
        name = f"gang-{next(self._numbers)}"
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": len(gang.millicores)}}}
        if key is not None:
            spec["schedulingConstraints"] = {"topology": [{"key": key}]}
        self.api.expect("POST", self._groups, {"metadata": {"name": name}, "spec": spec})
        for pod, millicores in enumerate(gang.millicores):
            document = _render_pod(f"{name}-{pod}", name, millicores)
            if nodes:
                document["spec"]["nodeSelector"] = {HOST_LABEL: nodes[pod]}
            self.api.expect("POST", self._pods, document)
        return name, self._await_verdict(name)

    def remove(self, gang: str) -> None:
        """Delete a gang; the scheduler learns of it before it learns of the next gang."""
        selected = f"labelSelector={_GANG_LABEL}%3D{gang}"
        options = {"gracePeriodSeconds": 0}
        self.api.expect("DELETE", f"{self._pods}?{selected}", options)
        self.api.expect("DELETE", f"{self._groups}/{gang}")

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"

    @property
    def _groups(self) -> str:
        return f"/apis/{GROUPS}/namespaces/{self._namespace}/podgroups"

    def _await_verdict(self, gang: str) -> tuple[str, ...] | None:
        found: list[tuple[str, ...] | None] = []

        def is_open() -> str:
            listed = self.api.expect("GET", f"{self._pods}?labelSelector={_GANG_LABEL}%3D{gang}")
            pods = sorted(listed["items"], key=_find_number)
            nodes = [pod["spec"].get("nodeName", "") for pod in pods]
            if all(nodes):
                found.append(tuple(nodes))
            elif not any(nodes) and self._is_refused(gang):
                found.append(None)
            return "" if found else f"{sum(map(bool, nodes))} of {len(nodes)} pods bound"

        wait_until(is_open, deadline_s=DEADLINE_S, what=f"a verdict on {gang}")
        return found[0]

    def _is_refused(self, gang: str) -> bool:
        status = self.api.expect("GET", f"{self._groups}/{gang}").get("status", {})
        return any(
            row["type"] == "PodGroupScheduled" and row["status"] == "False"
            for row in status.get("conditions", ())
        )


@contextmanager
def kube_cluster(folder: Path) -> Iterator[KubeCluster]:
    """Start the programs, and end them at the end.

    Args:
        folder: for keys, logs and what etcd stores.
    """
    scheduler = find_assets("scheduler") / "kube-scheduler"
    options = (GATES, f"--runtime-config={GROUPS}=true")
    with ApiServer(find_assets("programs"), folder, options=options) as api:
        argv = [
            str(scheduler),
            f"--kubeconfig={api.kubeconfig()}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
            GATES,
        ]
        program = Program(argv, folder / "kube-scheduler.log")
        try:
            yield KubeCluster(api)
        finally:
            program.end()


def _find_number(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])


def _render_pod(name: str, gang: str, millicores: int) -> dict[str, Any]:
    requests = {"cpu": f"{millicores}m"}
    return {
        "metadata": {"name": name, "labels": {_GANG_LABEL: gang}},
        "spec": {
            "schedulingGroup": {"podGroupName": gang},
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
        },
    }
