"""Say for each domain whether it was chosen, rejected or too small, and how many slots are missing.

Two tiers are shown: the tier of the chosen domain, and the tier below it, which shows why the job
is not placed closer. At most `MAX_SHOWN_DOMAINS` domains of each tier are listed, the nearest
misses first; one line counts the rest.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

import numpy as np

from generator.placement.answer import DomainVerdict, VerdictKind
from generator.placement.cluster.levels import IntArray
from generator.placement.presets import ObjectiveKey
from generator.placement.problem.problem import Problem
from generator.placement.quantities import render_quantity
from generator.placement.solve.candidate import PlacementCandidate
from topology.model.errors import list_some, show

MAX_SHOWN_DOMAINS = 16
MAX_SHOWN_RESOURCES = 12
SLOTS: Final = "slots"


def judge_domains(
    problem: Problem, tier: int, candidate: PlacementCandidate | None
) -> tuple[DomainVerdict, ...]:
    """Return the verdicts for the domains of a tier, and of the tier below it.

    Args:
        problem: the request and the cluster.
        tier: the tier of the chosen domain, or the highest allowed tier if there is none.
        candidate: the placement; None if there is none.
    """
    chosen = -1
    num_pods = sum(group.least for group in problem.request.groups)
    if candidate is not None:
        start = candidate.objective.values[ObjectiveKey.NAMES][0]
        chosen = int(problem.snapshot.levels.unit_of_node[tier][start])
        num_pods = candidate.objective.values[ObjectiveKey.PLACED][0]
    shortage = find_shortage(problem) if candidate is None else ""
    rows = _judge_tier(problem, tier, chosen, num_pods, shortage)
    if tier > 1:
        rows += _judge_tier(problem, tier - 1, -1, num_pods, shortage)
    return tuple(rows)


def find_shortage(problem: Problem) -> str:
    """Return the resource that no node lists as a pod needs it; empty if there is none.

    A node that lists no slots is one slot, which its first pod with devices takes. So a request in
    slots rarely fits nodes that list other resources, and the answer says what they list.

    Cost: O(nodes × resources).
    """
    snapshot = problem.snapshot
    listed = sorted({name for spec in snapshot.specs for name in spec.capacity} - {SLOTS})
    offered = list_some(map(show, listed), MAX_SHOWN_RESOURCES)
    for name, need in chain.from_iterable(group.request for group in problem.request.groups):
        largest = max(snapshot.quantities(name, counts_free=False), default=0)
        if name == SLOTS and listed and largest <= 1 and need:
            return f"nodes list no slots, and an unused node counts as one; they list {offered}"
        if largest < need and not largest:
            return f"no node lists {show(name)}; nodes list {offered or SLOTS}"
        if largest < need:
            needed, most = render_quantity(name, need), render_quantity(name, int(largest))
            return f"a pod needs {needed} {show(name)}, and the largest node lists {most}"
    return ""


def _judge_tier(
    problem: Problem, tier: int, chosen: int, num_pods: int, shortage: str
) -> list[DomainVerdict]:
    slots = problem.shapes[problem.scarcest_shape].slots_by_tier[tier]
    rank = np.arange(len(slots)) - np.minimum(slots, num_pods) * len(slots)
    nearest = np.argpartition(rank, min(MAX_SHOWN_DOMAINS, len(rank) - 1))[: MAX_SHOWN_DOMAINS + 1]
    nearest_first = nearest[np.argsort(rank[nearest])]
    order = [chosen, *(int(unit) for unit in nearest_first if unit != chosen)]
    shown = [unit for unit in order if unit >= 0][:MAX_SHOWN_DOMAINS]
    rows = [
        _judge_domain(problem, tier, unit, slots, (chosen, num_pods, shortage)) for unit in shown
    ]
    if len(slots) > len(shown):
        hidden_slots = np.delete(slots, shown)
        rows.append(
            DomainVerdict(
                f"{len(hidden_slots)} more",
                VerdictKind.INFEASIBLE if chosen < 0 else VerdictKind.REJECTED,
                f"{int(hidden_slots.min())} to {int(hidden_slots.max())} slots for {num_pods} pods",
            )
        )
    return rows


def _judge_domain(
    problem: Problem,
    tier: int,
    unit: int,
    slots: IntArray,
    chosen_pods_and_shortage: tuple[int, int, str],
) -> DomainVerdict:
    chosen, num_pods, shortage = chosen_pods_and_shortage
    name, num_slots = unit_name(problem, tier, unit), int(slots[unit])
    if unit == chosen:
        return DomainVerdict(name, VerdictKind.CHOSEN, f"{num_pods} of {num_slots} slots")
    if num_slots < num_pods:
        short = num_pods - num_slots
        more = shortage or f"needs {short} more"
        needs = f"{name}: {num_slots} of {num_pods} slots; {more}"
        return DomainVerdict(name, VerdictKind.INFEASIBLE, needs)
    if chosen < 0:
        needs = (
            f"{name}: {num_slots} slots for {num_pods} pods, but no placement in it meets the "
            "other constraints"
        )
        return DomainVerdict(name, VerdictKind.INFEASIBLE, needs)
    needs = f"{name}: {num_slots} slots for {num_pods} pods; ranks below the chosen domain"
    return DomainVerdict(name, VerdictKind.REJECTED, needs)


def unit_name(problem: Problem, tier: int, unit: int) -> str:
    """Return the name of a unit: its domain, its node, or `cluster`."""
    levels, snapshot = problem.snapshot.levels, problem.snapshot
    if tier == levels.root:
        return levels.tiers[tier]
    start, stop = int(levels.starts[tier][unit]), int(levels.stops[tier][unit])
    for inner_tier in range(tier, 0, -1):
        inner_unit = int(levels.unit_of_node[inner_tier][start])
        if (
            levels.domain_of_unit[inner_tier][inner_unit] >= 0
            and int(levels.stops[inner_tier][inner_unit]) == stop
        ):
            return show(
                snapshot.tree.domains[int(levels.domain_of_unit[inner_tier][inner_unit])].name
            )
    return show(snapshot.specs[start].name)
