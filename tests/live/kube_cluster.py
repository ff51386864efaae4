"""A cluster with the scheduler of Kubernetes and its gangs: topology-aware in alpha in 1.37."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from generator.placement.presets import Preset
from tests.lab.api_server import ApiServer, find_assets
from tests.lab.programs import Program
from tests.lab.wait import wait_until
from tests.live.gangs import HOST_LABEL, Gang, add_ready_node, find_pod_number

_FEATURES = (
    "GenericWorkload",
    "TaintTolerationComparisonOperators",
    "TopologyAwareWorkloadScheduling",
)
GATES = f"--feature-gates={','.join(f'{name}=true' for name in _FEATURES)}"
GROUPS = "scheduling.k8s.io/v1beta1"
DEADLINE_S = 60
_GANG_LABEL = "gang"


class KubeCluster:
    """Nodes, and the gangs that the scheduler of Kubernetes places on them."""

    preset = Preset.KUBERNETES
    lowest_tier = 0
    exports: Sequence[str] = ()

    def __init__(self, api: ApiServer) -> None:
        """Create a namespace for the pods."""
        self.api = api
        self._namespace = api.namespace()
        self._numbers = itertools.count()
        self._keys: Sequence[str] = ()
        # No controller creates the account that every pod has.
        account = {"metadata": {"name": "default"}}
        api.expect("POST", f"/api/v1/namespaces/{self._namespace}/serviceaccounts", account)

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node that is ready."""
        add_ready_node(self.api, name, labels)

    def install(self, exported: str, keys: Sequence[str]) -> None:
        """Take the label keys of the tiers."""
        assert not exported
        self._keys = keys

    def submit(
        self, gang: Gang, *, tier: int | None = None, nodes: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...] | None]:
        """Let the scheduler place a gang, as `GangCluster` says."""
        name = f"gang-{next(self._numbers)}"
        spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": len(gang.millicores)}}}
        if tier is not None:
            spec["schedulingConstraints"] = {"topology": [{"key": self._keys[tier]}]}
        self.api.expect("POST", self._groups, {"metadata": {"name": name}, "spec": spec})
        for pod, millicores in enumerate(gang.millicores):
            document = _render_pod(f"{name}-{pod}", name, millicores)
            if nodes:
                document["spec"]["nodeSelector"] = {HOST_LABEL: nodes[pod]}
            self.api.expect("POST", self._pods, document)
        return name, self._await_verdict(name)

    def try_pods(
        self, specs: Sequence[Mapping[str, Any]], *, waits: bool = False
    ) -> tuple[str, ...]:
        """Let the scheduler place single pods; return the node of each, empty for none.

        Args:
            specs: of the pods.
            waits: whether each pod is known to fit, once the scheduler knows its node.
        """
        names = [f"single-{next(self._numbers)}" for _ in specs]
        for name, spec in zip(names, specs, strict=True):
            document = _render_pod(name, "", 1)
            del document["spec"]["schedulingGroup"]
            document["spec"] |= spec
            self.api.expect("POST", self._pods, document)
        found: dict[str, str] = {}

        def is_open() -> str:
            for pod in self.api.expect("GET", self._pods)["items"]:
                rows = () if waits else pod.get("status", {}).get("conditions", ())
                is_judged = any(row["type"] == "PodScheduled" for row in rows)
                if "nodeName" in pod["spec"] or is_judged:
                    found[pod["metadata"]["name"]] = pod["spec"].get("nodeName", "")
            num_left = len(set(names) - found.keys())
            return f"{num_left} of {len(names)} pods waiting" if num_left else ""

        wait_until(is_open, deadline_s=DEADLINE_S, what="a verdict on every pod")
        self.api.expect("DELETE", self._pods, {"gracePeriodSeconds": 0})
        return tuple(found[name] for name in names)

    def remove(self, gang: str) -> None:
        """Delete a gang."""
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
            pods = sorted(listed["items"], key=find_pod_number)
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
            row["type"] == "PodGroupInitiallyScheduled" and row["status"] == "False"
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
