"""A cluster with the scheduler of Volcano, and its HyperNodes from Toponaut.

A gang is a PodGroup whose pods may not cross HyperNodes of a higher tier than it allows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import yaml

from generator.kube.resources import HYPERNODES
from generator.placement.presets import Preset
from tests.lab.api_server import ApiServer, find_assets
from tests.lab.programs import Program
from tests.lab.wait import wait_until
from tests.live.gangs import HOST_LABEL, NODE_MILLICORES, Gang, add_ready_node, find_pod_number

_GROUPS: Final = "scheduling.volcano.sh/v1beta1"
_GROUP_OF_POD: Final = "scheduling.k8s.io/group-name"
_GANG_LABEL: Final = "gang"
_QUEUE: Final = "default"
_DEADLINE_S: Final = 60
_CONFIG: Final = {
    "actions": "enqueue, allocate",
    "tiers": [
        {"plugins": [{"name": "priority"}, {"name": "gang"}]},
        {
            "plugins": [
                {"name": "predicates"},
                {"name": "proportion"},
                {"name": "nodeorder"},
                {"name": "binpack"},
                {"name": "network-topology-aware"},
            ]
        },
    ],
}
"""That of Volcano's installation, with the plugin for HyperNodes."""


class VolcanoCluster:
    """Nodes, and the gangs that the scheduler of Volcano places on them."""

    preset = Preset.VOLCANO
    lowest_tier = 1
    exports: Sequence[str] = ("hypernodes",)

    def __init__(self, api: ApiServer) -> None:
        """Create a namespace for the pods."""
        self.api = api
        self._namespace = api.namespace()
        self._numbers = itertools.count()
        self._num_nodes = 0
        # No controller creates the account that every pod has.
        account = {"metadata": {"name": "default"}}
        api.expect("POST", f"/api/v1/namespaces/{self._namespace}/serviceaccounts", account)

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node that is ready."""
        add_ready_node(self.api, name, labels)
        self._num_nodes += 1

    def install(self, exported: str, keys: Sequence[str]) -> None:
        """Create the HyperNodes; their tiers are numbers, so no label key is needed."""
        assert keys
        for document in yaml.safe_load_all(exported):
            self.api.expect("POST", HYPERNODES.path(), document)
        self._open_queue()
        wait_until(self._is_blind, deadline_s=_DEADLINE_S, what="the scheduler knows all nodes")

    def submit(
        self, gang: Gang, *, tier: int | None = None, nodes: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...] | None]:
        """Let the scheduler place a gang, as `GangCluster` says."""
        name = f"gang-{next(self._numbers)}"
        for pod, millicores in enumerate(gang.millicores):
            document = _render_pod(f"{name}-{pod}", name, millicores)
            if nodes:
                document["spec"]["nodeSelector"] = {HOST_LABEL: nodes[pod]}
            self.api.expect("POST", self._pods, document)
        spec: dict[str, Any] = {"minMember": len(gang.millicores), "queue": _QUEUE}
        if tier is not None:
            spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": tier}
        head = {"apiVersion": _GROUPS, "kind": "PodGroup", "metadata": {"name": name}}
        self.api.expect("POST", self._groups, {**head, "spec": spec})
        return name, self._await_verdict(name, len(gang.millicores))

    def remove(self, gang: str) -> None:
        """Delete a gang."""
        selected = f"labelSelector={_GANG_LABEL}%3D{gang}"
        self.api.expect("DELETE", f"{self._pods}?{selected}", {"gracePeriodSeconds": 0})
        self.api.expect("DELETE", f"{self._groups}/{gang}")

    def _open_queue(self) -> None:
        """Let the queue take gangs, as a controller of Volcano does."""
        path = f"/apis/{_GROUPS}/queues/{_QUEUE}"
        wait_until(
            lambda: self.api.request("GET", path).status != 200,
            deadline_s=_DEADLINE_S,
            what="the scheduler has made its queue",
        )
        queue = self.api.expect("GET", path)
        self.api.expect("PUT", f"{path}/status", {**queue, "status": {"state": "Open"}})

    def _is_blind(self) -> str:
        """Return whether the scheduler refuses a gang that needs every node."""
        name, bound = self.submit(Gang((NODE_MILLICORES,) * self._num_nodes))
        self.remove(name)
        return "" if bound else "a gang on all nodes is refused"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self._namespace}/pods"

    @property
    def _groups(self) -> str:
        return f"/apis/{_GROUPS}/namespaces/{self._namespace}/podgroups"

    def _await_verdict(self, gang: str, num_pods: int) -> tuple[str, ...] | None:
        found: list[tuple[str, ...] | None] = []

        def is_open() -> str:
            listed = self.api.expect("GET", f"{self._pods}?labelSelector={_GANG_LABEL}%3D{gang}")
            pods = sorted(listed["items"], key=find_pod_number)
            nodes = [pod["spec"].get("nodeName", "") for pod in pods]
            if all(nodes):
                found.append(tuple(nodes))
            elif not any(nodes) and self._is_refused(gang, num_pods):
                found.append(None)
            return "" if found else f"{sum(map(bool, nodes))} of {len(nodes)} pods bound"

        wait_until(is_open, deadline_s=_DEADLINE_S, what=f"a verdict on {gang}")
        return found[0]

    def _is_refused(self, gang: str, num_pods: int) -> bool:
        """Return whether the scheduler has tried the whole gang in vain."""
        status = self.api.expect("GET", f"{self._groups}/{gang}").get("status", {})
        return any(
            row["type"] == "Unschedulable"
            and row["status"] == "True"
            and f"/{num_pods} tasks in gang unschedulable" in row["message"]
            for row in status.get("conditions") or ()
        )


@contextmanager
def volcano_cluster(folder: Path) -> Iterator[VolcanoCluster]:
    """Start the programs, and end them at the end.

    Args:
        folder: for keys, logs and what etcd stores.
    """
    assets = find_assets("volcano")
    with ApiServer(find_assets("programs"), folder) as api:
        api.install_all(assets / "crds")
        # The scheduler reads its settings again after each change in their folder.
        config = folder / "settings" / "volcano-scheduler.conf"
        config.parent.mkdir()
        config.write_text(yaml.safe_dump(_CONFIG))
        argv = [
            str(assets / "vc-scheduler"),
            f"--kubeconfig={api.kubeconfig()}",
            f"--scheduler-conf={config}",
            "--leader-elect=false",
            "--schedule-period=100ms",
            "--cache-dumper=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=1000",
        ]
        program = Program(argv, folder / "vc-scheduler.log")
        try:
            yield VolcanoCluster(api)
        finally:
            program.end()


def _render_pod(name: str, gang: str, millicores: int) -> dict[str, Any]:
    requests = {"cpu": f"{millicores}m"}
    return {
        "metadata": {
            "name": name,
            "labels": {_GANG_LABEL: gang},
            "annotations": {_GROUP_OF_POD: gang},
        },
        "spec": {
            "schedulerName": "volcano",
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}],
        },
    }
