"""The domains of each node on every tier, before and after a plan. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from generator.outputs.hypernode import HyperNode
from generator.reconcile.plan import Action

NodeDomains = Mapping[str, frozenset[str]]
"""By node name the names of all domains that contain the node."""


def find_node_domains(hypernodes: Mapping[str, HyperNode]) -> NodeDomains:
    """Return by node the names of all domains that contain it, without padding.

    Cost: O(nodes times tiers).
    """
    chains = find_domain_chains(hypernodes)
    return {
        node: domains[0] if len(domains) == 1 else frozenset().union(*domains)
        for node, domains in chains.items()
    }


def find_domain_chains(
    hypernodes: Mapping[str, HyperNode],
) -> Mapping[str, Sequence[frozenset[str]]]:
    """Return by node the domains above each HyperNode that lists it, without padding.

    Cost: O(nodes times tiers).
    """
    parents: dict[str, list[str]] = {}
    for hypernode in hypernodes.values():
        for child in hypernode.children:
            parents.setdefault(child, []).append(hypernode.name)
    chains: dict[str, list[frozenset[str]]] = {}
    for hypernode in hypernodes.values():
        if not hypernode.nodes:
            continue
        above = frozenset(
            name
            for name in _iterate_ancestors(hypernode.name, parents)
            if not hypernodes[name].is_padding
        )
        for node in hypernode.nodes:
            chains.setdefault(node, []).append(above)
    return chains


def simulate_plan(
    before: Mapping[str, HyperNode], actions: Iterable[Action]
) -> Mapping[str, HyperNode]:
    """Return our HyperNodes by name as they are after the plan."""
    after = dict(before)
    for action in actions:
        if action.object is None:
            after.pop(action.name, None)
        else:
            after[action.name] = action.object
    return after


def _iterate_ancestors(name: str, parents: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield a HyperNode and its ancestors, each once.

    Observed HyperNodes may form cycles, and may have more than one parent.
    """
    seen, stack = {name}, [name]
    while stack:
        current = stack.pop()
        yield current
        fresh = [parent for parent in parents.get(current, ()) if parent not in seen]
        seen.update(fresh)
        stack += fresh
