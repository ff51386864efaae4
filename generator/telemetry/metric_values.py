"""The gauges of one round, as plain numbers. Pure.

Every label comes from a closed set: kinds, tiers, states, resources, and domains, whose number
depends on the switches. Nodes, ports and gangs are never labels. Rendering is not done here.
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
from generator.reconcile.hypernode_plan import Op
from generator.reconcile.round_results import RoundOutcome
from generator.reservations.records import ReservedTotals
from topology.model.facts import FindingKind

SLOTS: Final = "slots"
MAX_DEVICES: Final = 4
"""Resources besides slots whose capacity is reported: the first ones by name."""

Samples = Mapping[tuple[str, ...], float]
"""Values by label values, in the order of the labels."""


class MetricFamily(NamedTuple):
    """One gauge with all its samples."""

    name: str
    help_text: str
    """One sentence."""
    labels: tuple[str, ...]
    samples: Samples


def build_round_metrics(outcome: RoundOutcome) -> Iterator[MetricFamily]:
    """Yield the gauges of a round: always the same families, in the same order.

    Cost: O(nodes × resources + domains).
    """
    yield MetricFamily("tree_generation", _GENERATION, (), {(): outcome.generation})
    yield MetricFamily("reports", _REPORTS, ("state",), _count_reports(outcome))
    yield MetricFamily("fabric_findings", _FINDINGS, ("kind",), _count_findings(outcome))
    yield MetricFamily("gang_rank_crossings", _RINGS, ("tier", "order"), _sum_crossings(outcome))
    yield MetricFamily("nodes", _NODES, ("state",), _count_nodes(outcome))
    yield MetricFamily("hypernodes", _HYPERNODES, ("tier",), _count_hypernodes(outcome))
    yield MetricFamily("condition", _CONDITION, ("type",), _sample_conditions(outcome))
    yield MetricFamily("held_actions", _HELD, ("action",), _count_held_writes(outcome))
    yield MetricFamily("output_objects", _OUTPUTS, ("output", "state"), _count_outputs(outcome))
    sizes, capacity, usage = _sum_domains(outcome.snapshot)
    yield MetricFamily("domain_nodes", _SIZES, ("tier", "domain"), sizes)
    yield MetricFamily("domain_capacity", _CAPACITY, ("tier", "domain", "resource"), capacity)
    yield MetricFamily("domain_usage", _USAGE, ("tier", "domain", "resource"), usage)


def build_reservation_metrics(census: ReservedTotals) -> Iterator[MetricFamily]:
    """Yield the gauges of reservations."""
    phases: Samples = {(phase.value,): census.phases.get(phase, 0) for phase in ReservationPhase}
    yield MetricFamily("reservations", _RESERVATIONS, ("state",), phases)
    resources = _find_reported_resources(tuple(sorted(census.amounts)))
    amounts: Samples = {(name,): census.amounts[name] for name in resources}
    yield MetricFamily("reserved_capacity", _RESERVED, ("resource",), amounts)


_RESERVATIONS: Final = "Reservations by state; ended ones are counted until they are deleted."
_RESERVED: Final = "Capacity reserved for pods that are not bound yet: slots and devices."
_GENERATION: Final = "Generation of the tree, which grows with each new tree; 0 before the first."
_REPORTS: Final = "Reports of agents and switches, by state; silent counts nodes without a report."
_FINDINGS: Final = "Findings about the fabric or its data, by kind."
_RINGS: Final = (
    "How often the rings over the ranks of all gangs leave a domain of a tier: now, and fewest."
)
_NODES: Final = "Nodes in the tree (placed), and nodes without a place in it (unplaced)."
_HYPERNODES: Final = "HyperNodes of Toponaut in the cluster; tier 1 is nearest the nodes."
_CONDITION: Final = "1 if the condition of the Fabric object is true, else 0."
_HELD: Final = "Actions of the held plan, which waits for an approval."
_ALWAYS_SHOWN: Final = frozenset(ConditionType) - {ConditionType.OUTPUTS_WRITTEN}
"""The conditions that count as false before the first round; without outputs there is no other."""
_OUTPUTS: Final = "Objects of each output, by state."
_SIZES: Final = "Nodes in a domain."
_CAPACITY: Final = (
    "Capacity that the nodes of a domain offer to jobs: slots, and devices such as nvidia.com/gpu."
)
_USAGE: Final = "Capacity of a domain that is in use."


def _count_outputs(outcome: RoundOutcome) -> Samples:
    return {
        (row.type.value, state): num
        for row in outcome.outputs
        for state, num in (
            ("written", row.objects),
            ("pending", row.pending),
            ("deferred", row.deferred),
            ("refused", row.refused),
        )
    }


def _count_reports(outcome: RoundOutcome) -> Samples:
    kinds = Counter(finding.kind for finding in outcome.findings)
    stale, silent = kinds[FindingKind.STALE_REPORT], kinds[FindingKind.SILENT_NODE]
    return {
        ("fresh",): max(0, outcome.num_reports - stale),
        ("stale",): stale,
        ("refused",): outcome.num_refused_reports,
        ("silent",): silent,
    }


def _count_findings(outcome: RoundOutcome) -> Samples:
    kinds = Counter(finding.kind for finding in outcome.all_findings)
    return {(kind.value,): kinds[kind] for kind in FindingKind}


def _sum_crossings(outcome: RoundOutcome) -> Samples:
    sums = Counter[tuple[str, ...]]()
    for number in range(1, len(outcome.tree.tiers) + 1 if outcome.tree else 1):
        sums[str(number), "now"] = sums[str(number), "fewest"] = 0
    for audit in outcome.gang_ranks.values():
        for number, tier in enumerate(audit.tiers if audit else (), 1):
            sums[str(number), "now"] += tier.now
            sums[str(number), "fewest"] += tier.fewest
    return sums


def _count_nodes(outcome: RoundOutcome) -> Samples:
    tree = outcome.tree
    placed, unplaced = (len(tree.nodes), len(tree.unplaced)) if tree else (0, 0)
    return {("placed",): placed, ("unplaced",): unplaced}


def _count_hypernodes(outcome: RoundOutcome) -> Samples:
    tiers = Counter(
        hypernode.tier for hypernode in outcome.observed_hypernodes if hypernode.is_ours
    )
    return {(str(tier),): num for tier, num in sorted(tiers.items())}


def _sample_conditions(outcome: RoundOutcome) -> Samples:
    status = {condition.type: condition.status for condition in outcome.conditions}
    shown = [kind for kind in ConditionType if kind in _ALWAYS_SHOWN or kind in status]
    return {(kind.value,): float(status.get(kind) == "True") for kind in shown}


def _count_held_writes(outcome: RoundOutcome) -> Samples:
    held = outcome.held
    counts = {
        Op.CREATE: held.creates if held else 0,
        Op.UPDATE: held.updates if held else 0,
        Op.DELETE: held.deletes if held else 0,
    }
    return {(op.value,): num for op, num in counts.items()}


def _sum_domains(snapshot: Snapshot | None) -> tuple[Samples, Samples, Samples]:
    """Return the nodes, capacity and usage of each domain."""
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
        labels = (str(domain.tier), domain.name)
        sizes[labels] = domain.stop - domain.start
        for name, (offered, idle) in columns.items():
            total = float(offered[domain.stop] - offered[domain.start])
            unused = float(idle[domain.stop] - idle[domain.start])
            capacity[*labels, name] = total
            usage[*labels, name] = max(0.0, total - unused)
    return sizes, capacity, usage


def _find_reported_resources(resources: tuple[str, ...]) -> list[str]:
    """Return slots, then device resources: their names have a domain prefix."""
    devices = [name for name in resources if "/" in name]
    return [*(name for name in resources if name == SLOTS), *devices[:MAX_DEVICES]]


def _compute_running_sums(
    snapshot: Snapshot, resource: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return running sums over the nodes of the tree: capacity offered, and capacity free."""
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
