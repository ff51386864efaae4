"""Which HyperNodes each node is in, on every tier: what a plan is judged by. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from generator.outputs.hypernode import HyperNode
from generator.reconcile.plan import Action

NodeDomains = Mapping[str, frozenset[str]]
"""By node the names of all domains that it is in."""


def find_node_domains(hypernodes: Mapping[str, HyperNode]) -> NodeDomains:
    """Return by node the names of all domains that it is in, padding left out.

    Cost: O(nodes times tiers).
    """
    parents: dict[str, list[str]] = {}
    for found in hypernodes.values():
        for child in found.children:
            parents.setdefault(child, []).append(found.name)
    homes: dict[str, frozenset[str]] = {}
    for found in hypernodes.values():
        if not found.nodes:
            continue
        above = frozenset(
            name
            for name in _iterate_ancestors(found.name, parents)
            if not hypernodes[name].is_padding
        )
        for node in found.nodes:
            homes[node] = homes[node] | above if node in homes else above
    return homes


def simulate_plan(
    before: Mapping[str, HyperNode], actions: Iterable[Action]
) -> Mapping[str, HyperNode]:
    """Return what exists of ours when the plan is done."""
    after = dict(before)
    for action in actions:
        if action.object is None:
            after.pop(action.name, None)
        else:
            after[action.name] = action.object
    return after


def _iterate_ancestors(name: str, parents: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Yield a HyperNode and all above it; what is observed may have cycles and two parents."""
    seen, stack = {name}, [name]
    while stack:
        one = stack.pop()
        yield one
        fresh = [parent for parent in parents.get(one, ()) if parent not in seen]
        seen.update(fresh)
        stack += fresh
