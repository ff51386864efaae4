"""How well the inference did on a made-up fabric, whose true tree is known.

Decides what a fabric's verdict is, which nodes are wrong, and which swaps were named. Pure: who
draws the faults, and where the runs take place, is the command's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final, NamedTuple

from topology.inference.tree_inference import Inference, infer
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Medium, PortName
from topology.model.ids import Id, IdKind
from topology.model.tree import TopologyTree, all_nodes, host_partitions
from topology.synthetic import (
    Damaged,
    FaultKind,
    FaultSpec,
    RandomSource,
    Wiring,
    damage,
    derive_truth,
    inventory,
    report_claims,
    sweep_devices,
)

_TELLING: Final = frozenset(
    {
        FindingKind.UNDECIDABLE,
        FindingKind.NEAR_TIE,
        FindingKind.ISLAND,
        FindingKind.AUX_SWITCH,
        FindingKind.HOST_ON_SPINE,
        FindingKind.TIER_MISMATCH,
        FindingKind.NOT_A_TREE,
    }
)
"""Kinds of findings that doubt the tree. That a cable is missing or exchanged does not."""
_SWAPPED: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})


class Verdict(StrEnum):
    """How a tree compares with the true one; the later, the worse."""

    EXACT = "exact"
    """The same sets of nodes at every tier, and the same nodes in none."""
    FLAGGED = "flagged"
    """Wrong about some nodes; each is listed as unplaced with the reason, or a finding doubts
    where it is."""
    SILENT = "silent"
    """Wrong about some node of which nothing is said."""


class Judgement(NamedTuple):
    """What a tree is worth."""

    verdict: Verdict
    wrong: frozenset[str]
    """Nodes whose domain, at any tier, does not stand for the true one."""
    silent: frozenset[str]
    """Those of which nothing is said."""


class Score(NamedTuple):
    """What one run came to."""

    verdict: Verdict
    num_wrong: int
    """Nodes that are not where they belong, at any tier."""
    num_swaps: int
    """Swaps that can be seen by the fabric's symmetry."""
    num_named: int
    """How many of these a finding names, by one of the four ports at least."""


def claims_of(damaged: Damaged) -> list[Claim]:
    """Return what the inventory, the agents, SNMP walks and a sweep say together."""
    reports = [Claim(row.device, Origin.REPORT) for row in report_claims(damaged)]
    swept = sweep_devices(damaged) if damaged.wiring.spec.medium is Medium.INFINIBAND else []
    return [*_listed_nodes(damaged), *reports, *(Claim(one, Origin.SWEEP) for one in swept)]


def _listed_nodes(damaged: Damaged) -> Iterator[Claim]:
    """Yield the inventory's claims: every host with the ids of its ports."""
    for row in inventory(damaged)["nodes"]:
        ids = [Id(IdKind(one["type"]), one["value"]) for one in row["ids"]]
        ids.append(Id(IdKind.NODE_NAME, row["name"]))
        yield Claim(Device(DeviceKind.HOST, row["name"], tuple(sorted(ids))), Origin.INVENTORY)


def run(wiring: Wiring, faults: FaultSpec, rng: RandomSource) -> Score:
    """Damage a fabric, infer its tree from the claims in a random order, and score that.

    Raises:
        ConfigError: the faults do not fit the fabric.
    """
    damaged = damage(wiring, faults, rng)
    claims = claims_of(damaged)
    return score(damaged, infer(build_fabric(rng.sample(claims, len(claims)))))


def score(damaged: Damaged, found: Inference) -> Score:
    """Compare an inference with the truth of its fabric, and the swaps named with those made."""
    swaps = [
        fault
        for fault in damaged.faults
        if fault.kind is FaultKind.SWAPPED_CABLE and fault.detectable
    ]
    named = {
        port for finding in found.findings if finding.kind in _SWAPPED for port in _ports(finding)
    }
    num_named = sum(not named.isdisjoint(fault.ports) for fault in swaps)
    judged = judge(derive_truth(damaged), found)
    return Score(judged.verdict, len(judged.wrong), len(swaps), num_named)


def _ports(finding: Finding) -> Iterator[PortName]:
    yield PortName(finding.device, finding.port or "")
    yield from finding.ports
    for pair in finding.swap:
        yield from pair


def judge(truth: TopologyTree, found: Inference) -> Judgement:
    """Compare an inference with the true tree. Cost: O(nodes x tiers).

    Tier by tier, the domain that shares most nodes with a true one stands for it; a node that is
    in another, or in one where the truth has none, is wrong. That is told where the tree lists
    the node as unplaced, or where a finding that doubts the tree is about the node, about a
    switch of its domain there, true or found, or about one of the domain below, whose place is
    in question. What was told of one tier is told of those above.
    """
    tree = found.tree
    placed_nowhere = {gone.node for gone in tree.unplaced}
    if (
        host_partitions(truth) == host_partitions(tree)
        and {gone.node for gone in truth.unplaced} == placed_nowhere
    ):
        return Judgement(Verdict.EXACT, frozenset(), frozenset())
    told = _told(found)
    nodes = sorted({*all_nodes(truth), *all_nodes(tree)})
    wrong: set[str] = set()
    silent: set[str] = set()
    warned = placed_nowhere | told
    if any(finding.kind is FindingKind.NOT_A_TREE for finding in found.findings):
        warned.update(nodes)
    below: tuple[_Tier, ...] = ()
    for rank in range(1, max(len(truth.tiers), len(tree.tiers)) + 1):
        right, seen = _tier(truth, rank), _tier(tree, rank)
        misplaced = _misplaced(nodes, right, seen)
        wrong |= misplaced
        here = _others(right, seen), _others(seen, right)
        warned |= {node for node in misplaced if _is_doubted(node, (*here, *below), told)}
        silent |= misplaced - warned
        below = right, seen
    forgotten = set(nodes).difference(all_nodes(tree))
    wrong |= forgotten
    silent |= forgotten - warned
    wrong |= placed_nowhere - {gone.node for gone in truth.unplaced}
    verdict = Verdict.SILENT if silent else Verdict.FLAGGED
    return Judgement(verdict, frozenset(wrong), frozenset(silent))


def _told(found: Inference) -> set[str]:
    """Return the devices that findings of a doubtful tree are about.

    Ports that a finding lists with their names are evidence: a host between two leaf groups says
    nothing against the other hosts there.
    """
    told: set[str] = set()
    for finding in found.findings:
        if finding.kind in _TELLING:
            told.add(finding.device)
            told.update(end.device for end in finding.ports if not end.port)
    return told


class _Tier(NamedTuple):
    """The domains of one tier."""

    homes: Mapping[str, int]
    """Per node the index of its domain."""
    switches: tuple[tuple[str, ...], ...]
    """Per domain."""


def _tier(tree: TopologyTree, rank: int) -> _Tier:
    domains = [domain for domain in tree.domains if domain.tier == rank]
    return _Tier(
        {node: at for at, domain in enumerate(domains) for node in tree.nodes_of(domain)},
        tuple(domain.switches for domain in domains),
    )


def _others(tier: _Tier, against: _Tier) -> _Tier:
    """Return a tier without its switches where it is one domain, and not the question itself.

    A finding about a switch above all nodes would tell of them all. It does when the other tree
    has no such tier.
    """
    return tier if len(tier.switches) > 1 or not against.switches else _Tier(tier.homes, ((),))


def _misplaced(nodes: Iterable[str], right: _Tier, seen: _Tier) -> set[str]:
    """Return the nodes whose domain does not stand for the true one."""
    match = _match(right, seen)
    found = set()
    for node in nodes:
        home = right.homes.get(node)
        if (None if home is None else match.get(home, -1)) != seen.homes.get(node):
            found.add(node)
    return found


def _match(right: _Tier, seen: _Tier) -> dict[int, int]:
    """Return which domain stands for which true one: those that share most nodes do."""
    both = right.homes.keys() & seen.homes.keys()
    shared = Counter((right.homes[node], seen.homes[node]) for node in both)
    match: dict[int, int] = {}
    taken: set[int] = set()
    for (at, other), _ in sorted(shared.items(), key=lambda row: (-row[1], row[0])):
        if at not in match and other not in taken:
            match[at] = other
            taken.add(other)
    return match


def _is_doubted(node: str, tiers: Iterable[_Tier], told: AbstractSet[str]) -> bool:
    """Return whether a finding is about a switch of one of the node's domains."""
    homes = ((tier, tier.homes.get(node)) for tier in tiers)
    return any(
        home is not None and not told.isdisjoint(tier.switches[home]) for tier, home in homes
    )
