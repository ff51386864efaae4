"""The label keys of clouds and tools: every level that they document, coarsest first. Pure.

Sources, all read in November 2026:
- EKS: https://docs.aws.amazon.com/eks/latest/userguide/ml-workload-topology.html (layer 4 on types
  with four layers), and ultraserver-id of the topology labels of SageMaker HyperPod
- GKE: https://cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas; the
  cluster as in Google's own cluster-health-scanner
- OCI: oracle-quickstart/oci-hpc-oke, docs/using-rdma-network-locality-when-running-workloads-on-oke
- CoreWeave: https://docs.coreweave.com/products/networking/hpc-interconnect/infiniband-roce-labels
- Crusoe: https://docs.nvidia.com/topograph/providers/crusoe
- Nebius: nebius/soperator, internal/consts and internal/controller/topologyconfcontroller
- Alibaba: koordinator and ACK Lingjun, labels asw-id and point-of-delivery
- topograph and NVIDIA: https://docs.nvidia.com/topograph/reference/node-labels-and-annotations

Azure, Lambda, Nscale and Together document no such labels: there topograph writes its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from generator.outputs.formats import DEFAULT_PREFIX

_ANY_NUMBER: Final = "*"
"""At the end of a key: one level for each number that is there, the highest first."""
_CLIQUE: Final = "nvidia.com/gpu.clique"
"""The NVLink domain by NVIDIA's GPU operator; topograph writes no other where a node has it."""


def _join(prefix: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{name}" for name in names)


LABEL_PRESETS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "toponaut": _join(f"{DEFAULT_PREFIX}/", "tier-*", "core", "spine", "leaf", "nvlink"),
        "topograph": (
            "fabric.topograph.run/tier-*",
            *_join("accelerator.topograph.run/", "domain", "sub-domain"),
        ),
        "nvidia": (
            *_join("network.topology.nvidia.com/", "datacenter", "core", "spine", "block", "leaf"),
            "network.topology.nvidia.com/accelerator",
            _CLIQUE,
        ),
        "eks": (
            *_join("topology.k8s.aws/network-node-layer-", "1", "2", "3", "4"),
            "topology.k8s.aws/ultraserver-id",
        ),
        "gke": _join("cloud.google.com/gce-topology-", "cluster", "block", "subblock", "host"),
        "oci": (
            *_join("oci.oraclecloud.com/rdma.", "hpc_island_id", "network_block_id"),
            "oci.oraclecloud.com/host.network_block_id",
            "oci.oraclecloud.com/rdma.local_block_id",
            *_join("oci.oraclecloud.com/host.", "rack_id", "gpu_memory_fabric_id"),
        ),
        "coreweave": (
            *_join("backend.coreweave.cloud/", "fabric", "superpod", "leafgroup"),
            "node.coreweave.cloud/rack",
            "ds.coreweave.com/nvlink.domain",
        ),
        "crusoe": ("crusoe.ai/ib.partition.id", "crusoe.ai/pod.id", _CLIQUE),
        "nebius": _join(
            "topology.nebius.com/", "gpu-cluster-id", "tier-*", "nvl-instance-group-id"
        ),
        "alibaba": _join("alibabacloud.com/", "point-of-delivery", "asw-id"),
    }
)
"""Keys that no node has are left out."""


def is_preset(keys: Sequence[str]) -> bool:
    """Return whether the keys are those of a preset."""
    return tuple(keys) in LABEL_PRESETS.values()


def select_present(keys: Sequence[str], present: Collection[str]) -> tuple[str, ...]:
    """Return the keys that nodes have, in the order of the levels.

    Args:
        keys: the label keys of a preset, or any others, coarsest first.
        present: all label keys of the nodes.
    """
    return tuple(key for pattern in keys for key in _expand(pattern, present))


def _expand(pattern: str, present: Collection[str]) -> Iterator[str]:
    if not pattern.endswith(_ANY_NUMBER):
        yield from [pattern] if pattern in present else []
        return
    stem = pattern.removesuffix(_ANY_NUMBER)
    tails = {key: key.removeprefix(stem) for key in present if key.startswith(stem)}
    numbers = {key: int(tail) for key, tail in tails.items() if tail.isascii() and tail.isdigit()}
    yield from sorted(numbers, key=lambda key: (-numbers[key], key))
