"""The tree of the cables compared with a second witness: labels or HyperNodes. Pure.

Names need not agree. Each tier of the witness is compared with the tier of the cables that it
agrees with most, and each of its domains with the domain in which most of its nodes are. A witness
may be finer or coarser than the cables; only contradictions count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from topology.model.ids import natural_key
from topology.model.tree import TopologyTree

_MIN_SHARE: Final = 0.5
"""Two tiers are compared node by node if more than this share of the nodes agrees."""
_EQUAL_SHARE: Final = 0.9
"""From this share on, two tiers count as equally fine, so a domain of its own is a difference."""


class Witness(StrEnum):
    """What the cables are compared with."""

    LABELS = "labels"
    HYPERNODES = "hypernodes"


class WitnessKind(StrEnum):
    """How a node differs."""

    OTHER_DOMAIN = "other-domain"
    """Most nodes of its domain are elsewhere by their cables."""
    NOT_IN_WITNESS = "not-in-witness"
    """The cables of the node place it, and the witness does not."""
    NOT_IN_CABLES = "not-in-cables"
    """The witness places it, and its cables do not."""
    OTHER_TIER = "other-tier"
    """A whole tier of the witness agrees with no tier of the cables."""


class WitnessRow(NamedTuple):
    """One difference. Names are foreign: escape them."""

    kind: WitnessKind
    node: str
    """The node, or the tier."""
    tier: str = ""
    """The tier of the witness, finest first."""
    witness: str = ""
    """The node's domain by the witness."""
    witness_most: str = ""
    """The domain by the cables in which most nodes of that domain are."""
    cables: str = ""
    """The node's domain by its cables."""
    cables_most: str = ""
    """The domain by the witness in which most nodes of that domain are: the likely right one."""
    reason: str = ""
    """Why a node is unplaced."""


class WitnessDiff(NamedTuple):
    """All differences, and how many nodes agree."""

    rows: tuple[WitnessRow, ...]
    num_agreed: int


Domains = Mapping[str, str]
"""The domain of each node in one tier."""


def compare_witness(cables: TopologyTree, witness: TopologyTree) -> WitnessDiff:
    """Return how a witness differs from the cables, each node once, at its finest tier.

    Cost: O(nodes · tiers of one · tiers of the other).
    """
    cable_tiers = list(_list_tiers(cables).values())
    common = set(cables.nodes) & set(witness.nodes)
    found: dict[str, WitnessRow] = {}
    tier_rows = []
    for tier, domains in _list_tiers(witness).items():
        level = _match_tier(_restrict(domains, common), cable_tiers)
        if level is None:
            if common:
                tier_rows.append(WitnessRow(WitnessKind.OTHER_TIER, node=tier, tier=tier))
            continue
        for row in _find_other_domains(tier, level):
            found.setdefault(row.node, row)  # the lowest tier comes first, so the finest stays
    rows = [*tier_rows, *found.values(), *_find_one_sided(cables, witness)]
    order = list(WitnessKind)
    rows.sort(key=lambda row: (order.index(row.kind), natural_key(row.node)))
    return WitnessDiff(tuple(rows), len(common) - len(found))


class _Level(NamedTuple):
    """One tier of the witness, beside the tier of the cables that agrees most."""

    witness: Domains
    cables: Domains
    cables_of: Mapping[str, str]
    """By domain of the witness: the domain of the cables with most of its nodes."""
    witness_of: Mapping[str, str]
    """By domain of the cables: the domain of the witness with most of its nodes."""
    nests: float
    """Share of the nodes that are where most nodes of their domain of the witness are."""
    holds: float
    """Share of the nodes that are where most nodes of their domain of the cables are."""


def _list_tiers(tree: TopologyTree) -> dict[str, dict[str, str]]:
    """Return the domain of each node by tier, lowest tier first."""
    tiers: dict[str, dict[str, str]] = {tier: {} for tier in tree.tiers}
    for domain in tree.domains:
        row = tiers[tree.tiers[domain.tier - 1]]
        for node in tree.nodes_of(domain):
            row[node] = domain.name
    return tiers


def _restrict(domains: Domains, nodes: set[str]) -> dict[str, str]:
    return {node: name for node, name in domains.items() if node in nodes}


def _match_tier(witness: Domains, cable_tiers: Sequence[Domains]) -> _Level | None:
    """Return the level with the tier of the cables that agrees most; the lowest of equal ones."""
    levels = [_build_level(witness, cables) for cables in cable_tiers]
    best = max(levels, key=lambda level: level.nests + level.holds, default=None)
    if best is None or max(best.nests, best.holds) <= _MIN_SHARE:
        return None
    return best


def _build_level(witness: Domains, cables: Domains) -> _Level:
    nodes = [node for node in witness if node in cables]
    pairs = Counter((witness[node], cables[node]) for node in nodes)
    cables_of = _find_most(pairs)
    witness_of = _find_most(Counter({(below, above): num for (above, below), num in pairs.items()}))
    nests = sum(cables_of[witness[node]] == cables[node] for node in nodes)
    holds = sum(witness_of[cables[node]] == witness[node] for node in nodes)
    size = max(len(nodes), 1)
    return _Level(witness, cables, cables_of, witness_of, nests / size, holds / size)


def _find_most(pairs: Counter[tuple[str, str]]) -> dict[str, str]:
    """Return the partner with the most nodes of each first name; the first of equal ones."""
    ordered = sorted(pairs.items(), key=lambda row: (-row[1], natural_key(row[0][1])))
    most: dict[str, str] = {}
    for (name, partner), _ in ordered:
        most.setdefault(name, partner)
    return most


def _find_other_domains(tier: str, level: _Level) -> Iterator[WitnessRow]:
    """Yield the nodes that contradict the witness's domain.

    If the witness is finer than the cables, a domain of the cables holds several of its domains,
    which is no contradiction; if it is coarser, the reverse.
    """
    is_finer, is_coarser = level.nests >= level.holds, level.holds > level.nests
    must_nest = is_finer or level.nests >= _EQUAL_SHARE
    must_hold = is_coarser or level.holds >= _EQUAL_SHARE
    for node, name in level.witness.items():
        cables = level.cables.get(node)
        if cables is None:
            continue
        is_nested = level.cables_of[name] == cables
        is_held = level.witness_of[cables] == name
        if (must_nest and not is_nested) or (must_hold and not is_held):
            yield WitnessRow(
                WitnessKind.OTHER_DOMAIN,
                node,
                tier,
                name,
                level.cables_of[name],
                cables,
                level.witness_of[cables],
            )


def _find_one_sided(cables: TopologyTree, witness: TopologyTree) -> Iterator[WitnessRow]:
    reasons = {row.node: row.reason for row in witness.unplaced}
    for node in set(cables.nodes) - set(witness.nodes):
        reason = reasons.get(node, "it is not listed")
        yield WitnessRow(WitnessKind.NOT_IN_WITNESS, node, reason=reason)
    reasons = {row.node: row.reason for row in cables.unplaced}
    for node in set(witness.nodes) - set(cables.nodes):
        reason = reasons.get(node, "no cable of it is known")
        yield WitnessRow(WitnessKind.NOT_IN_CABLES, node, reason=reason)
