"""Small clusters, and jobs of sbatch placed in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from generator.manifests.fields import Relevance
from generator.manifests.manifest_request import Translation, translate_job
from generator.manifests.slurm.batch_job import parse_batch_job
from generator.manifests.slurm.command_line import split_words
from generator.manifests.slurm.loads import NodeCapacity, build_node_capacity
from generator.placement.answer import Placement
from generator.placement.cluster.nodes import NodeSpec
from generator.placement.cluster.snapshot import Snapshot, build_snapshot
from generator.placement.engine import place
from generator.placement.request import parse_request
from topology.model.tree import DomainSpec, TopologyTree, build_tree

GPU = "nvidia.com/gpu"
MIB = 1 << 20
GIB = 1 << 30


class NodeKind(NamedTuple):
    """Equal nodes below one leaf."""

    prefix: str
    num_nodes: int
    cpus: int
    memory_mib: int
    gpus: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes."""
        return tuple(f"{self.prefix}{number}" for number in range(1, self.num_nodes + 1))

    @property
    def capacity(self) -> dict[str, int]:
        """What each node lists, in the units of the engine."""
        gpus = {GPU: self.gpus} if self.gpus else {}
        memory = self.memory_mib * MIB
        return {"slots": 1, "cpu": self.cpus * 1000, "memory": memory, "pods": 110} | gpus


@dataclass(frozen=True)
class Cluster:
    """Leaves below one spine."""

    leaves: tuple[NodeKind, ...]
    specs: tuple[NodeSpec, ...] = field(init=False)

    def __post_init__(self) -> None:
        """List the nodes."""
        specs = [NodeSpec(name, kind.capacity) for kind in self.leaves for name in kind.names]
        object.__setattr__(self, "specs", tuple(specs))

    @property
    def tree(self) -> TopologyTree:
        """The tree of the cluster."""
        leaves = [
            DomainSpec(f"l{index}", 1, "s0", kind.names) for index, kind in enumerate(self.leaves)
        ]
        return build_tree([DomainSpec("s0", 2, None), *leaves], tiers=("leaf", "spine"))

    @property
    def snapshot(self) -> Snapshot:
        """The idle cluster."""
        return build_snapshot(self.tree, {spec.name: spec for spec in self.specs})

    @property
    def capacity(self) -> NodeCapacity:
        """What its nodes have free."""
        return build_node_capacity(self.specs, self.tree.nodes)


EQUAL = Cluster((NodeKind("n", 4, 64, 500_000, 8), NodeKind("m", 4, 64, 500_000, 8)))
"""Eight nodes of eight GPUs."""
MIXED = Cluster(
    (
        NodeKind("a", 4, 16, 64_000, 4),
        NodeKind("b", 3, 64, 500_000, 8),
        NodeKind("c", 2, 128, 250_000),
    )
)
"""Four small and three large GPU nodes, and two without GPUs."""


def translated(
    options: str,
    cluster: Cluster | None = None,
    *,
    script: str | None = None,
    files: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Translation:
    """Return the translation of options, for the nodes of a cluster or for any."""
    job = parse_batch_job(
        split_words(options),
        script,
        environment=environment or {},
        read_text=(files or {}).get,
    )
    return translate_job(job, None if cluster is None else cluster.capacity)


def groups_of(options: str, cluster: Cluster | None = None) -> list[dict[str, Any]]:
    """Return the groups of a job."""
    groups: list[dict[str, Any]] = translated(options, cluster).document["spec"]["groups"]
    return groups


def placed(options: str, cluster: Cluster) -> Placement:
    """Return where a job is placed in an idle cluster."""
    return place(cluster.snapshot, parse_request(translated(options, cluster).document))


def used_nodes(placement: Placement) -> list[str]:
    """Return the nodes of a placement, each once; none if it is infeasible."""
    return sorted({node for row in placement.assignment.values() for node in row if node})


def risks_of(found: Translation) -> list[str]:
    """Return the options that may matter."""
    return [str(row) for row in found.ignored if row.relevance is Relevance.POSSIBLE]


def notes_of(found: Translation) -> Sequence[str]:
    """Return the notes on a translation."""
    return [str(note) for note in found.notes]
