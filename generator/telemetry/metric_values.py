"""What of a round is told as numbers, for whoever shows numbers. Pure.

Every label comes from a closed set: kinds, tiers, states, and domains, which are as many as the
switches make. Nodes, ports and gangs are never labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generator.objects.fabric import ConditionType
from generator.objects.reservation import ReservationPhase
from generator.placement.cluster.snapshot import Snapshot
from generator.reconcile.plan import Op
from generator.reconcile.result import RoundOutcome
from generator.reservations.records import ReservedTotals
from topology.model.facts import FindingKind

SLOTS: Final = "slots"
MAX_DEVICES: Final = 4
"""Resources beside slots whose capacity is told; the first by name."""

Samples = Mapping[tuple[str, ...], float]
"""By the values of the labels."""


class MetricFamily(NamedTuple):
    """One thing that stands, as numbers."""

    name: str
    help_text: str
    """One sentence."""
    labels: tuple[str, ...]
    samples: Samples


def build_round_metrics(outcome: RoundOutcome) -> Iterator[MetricFamily]:
    """Yield what a round saw and what stands after it, always the same figures in one order.

    Cost: O(nodes × resources + domains).
    """
    yield MetricFamily("tree_generation", _GENERATION, (), {(): outcome.generation})
    yield MetricFamily("reports", _REPORTS, ("state",), _count_reports(outcome))
    yield MetricFamily("fabric_findings", _FINDINGS, ("kind",), _count_findings(outcome))
    yield MetricFamily("nodes", _NODES, ("state",), _count_nodes(outcome))
    yield MetricFamily("hypernodes", _HYPERNODES, ("tier",), _count_hypernodes(outcome))
    yield MetricFamily("condition", _CONDITION, ("type",), _sample_conditions(outcome))
    yield MetricFamily("held_actions", _HELD, ("action",), _count_held_writes(outcome))
    sizes, capacity, usage = _sum_domains(outcome.snapshot)
    yield MetricFamily("domain_nodes", _SIZES, ("tier", "domain"), sizes)
    yield MetricFamily("domain_capacity", _CAPACITY, ("tier", "domain", "resource"), capacity)
    yield MetricFamily("domain_usage", _USAGE, ("tier", "domain", "resource"), usage)


def build_reservation_metrics(census: ReservedTotals) -> Iterator[MetricFamily]:
    """Yield what is reserved at a moment."""
    phases: Samples = {(phase.value,): census.phases.get(phase, 0) for phase in ReservationPhase}
    yield MetricFamily("reservations", _RESERVATIONS, ("state",), phases)
    told = _find_reported_resources(tuple(sorted(census.amounts)))
    amounts: Samples = {(name,): census.amounts[name] for name in told}
    yield MetricFamily("reserved_capacity", _RESERVED, ("resource",), amounts)


_RESERVATIONS: Final = "Reservations; those that ended are remembered for a while."
_RESERVED: Final = "What is kept for pods that are not bound yet: slots, and devices."
_GENERATION: Final = "Grows with each new tree; 0 until the first is known."
_REPORTS: Final = (
    "Reports of agents and switches: fresh, stale, refused; silent are nodes without one."
)
_FINDINGS: Final = "What is wrong with the fabric or with what is known of it."
_NODES: Final = "Nodes that the tree holds, and those that it cannot place."
_HYPERNODES: Final = "HyperNodes of ours in the cluster; tier 1 is nearest the nodes."
_CONDITION: Final = "1 where a condition of the Fabric object is true, else 0."
_HELD: Final = "Writes of the plan that waits for an approval."
_SIZES: Final = "Nodes of a domain."
_CAPACITY: Final = (
    "What the nodes of a domain offer to jobs: slots, and devices such as nvidia.com/gpu."
)
_USAGE: Final = "What of a domain's capacity is taken."


def _count_reports(outcome: RoundOutcome) -> Samples:
    kinds = Counter(one.kind for one in outcome.findings)
    stale, silent = kinds[FindingKind.STALE_REPORT], kinds[FindingKind.SILENT_NODE]
    return {
        ("fresh",): max(0, outcome.num_reports - stale),
        ("stale",): stale,
        ("refused",): outcome.num_refused_reports,
        ("silent",): silent,
    }


def _count_findings(outcome: RoundOutcome) -> Samples:
    kinds = Counter(one.kind for one in outcome.findings)
    return {(kind.value,): kinds[kind] for kind in FindingKind}


def _count_nodes(outcome: RoundOutcome) -> Samples:
    tree = outcome.tree
    placed, unplaced = (len(tree.nodes), len(tree.unplaced)) if tree else (0, 0)
    return {("placed",): placed, ("unplaced",): unplaced}


def _count_hypernodes(outcome: RoundOutcome) -> Samples:
    tiers = Counter(one.tier for one in outcome.observed_hypernodes if one.is_ours)
    return {(str(tier),): num for tier, num in sorted(tiers.items())}


def _sample_conditions(outcome: RoundOutcome) -> Samples:
    status = {one.type: one.status for one in outcome.conditions}
    return {(kind.value,): float(status.get(kind) == "True") for kind in ConditionType}


def _count_held_writes(outcome: RoundOutcome) -> Samples:
    held = outcome.held
    counts = {
        Op.CREATE: held.creates if held else 0,
        Op.UPDATE: held.updates if held else 0,
        Op.DELETE: held.deletes if held else 0,
    }
    return {(op.value,): num for op, num in counts.items()}


def _sum_domains(snapshot: Snapshot | None) -> tuple[Samples, Samples, Samples]:
    """Return nodes, capacity and usage by domain."""
    sizes: dict[tuple[str, ...], float] = {}
    capacity: dict[tuple[str, ...], float] = {}
    usage: dict[tuple[str, ...], float] = {}
    if snapshot is None:
        return sizes, capacity, usage
    columns = {
        name: _compute_running_sums(snapshot, name)
        for name in _find_reported_resources(snapshot.resources)
    }
    for domain in snapshot.tree.domains:
        at = (str(domain.tier), domain.name)
        sizes[at] = domain.stop - domain.start
        for name, (offered, idle) in columns.items():
            whole = float(offered[domain.stop] - offered[domain.start])
            left = float(idle[domain.stop] - idle[domain.start])
            capacity[*at, name] = whole
            usage[*at, name] = max(0.0, whole - left)
    return sizes, capacity, usage


def _find_reported_resources(resources: tuple[str, ...]) -> list[str]:
    """Return slots, and what a kubelet counts by devices: their names have a domain in front."""
    devices = [name for name in resources if "/" in name]
    return [*(name for name in resources if name == SLOTS), *devices[:MAX_DEVICES]]


def _compute_running_sums(
    snapshot: Snapshot, resource: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return running sums over the nodes of the tree: what they offer, and what is idle."""
    num = snapshot.num_tree_nodes
    offered = np.fromiter(
        (spec.capacity.get(resource, 0) for spec in snapshot.specs[:num]), np.float64, num
    )
    row = snapshot.free[snapshot.resources.index(resource), :num]
    return _compute_running_sum(offered), _compute_running_sum(
        np.maximum(row, 0).astype(np.float64)
    )


def _compute_running_sum(column: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(1), np.cumsum(column)])
