"""A damaged synthetic fabric to its claims, its inference, and how that compares with the truth."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from tests.topology.synthetic.fabrics import seeded
from topology.errors import ConfigError
from topology.fabric import build_fabric
from topology.facts import Device, DeviceKind, FindingKind, Medium
from topology.identity import Claim, Origin
from topology.ids import Id, IdKind
from topology.inference import Inference, infer
from topology.synthetic import (
    Damaged,
    FabricKind,
    FabricSpec,
    FaultSpec,
    NamePolicy,
    build_wiring,
    damage,
    derive_truth,
    inventory,
    report_claims,
    sweep_devices,
)
from topology.tree import TopologyTree, all_nodes, host_partitions

TELLING = frozenset(
    {
        FindingKind.UNDECIDABLE,
        FindingKind.ISLAND,
        FindingKind.AUX_SWITCH,
        FindingKind.HOST_ON_SPINE,
        FindingKind.MISSING_LINK,
        FindingKind.WRONG_RAIL,
    }
)
"""Kinds of findings that warn of a tree that is not what was built."""


class Verdict(StrEnum):
    """How a tree compares with the true one."""

    EXACT = "exact"
    FLAGGED = "flagged"
    """Wrong about some nodes, each of which a finding speaks of, itself or by a switch of its
    domain."""
    SILENT = "silently wrong"


def listed_nodes(damaged: Damaged) -> list[Claim]:
    """Return the inventory's claims: every host with the ids of its ports."""
    claims = []
    for row in inventory(damaged)["nodes"]:
        ids = [Id(IdKind(one["type"]), one["value"]) for one in row["ids"]]
        ids.append(Id(IdKind.NODE_NAME, row["name"]))
        device = Device(DeviceKind.HOST, row["name"], tuple(sorted(ids)))
        claims.append(Claim(device, Origin.INVENTORY))
    return claims


def claims_of(damaged: Damaged) -> list[Claim]:
    """Return what the inventory, the agents, SNMP walks and a sweep say together."""
    reports = [Claim(row.device, Origin.REPORT) for row in report_claims(damaged)]
    swept = sweep_devices(damaged) if damaged.wiring.spec.medium is Medium.INFINIBAND else []
    return [*listed_nodes(damaged), *reports, *(Claim(one, Origin.SWEEP) for one in swept)]


def infer_from(claims: Iterable[Claim], previous: TopologyTree | None = None) -> Inference:
    """Return the inference of a fabric of claims."""
    return infer(build_fabric(claims), previous=previous)


class _Domain(NamedTuple):
    nodes: frozenset[str]
    switches: frozenset[str]


def _domains(tree: TopologyTree, tier: int) -> list[_Domain]:
    return [
        _Domain(frozenset(tree.nodes_of(domain)), frozenset(domain.switches))
        for domain in tree.domains
        if domain.tier == tier
    ]


def judge(damaged: Damaged, found: Inference) -> Verdict:
    """Compare an inference with the truth of its fabric."""
    truth = derive_truth(damaged)
    if host_partitions(truth) == host_partitions(found.tree):
        return Verdict.EXACT
    told = {
        name
        for finding in found.findings
        if finding.kind in TELLING
        for name in (finding.device, *(end.device for end in finding.ports))
    }
    tiers = range(1, max(len(truth.tiers), len(found.tree.tiers)) + 1)
    witnesses = (names for tier in tiers for names in _misplaced(truth, found.tree, tier))
    return Verdict.FLAGGED if all(told & names for names in witnesses) else Verdict.SILENT


def _misplaced(truth: TopologyTree, tree: TopologyTree, tier: int) -> Iterator[set[str]]:
    """Yield, per node whose domain of a tier is not the true one, the devices that may tell so.

    Domains correspond where they share most nodes.
    """
    right, seen = _domains(truth, tier), _domains(tree, tier)
    shared = Counter(
        {
            (at, other): len(one.nodes & two.nodes)
            for at, one in enumerate(right)
            for other, two in enumerate(seen)
        }
    )
    ranks = range(1, len(tree.tiers) + 1)
    match: dict[int, int] = {}
    for (at, other), count in sorted(shared.items(), key=lambda row: (-row[1], row[0])):
        if count and at not in match and other not in match.values():
            match[at] = other
    for node in all_nodes(truth):
        home = next((at for at, one in enumerate(right) if node in one.nodes), None)
        place = next((at for at, one in enumerate(seen) if node in one.nodes), None)
        wanted = None if home is None else match.get(home, -1)
        if wanted != place:
            parts = (one for rank in ranks for one in _domains(tree, rank) if node in one.nodes)
            names = {
                name for one in parts if len(one.nodes) < len(tree.nodes) for name in one.switches
            }
            names |= seen[place].switches if place is not None else set()
            yield names | {node} | (right[home].switches if home is not None else set())


class Scene(NamedTuple):
    """One damaged fabric of the grid."""

    title: str
    damaged: Damaged


ItemT = TypeVar("ItemT")


def draw_scene(seed: int) -> Scene | None:
    """Return the fabric that a seed stands for; None where its numbers do not fit together."""
    rng = seeded(seed)

    def one_of(items: Sequence[ItemT]) -> ItemT:
        return rng.sample(items, 1)[0]

    spec = FabricSpec(
        one_of(list(FabricKind)),
        one_of(range(8, 65)),
        rails=one_of((2, 4, 8)),
        radix=one_of((8, 10, 12, 16)),
        tiers=one_of((None, 2, 3)),
        medium=one_of((Medium.INFINIBAND, Medium.ETHERNET)),
        names=one_of(list(NamePolicy)),
    )
    faults = FaultSpec(
        lose_links=one_of((0.0, 0.01, 0.03, 0.05, 0.1)),
        num_swaps=one_of((0, 0, 1, 2, 3)),
        silent=one_of((0.0, 0.0, 0.05, 0.1)),
        lose_switches=one_of((0, 0, 0, 1)),
    )
    try:
        return Scene(f"{seed}: {spec} {faults}", damage(build_wiring(spec), faults, rng))
    except ConfigError:
        return None
