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

from topology.inference.tree_inference import Inference, infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.model.facts import Device, DeviceKind, Finding, FindingKind, Medium, PortName
from topology.model.ids import Id, IdKind
from topology.model.tree import TopologyTree, all_nodes, host_partitions
from topology.synthetic import (
    DamagedFabric,
    FaultKind,
    FaultSpec,
    RandomSource,
    Wiring,
    damage_fabric,
    derive_truth,
    render_inventory,
    report_claims,
    sweep_devices,
)

_DOUBT_KINDS: Final = frozenset(
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
_SWAP_KINDS: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})


class TreeVerdict(StrEnum):
    """How a tree compares with the true one; the later, the worse."""

    EXACT = "exact"
    """The same sets of nodes at every tier, and the same nodes in none."""
    FLAGGED = "flagged"
    """Wrong about some nodes; each is listed as unplaced with the reason, or a finding doubts
    where it is."""
    SILENT = "silent"
    """Wrong about some node of which nothing is said."""


class TreeJudgement(NamedTuple):
    """What a tree is worth."""

    verdict: TreeVerdict
    wrong_nodes: frozenset[str]
    """Nodes whose domain, at any tier, does not stand for the true one."""
    unflagged_nodes: frozenset[str]
    """Those of which nothing is said."""


class RunScore(NamedTuple):
    """What one run came to."""

    verdict: TreeVerdict
    num_wrong: int
    """Nodes that are not where they belong, at any tier."""
    num_swaps: int
    """Swaps that can be seen by the fabric's symmetry."""
    num_named: int
    """How many of these a finding names, by one of the four ports at least."""


def collect_claims(damaged: DamagedFabric) -> list[Claim]:
    """Return what the inventory, the agents, SNMP walks and a sweep say together."""
    reports = [Claim(row.device, Origin.REPORT) for row in report_claims(damaged)]
    swept = sweep_devices(damaged) if damaged.wiring.spec.medium is Medium.INFINIBAND else []
    return [*_collect_listed_nodes(damaged), *reports, *(Claim(one, Origin.SWEEP) for one in swept)]


def _collect_listed_nodes(damaged: DamagedFabric) -> Iterator[Claim]:
    """Yield the inventory's claims: every host with the ids of its ports."""
    for row in render_inventory(damaged)["nodes"]:
        ids = [Id(IdKind(one["type"]), one["value"]) for one in row["ids"]]
        ids.append(Id(IdKind.NODE_NAME, row["name"]))
        yield Claim(Device(DeviceKind.HOST, row["name"], tuple(sorted(ids))), Origin.INVENTORY)


def run_scenario(wiring: Wiring, faults: FaultSpec, rng: RandomSource) -> RunScore:
    """Damage a fabric, infer its tree from the claims in a random order, and score that.

    Raises:
        ConfigError: the faults do not fit the fabric.
    """
    damaged = damage_fabric(wiring, faults, rng)
    claims = collect_claims(damaged)
    return score_inference(damaged, infer_tree(build_fabric(rng.sample(claims, len(claims)))))


def score_inference(damaged: DamagedFabric, found: Inference) -> RunScore:
    """Compare an inference with the truth of its fabric, and the swaps named with those made."""
    swaps = [
        fault
        for fault in damaged.faults
        if fault.kind is FaultKind.SWAPPED_CABLE and fault.is_detectable
    ]
    named = {
        port
        for finding in found.findings
        if finding.kind in _SWAP_KINDS
        for port in _find_evidence_ports(finding)
    }
    num_named = sum(not named.isdisjoint(fault.ports) for fault in swaps)
    judged = judge_tree(derive_truth(damaged), found)
    return RunScore(judged.verdict, len(judged.wrong_nodes), len(swaps), num_named)


def _find_evidence_ports(finding: Finding) -> Iterator[PortName]:
    yield PortName(finding.device, finding.port or "")
    yield from finding.ports
    for pair in finding.swap:
        yield from pair


def judge_tree(truth: TopologyTree, found: Inference) -> TreeJudgement:
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
        return TreeJudgement(TreeVerdict.EXACT, frozenset(), frozenset())
    told = _find_flagged_devices(found)
    nodes = sorted({*all_nodes(truth), *all_nodes(tree)})
    wrong: set[str] = set()
    silent: set[str] = set()
    warned = placed_nowhere | told
    if any(finding.kind is FindingKind.NOT_A_TREE for finding in found.findings):
        warned.update(nodes)
    below: tuple[_TierDomains, ...] = ()
    for rank in range(1, max(len(truth.tiers), len(tree.tiers)) + 1):
        right, seen = _build_tier(truth, rank), _build_tier(tree, rank)
        misplaced = _find_misplaced(nodes, right, seen)
        wrong |= misplaced
        here = _drop_common_switches(right, seen), _drop_common_switches(seen, right)
        warned |= {node for node in misplaced if _is_flagged(node, (*here, *below), told)}
        silent |= misplaced - warned
        below = right, seen
    forgotten = set(nodes).difference(all_nodes(tree))
    wrong |= forgotten
    silent |= forgotten - warned
    wrong |= placed_nowhere - {gone.node for gone in truth.unplaced}
    verdict = TreeVerdict.SILENT if silent else TreeVerdict.FLAGGED
    return TreeJudgement(verdict, frozenset(wrong), frozenset(silent))


def _find_flagged_devices(found: Inference) -> set[str]:
    """Return the devices that findings of a doubtful tree are about.

    Ports that a finding lists with their names are evidence: a host between two leaf groups says
    nothing against the other hosts there.
    """
    told: set[str] = set()
    for finding in found.findings:
        if finding.kind in _DOUBT_KINDS:
            told.add(finding.device)
            told.update(end.device for end in finding.ports if not end.port)
    return told


class _TierDomains(NamedTuple):
    """The domains of one tier."""

    domain_of_node: Mapping[str, int]
    """Per node the index of its domain."""
    switches: tuple[tuple[str, ...], ...]
    """Per domain."""


def _build_tier(tree: TopologyTree, rank: int) -> _TierDomains:
    domains = [domain for domain in tree.domains if domain.tier == rank]
    return _TierDomains(
        {node: at for at, domain in enumerate(domains) for node in tree.nodes_of(domain)},
        tuple(domain.switches for domain in domains),
    )


def _drop_common_switches(tier: _TierDomains, against: _TierDomains) -> _TierDomains:
    """Return a tier without its switches where it is one domain, and not the question itself.

    A finding about a switch above all nodes would tell of them all. It does when the other tree
    has no such tier.
    """
    return (
        tier
        if len(tier.switches) > 1 or not against.switches
        else _TierDomains(tier.domain_of_node, ((),))
    )


def _find_misplaced(nodes: Iterable[str], right: _TierDomains, seen: _TierDomains) -> set[str]:
    """Return the nodes whose domain does not stand for the true one."""
    match = _match_domains(right, seen)
    found = set()
    for node in nodes:
        home = right.domain_of_node.get(node)
        if (None if home is None else match.get(home, -1)) != seen.domain_of_node.get(node):
            found.add(node)
    return found


def _match_domains(right: _TierDomains, seen: _TierDomains) -> dict[int, int]:
    """Return which domain stands for which true one: those that share most nodes do."""
    both = right.domain_of_node.keys() & seen.domain_of_node.keys()
    shared = Counter((right.domain_of_node[node], seen.domain_of_node[node]) for node in both)
    match: dict[int, int] = {}
    taken: set[int] = set()
    for (at, other), _ in sorted(shared.items(), key=lambda row: (-row[1], row[0])):
        if at not in match and other not in taken:
            match[at] = other
            taken.add(other)
    return match


def _is_flagged(node: str, tiers: Iterable[_TierDomains], told: AbstractSet[str]) -> bool:
    """Return whether a finding is about a switch of one of the node's domains."""
    homes = ((tier, tier.domain_of_node.get(node)) for tier in tiers)
    return any(
        home is not None and not told.isdisjoint(tier.switches[home]) for tier, home in homes
    )
