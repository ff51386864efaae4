"""HyperNodes of others as Toponaut takes them over: with its label, and exact members only. Pure.

Taking one over changes no membership: a pattern or a label becomes the list of the nodes that it
selects now. So a set that is valid before is valid after every single take-over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from generator.outputs.hypernode.lint import is_usable_name, resolve_selectors
from generator.outputs.hypernode.model import (
    OWN_LABELS,
    PLACEHOLDER,
    SOURCE_LABEL,
    HyperNode,
    Member,
    MemberType,
)
from generator.outputs.hypernode.selectors import Labels
from topology.model.errors import show
from topology.model.ids import natural_key

_DISCOVERY: Final = frozenset({"ufm", "label", "roce"})
"""Sources of Volcano's own discovery, which writes its HyperNodes again in every round."""
_HASH: Final = re.compile(r"-pad[0-9]+(-[0-9a-f]{10})?\Z")


class Adoption(NamedTuple):
    """HyperNodes before and after they are taken over."""

    taken: tuple[HyperNode, ...] = ()
    """The HyperNodes as they are, in natural order of tiers and names."""
    claimed: tuple[HyperNode, ...] = ()
    """The same, as Toponaut's."""
    problems: tuple[str, ...] = ()
    """One line per HyperNode that stays foreign, escaped."""


def adopt_hypernodes(observed: Iterable[HyperNode], nodes: Mapping[str, Labels] | None) -> Adoption:
    """Return the HyperNodes of others that can be taken over.

    Args:
        observed: HyperNodes of any owner.
        nodes: the labels of each node of the cluster; None if the nodes are unknown.
    """
    taken, problems = [], []
    foreign = [row for row in observed if not row.is_ours]
    for row in sorted(foreign, key=lambda row: (row.tier, natural_key(row.name))):
        reason = _find_refusal(row, nodes)
        if reason:
            problems.append(f"{show(row.name)}: {reason}")
        else:
            taken.append(row)
    claimed = tuple(_claim(row, nodes or {}) for row in taken)
    return Adoption(tuple(taken), claimed, tuple(problems))


def select_named(claimed: Sequence[HyperNode]) -> tuple[HyperNode, ...]:
    """Return the HyperNodes whose names Toponaut may give to domains, from tier 1 up."""
    raised = 1 if any(not row.tier for row in claimed) else 0
    return tuple(
        replace(row, tier=row.tier + raised, tier_name="")
        for row in claimed
        if is_usable_name(row.name) and not _HASH.search(row.name)
    )


def _find_refusal(hypernode: HyperNode, nodes: Mapping[str, Labels] | None) -> str:
    source = dict(hypernode.labels).get(SOURCE_LABEL)
    if hypernode.is_unreadable:
        return "stays as it is: it cannot be read"
    if source in _DISCOVERY:
        return f"stays as it is: disable the source {source} of Volcano's discovery first"
    if nodes is None and any(not row.is_child for row in hypernode.selectors):
        return "stays as it is: give the nodes (--nodes) to see what its patterns select"
    return ""


def _claim(hypernode: HyperNode, nodes: Mapping[str, Labels]) -> HyperNode:
    resolved = resolve_selectors(hypernode, nodes)
    members = resolved.members or (Member(MemberType.NODE, PLACEHOLDER),)
    return replace(resolved, members=members, labels=OWN_LABELS)
