"""The names of a domain in outputs: its own name, its label values, and its name for Slurm.

An output writes another name where its consumer cannot hold the name of the domain, or would sort
it wrongly: `leaf-g01-r1-4` is `leaf-g0001-r0001-0004` in a label.
"""

from __future__ import annotations

from collections.abc import Mapping

from generator.outputs.node_labels import list_domain_values
from generator.outputs.slurm import list_renamed_domains
from topology.model.tree import TopologyTree


def list_other_names(tree: TopologyTree) -> Mapping[str, tuple[str, ...]]:
    """Return the names of each domain in outputs that differ from its own.

    Cost: O(nodes x tiers).
    """
    values, renamed = list_domain_values(tree), dict(list_renamed_domains(tree))
    others: dict[str, tuple[str, ...]] = {}
    for domain in tree.domains:
        name = domain.name
        written = dict.fromkeys((*values.get(name, ()), renamed.get(name, name)))
        others[name] = tuple(other for other in written if other != name)
    return others


def find_domain(tree: TopologyTree, name: str) -> int | None:
    """Return the index of the domain with a name, its own or one in outputs; None without one.

    The domain's own name comes first. Cost: as `list_other_names`.
    """
    own = next((index for index, row in enumerate(tree.domains) if row.name == name), None)
    if own is not None:
        return own
    others = list_other_names(tree)
    return next((at for at, row in enumerate(tree.domains) if name in others[row.name]), None)
