"""Everything that one round reads, apart from the Fabric object."""

from __future__ import annotations

from typing import NamedTuple

from generator.objects.inventory import Inventory
from generator.objects.pods import BoundPod, Gang
from generator.store.base import StoredHyperNodes, StoredRecord, StoredReports
from generator.store.fabric_store import FabricStore


class ClusterState(NamedTuple):
    """Everything that one round reads, apart from the Fabric object."""

    reports: StoredReports
    hypernodes: StoredHyperNodes
    record: StoredRecord
    bound_pods: tuple[BoundPod, ...]
    inventory: Inventory | None
    gangs: tuple[Gang, ...]
    unready_agents: frozenset[str] | None
    """Nodes whose agent does not collect; None if only the ages of reports show that."""
    store_problems: tuple[str, ...]
    """Why some of this may be out of date."""


def read_cluster_state(store: FabricStore) -> ClusterState:
    """Return what a round reads.

    Raises:
        KubeUnavailable: a kind was never listed.
    """
    return ClusterState(
        store.read_reports(),
        store.read_hypernodes(),
        store.read_record(),
        store.read_bound_pods(),
        store.read_inventory(),
        store.read_gangs(),
        store.read_unready_agents(),
        store.problems,
    )
