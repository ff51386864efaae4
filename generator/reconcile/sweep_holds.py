"""Whether a plan depends on a sweep that is in doubt, and is held for that. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from generator.ingest.inputs import DoubtKind, SweepDoubt
from generator.reconcile.guard import HoldKind, HoldReason
from generator.reconcile.tree_decision import NodeDomains, TreeDecision, find_node_domains
from topology.model.errors import list_some, show
from topology.model.ids import natural_key, short_name

_MAX_SHOWN: Final = 5


def find_sweep_holds(
    doubts: Sequence[SweepDoubt], decision: TreeDecision
) -> tuple[HoldReason, ...]:
    """Return a reason to hold the plan for each doubt that it depends on.

    Two sweeps that disagree hold what would change the domains of a node in question. A sweep that
    nobody confirms holds what takes a node out of a domain: it may add nodes. Cost: O(nodes times
    tiers) if there is any doubt.

    Args:
        doubts: what speaks against the sweeps that the plan follows from.
        decision: the step of the plan, from the tree that was decided last.
    """
    if not doubts or decision.is_restoration:
        return ()
    domains, domains_after = find_node_domains(decision.last), find_node_domains(decision.desired)
    changed = [
        node
        for node in domains.keys() | domains_after.keys()
        if domains.get(node) != domains_after.get(node)
    ]
    holds = []
    for doubt in doubts:
        nodes = _select_nodes(doubt, changed, domains, domains_after)
        if nodes:
            shown = list_some(map(show, sorted(nodes, key=natural_key)), _MAX_SHOWN)
            message = f"{doubt.message}; the plan would move {shown}"
            holds.append(HoldReason(HoldKind(doubt.kind.value), message))
    return tuple(holds)


def _select_nodes(
    doubt: SweepDoubt, changed: Collection[str], before: NodeDomains, after: NodeDomains
) -> list[str]:
    """Return the nodes of a plan that a doubt is about."""
    if doubt.kind is DoubtKind.SWEEP_UNCONFIRMED:
        nothing: frozenset[str] = frozenset()
        return [
            node for node in changed if not before.get(node, nothing) <= after.get(node, nothing)
        ]
    if doubt.nodes is None:
        return list(changed)
    names = {short_name(node) for node in doubt.nodes}
    return [node for node in changed if short_name(node) in names]
