"""Compares the inferred tree of a synthetic fabric with its true tree.

Decides the verdict of a tree, its wrong nodes, and the swaps that findings name. Pure: the random
source is an argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import Final, NamedTuple

from tests.topology.compute_trees import infer_compute_tree
from tests.verify.sources import SourceMix, collect_sources, derive_visible_truth
from topology.inference.tree_inference import Inference
from topology.join.fabric_join import build_fabric
from topology.model.facts import Finding, FindingKind, PortName
from topology.model.tree import TopologyTree, host_partitions
from topology.synthetic import (
    DamagedFabric,
    FaultKind,
    FaultSpec,
    RandomSource,
    Wiring,
    damage_fabric,
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
"""Kinds of findings that question the tree. A missing or swapped cable does not."""
_SWAP_KINDS: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})


class TreeVerdict(StrEnum):
    """How a tree compares with the true tree, from best to worst."""

    EXACT = "exact"
    """The same sets of nodes at every tier, and the same unplaced nodes."""
    FLAGGED = "flagged"
    """Wrong for some nodes. Each is unplaced with a reason, or a finding questions its place."""
    SILENT = "silent"
    """Wrong for some node without a reason or a finding."""


class TreeJudgement(NamedTuple):
    """The comparison of a tree with the true tree."""

    verdict: TreeVerdict
    wrong_nodes: frozenset[str]
    """Nodes whose domain, at any tier, does not match the true domain."""
    unflagged_nodes: frozenset[str]
    """Wrong nodes without a reason or a finding."""


class RunScore(NamedTuple):
    """The score of one run."""

    verdict: TreeVerdict
    num_wrong: int
    """Nodes in a wrong domain, at any tier."""
    num_swaps: int
    """Swaps that are detectable by the symmetry of the fabric."""
    num_named: int
    """Detectable swaps that a finding names, by at least one of the four ports."""


def run_scenario(
    wiring: Wiring, faults: FaultSpec, rng: RandomSource, *, mix: SourceMix
) -> RunScore:
    """Damage a fabric, infer its tree from sources in a random order, and score the result.

    Raises:
        ConfigError: the faults do not fit the fabric.
    """
    damaged = damage_fabric(wiring, faults, rng)
    claims = collect_sources(damaged, mix)
    inference = infer_compute_tree(build_fabric(rng.sample(claims, len(claims))))
    return score_inference(damaged, inference, derive_visible_truth(damaged, mix))


def score_inference(damaged: DamagedFabric, inference: Inference, truth: TopologyTree) -> RunScore:
    """Compare an inference with the true tree, and the swaps that it names with the real swaps."""
    swaps = [
        fault
        for fault in damaged.faults
        if fault.kind is FaultKind.SWAPPED_CABLE and fault.is_detectable
    ]
    named_ports = {
        port
        for finding in inference.findings
        if finding.kind in _SWAP_KINDS
        for port in _find_evidence_ports(finding)
    }
    num_named = sum(not named_ports.isdisjoint(fault.ports) for fault in swaps)
    judgement = judge_tree(truth, inference)
    return RunScore(judgement.verdict, len(judgement.wrong_nodes), len(swaps), num_named)


def _find_evidence_ports(finding: Finding) -> Iterator[PortName]:
    yield PortName(finding.device, finding.port or "")
    yield from finding.ports
    for pair in finding.swap:
        yield from pair


def judge_tree(truth: TopologyTree, inference: Inference) -> TreeJudgement:
    """Compare an inference with the true tree. Cost: O(nodes x tiers).

    At each tier, the domain that shares most nodes with a true domain matches it. A node in another
    domain, or in a domain where the true tree has none, is wrong. A wrong node is flagged if the
    tree lists it as unplaced, or if a finding that questions the tree names the node, a switch of
    its true or inferred domain, or a switch of its domain one tier below. A node that is flagged
    at one tier is flagged at all higher tiers.
    """
    tree = inference.tree
    placed_nowhere = {entry.node for entry in tree.unplaced}
    if (
        host_partitions(truth) == host_partitions(tree)
        and {entry.node for entry in truth.unplaced} == placed_nowhere
    ):
        return TreeJudgement(TreeVerdict.EXACT, frozenset(), frozenset())
    flagged_devices = _find_flagged_devices(inference)
    nodes = sorted({*truth.all_nodes, *tree.all_nodes})
    wrong: set[str] = set()
    silent: set[str] = set()
    warned = placed_nowhere | flagged_devices
    if any(finding.kind is FindingKind.NOT_A_TREE for finding in inference.findings):
        warned.update(nodes)
    below: tuple[_TierDomains, ...] = ()
    for rank in range(1, max(len(truth.tiers), len(tree.tiers)) + 1):
        true_tier, inferred_tier = _build_tier(truth, rank), _build_tier(tree, rank)
        misplaced = _find_misplaced(nodes, true_tier, inferred_tier)
        wrong |= misplaced
        here = (
            _drop_common_switches(true_tier, inferred_tier),
            _drop_common_switches(inferred_tier, true_tier),
        )
        warned |= {
            node for node in misplaced if _is_flagged(node, (*here, *below), flagged_devices)
        }
        silent |= misplaced - warned
        below = true_tier, inferred_tier
    forgotten = set(nodes).difference(tree.all_nodes)
    wrong |= forgotten
    silent |= forgotten - warned
    wrong |= placed_nowhere - {entry.node for entry in truth.unplaced}
    verdict = TreeVerdict.SILENT if silent else TreeVerdict.FLAGGED
    return TreeJudgement(verdict, frozenset(wrong), frozenset(silent))


def _find_flagged_devices(inference: Inference) -> set[str]:
    """Return the devices of findings that question the tree.

    Named ports in a finding are evidence only: a host between two leaf groups does not question
    the other hosts there.
    """
    flagged_devices: set[str] = set()
    for finding in inference.findings:
        if finding.kind in _DOUBT_KINDS:
            flagged_devices.add(finding.device)
            flagged_devices.update(end.device for end in finding.ports if not end.port)
    return flagged_devices


class _TierDomains(NamedTuple):
    """The domains of one tier."""

    domain_of_node: Mapping[str, int]
    """Per node, the index of its domain."""
    switches: tuple[tuple[str, ...], ...]
    """Per domain, its switches."""


def _build_tier(tree: TopologyTree, rank: int) -> _TierDomains:
    domains = [domain for domain in tree.domains if domain.tier == rank]
    return _TierDomains(
        {node: index for index, domain in enumerate(domains) for node in tree.nodes_of(domain)},
        tuple(domain.switches for domain in domains),
    )


def _drop_common_switches(tier: _TierDomains, against: _TierDomains) -> _TierDomains:
    """Return a tier without its switches if it is a single domain and both trees have the tier.

    Otherwise a finding about a switch above all nodes would flag all of them. It does flag them if
    the other tree has no such tier.
    """
    return (
        tier
        if len(tier.switches) > 1 or not against.switches
        else _TierDomains(tier.domain_of_node, ((),))
    )


def _find_misplaced(
    nodes: Iterable[str], true_tier: _TierDomains, inferred_tier: _TierDomains
) -> set[str]:
    """Return the nodes whose domain does not match the true domain."""
    match = _match_domains(true_tier, inferred_tier)
    misplaced = set()
    for node in nodes:
        true_domain = true_tier.domain_of_node.get(node)
        if (
            None if true_domain is None else match.get(true_domain, -1)
        ) != inferred_tier.domain_of_node.get(node):
            misplaced.add(node)
    return misplaced


def _match_domains(true_tier: _TierDomains, inferred_tier: _TierDomains) -> dict[int, int]:
    """Return the domain for each true domain: the pairs that share most nodes match."""
    both = true_tier.domain_of_node.keys() & inferred_tier.domain_of_node.keys()
    shared = Counter(
        (true_tier.domain_of_node[node], inferred_tier.domain_of_node[node]) for node in both
    )
    match: dict[int, int] = {}
    matched: set[int] = set()
    for (true_domain, domain), _ in sorted(shared.items(), key=lambda row: (-row[1], row[0])):
        if true_domain not in match and domain not in matched:
            match[true_domain] = domain
            matched.add(domain)
    return match


def _is_flagged(
    node: str, tiers: Iterable[_TierDomains], flagged_devices: AbstractSet[str]
) -> bool:
    """Return whether a finding names a switch of one of the node's domains."""
    domains = ((tier, tier.domain_of_node.get(node)) for tier in tiers)
    return any(
        domain is not None and not flagged_devices.isdisjoint(tier.switches[domain])
        for tier, domain in domains
    )
