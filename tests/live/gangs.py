"""The nodes and gangs of a live scheduler, and what a scheduler does with a gang.

No kubelet and no controllers run: a gang uses its nodes until it is removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from generator.placement.presets import Preset
from tests.lab.api_server import ApiServer

HOST_LABEL: Final = "kubernetes.io/hostname"
NODE_MILLICORES: Final = 64_000
NODE_BYTES: Final = 1 << 40


class Gang(NamedTuple):
    """Pods that run together or not at all."""

    millicores: tuple[int, ...]
    """Of each pod, in the order in which the pods are created."""


BY_SIZE: Final = (
    Gang((16_000,) * 8),  # two nodes of one leaf
    Gang((64_000,) * 4),  # a whole leaf
    Gang((64_000,) * 5),  # more than a leaf
    Gang((64_000,) * 65),  # more than a cluster of 64 nodes
)
TIERS_BY_SIZE: Final = [1, 1, 2, None]
"""The tier that each of these gangs reaches in a cluster of 64 nodes."""


class GangCluster(Protocol):
    """Nodes, and a scheduler that places gangs on them."""

    preset: Preset
    """The preset with the rules of the scheduler."""
    lowest_tier: int
    """The lowest tier to which a gang can be confined: 0 for one node."""
    exports: Sequence[str]
    """The words after `toponaut export` for what the scheduler reads beside the labels of nodes;
    empty if the labels are enough."""

    def add_node(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a node that is ready, with the labels of a tree."""
        ...

    def install(self, exported: str, keys: Sequence[str]) -> None:
        """Create what `exports` has printed, for the nodes that are there.

        Args:
            exported: the documents.
            keys: the label key of each tier, from that of the node itself.
        """
        ...

    def submit(
        self, gang: Gang, *, tier: int | None = None, nodes: Sequence[str] = ()
    ) -> tuple[str, tuple[str, ...] | None]:
        """Let the scheduler place a gang; return its name, and the node of each pod.

        Args:
            gang: the pods.
            tier: all pods share a domain of this tier; None for any nodes.
            nodes: by pod: the only node that it may use; empty for any nodes. A scheduler that
                knows no node of a single pod takes them as the nodes of all.

        Returns None in place of the nodes if the scheduler refuses the gang.
        """
        ...

    def remove(self, gang: str) -> None:
        """Delete a gang; the scheduler learns of it before it learns of the next gang."""
        ...


def add_ready_node(
    api: ApiServer,
    name: str,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]] = (),
) -> None:
    """Add a node with room for pods, whose name is also its host name.

    A scheduler that knows its room knows its taints too.
    """
    metadata = {"name": name, "labels": {HOST_LABEL: name, **labels}}
    api.expect("POST", "/api/v1/nodes", {"metadata": metadata})
    path = f"/api/v1/nodes/{name}"
    node = api.expect("GET", path)
    node["spec"]["taints"] = [*taints]  # the server adds `not-ready`
    node = api.expect("PUT", path, node)
    room = {"cpu": f"{NODE_MILLICORES}m", "memory": str(NODE_BYTES), "pods": "256"}
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    node["status"] = {"capacity": room, "allocatable": room, "conditions": [ready]}
    api.expect("PUT", f"{path}/status", node)


def find_pod_number(pod: Mapping[str, Any]) -> int:
    """Return the index of a pod in its gang, which ends the pod's name."""
    return int(pod["metadata"]["name"].rpartition("-")[2])
