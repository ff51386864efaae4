"""How well the inference does on made-up fabrics, whose true trees are known.

Decides what a fabric's verdict is, which swaps were named, and which fabrics and faults make up
the grid. Pure: who draws the faults, and where the runs take place, is the command's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from topology.fabric import build_fabric
from topology.facts import Device, DeviceKind, Finding, FindingKind, Medium, PortName
from topology.identity import Claim, Origin
from topology.ids import Id, IdKind
from topology.inference import Inference, infer
from topology.synthetic import (
    Damaged,
    FabricKind,
    FabricSpec,
    FaultKind,
    FaultSpec,
    NamePolicy,
    RandomSource,
    Wiring,
    damage,
    derive_truth,
    inventory,
    report_claims,
    sweep_devices,
)
from topology.tree import TopologyTree, all_nodes, host_partitions

_TELLING: Final = frozenset(
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
_SWAPPED: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})


class Verdict(StrEnum):
    """How a tree compares with the true one; the later, the worse."""

    EXACT = "exact"
    FLAGGED = "flagged"
    """Wrong about some nodes; each is listed as unplaced with the reason, or a finding speaks of
    it or of a switch of its domain."""
    SILENT = "silent"
    """Wrong about some node of which nothing is said."""


class Score(NamedTuple):
    """What one run came to."""

    verdict: Verdict
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
    return Score(judge(damaged, found), len(swaps), num_named)


def _ports(finding: Finding) -> Iterator[PortName]:
    yield PortName(finding.device, finding.port or "")
    yield from finding.ports
    for pair in finding.swap:
        yield from pair


def judge(damaged: Damaged, found: Inference) -> Verdict:
    """Compare an inference with the truth of its fabric. Cost: O(nodes x tiers)."""
    truth = derive_truth(damaged)
    if host_partitions(truth) == host_partitions(found.tree):
        return Verdict.EXACT
    told = {
        name
        for finding in found.findings
        if finding.kind in _TELLING
        for name in (finding.device, *(end.device for end in finding.ports))
    }
    ranks = range(1, max(len(truth.tiers), len(found.tree.tiers)) + 1)
    right = [_tier(truth, rank, told) for rank in ranks]
    seen = [_tier(found.tree, rank, told) for rank in ranks]
    warned = {
        node
        for tier in seen
        for node, at in tier.homes.items()
        if tier.is_told[at] and not tier.is_whole[at]
    }
    warned |= told | {gone.node for gone in found.tree.unplaced}
    nodes = all_nodes(truth)
    is_silent = any(
        node not in warned
        for one, two in zip(right, seen, strict=True)
        for node in _misplaced(nodes, one, two)
    )
    return Verdict.SILENT if is_silent else Verdict.FLAGGED


class _Tier(NamedTuple):
    """The domains of one tier."""

    homes: Mapping[str, int]
    """Per node the index of its domain."""
    is_told: tuple[bool, ...]
    """Per domain, whether a finding speaks of a switch of it."""
    is_whole: tuple[bool, ...]
    """Per domain, whether it holds every node, so that its switches tell nothing."""


def _tier(tree: TopologyTree, rank: int, told: set[str]) -> _Tier:
    domains = [domain for domain in tree.domains if domain.tier == rank]
    return _Tier(
        {node: at for at, domain in enumerate(domains) for node in tree.nodes_of(domain)},
        tuple(not told.isdisjoint(domain.switches) for domain in domains),
        tuple(domain.stop - domain.start == len(tree.nodes) for domain in domains),
    )


def _misplaced(nodes: Iterable[str], right: _Tier, seen: _Tier) -> Iterator[str]:
    """Yield the nodes whose domain is not the true one, unless a switch of either is told of."""
    match = _match(right, seen)
    for node in nodes:
        home, place = right.homes.get(node), seen.homes.get(node)
        if (None if home is None else match.get(home, -1)) == place:
            continue
        is_told = home is not None and right.is_told[home]
        if not is_told and not (place is not None and seen.is_told[place]):
            yield node


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


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fabric and what goes wrong in it, drawn anew for each seed."""

    fabric: str
    fault: str
    spec: FabricSpec
    faults: FaultSpec

    @property
    def num_hcas(self) -> int:
        """HCAs, or NICs, of all hosts."""
        return self.spec.num_hosts * self.spec.ports_per_host


class Size(StrEnum):
    """How much of the grid is run."""

    QUICK = "quick"
    FULL = "full"


_HCAS: Final = {Size.QUICK: (512,), Size.FULL: (512, 8192, 65536)}
_RAILS: Final = {Size.QUICK: (2, 3, 4, 8), Size.FULL: tuple(range(1, 9))}
_FAT_TREE_TIERS: Final = (2, 3, 4)
_SMALL_HCAS: Final = 512
_SMALL_RADIX: Final = 32
_LARGE_RADIX: Final = 64
_FAULTS: Final = {
    "none": FaultSpec(),
    "10 % of links lost": FaultSpec(lose_links=0.1),
    "5 % of cables swapped": FaultSpec(swap=0.05),
    "a switch lost": FaultSpec(lose_switches=1),
    "a host lost": FaultSpec(lose_hosts=1),
    "20 % of hosts silent": FaultSpec(silent=0.2),
    "all of these": FaultSpec(0.1, swap=0.05, silent=0.2, lose_switches=1, lose_hosts=1),
}


def grid(size: Size) -> list[Scenario]:
    """Return the scenarios of a grid: by number of HCAs, fabric, fault and names."""
    return [
        Scenario(fabric, fault, replace(spec, names=names), faults)
        for num_hcas in _HCAS[size]
        for fabric, spec in _fabrics(num_hcas, _RAILS[size])
        for fault, faults in _FAULTS.items()
        for names in NamePolicy
    ]


def _fabrics(num_hcas: int, rails: Iterable[int]) -> Iterator[tuple[str, FabricSpec]]:
    radix = _SMALL_RADIX if num_hcas <= _SMALL_HCAS else _LARGE_RADIX
    for tiers in _FAT_TREE_TIERS:
        fitting = _fat_tree_radix(num_hcas, tiers)
        spec = FabricSpec(FabricKind.FAT_TREE, num_hcas, radix=fitting, tiers=tiers)
        yield f"fat tree, {tiers} ranks", spec
    for num in rails:
        spec = FabricSpec(FabricKind.RAIL, num_hcas // num, rails=num, radix=radix)
        yield f"{num} rail{'s' if num > 1 else ''}", spec
    pairs = FabricSpec(FabricKind.DUAL_HOMED, num_hcas // 2, radix=radix, medium=Medium.ETHERNET)
    yield "MLAG pairs", pairs


def _fat_tree_radix(num_hosts: int, tiers: int) -> int:
    """Return the smallest power of two with 2 (radix / 2) ** tiers hosts or more."""
    return 2 << math.ceil(math.log2(num_hosts / 2) / tiers)


class Worst(NamedTuple):
    """The run that most needs a look."""

    seed: int
    score: Score


@dataclass(frozen=True, slots=True)
class Row:
    """What the runs of one scenario came to."""

    scenario: Scenario
    scores: Mapping[int, Score]
    """Per seed."""

    def num(self, verdict: Verdict) -> int:
        """Return how many runs had a verdict."""
        return sum(score.verdict is verdict for score in self.scores.values())

    @property
    def num_swaps(self) -> int:
        """Swaps of all runs that can be seen."""
        return sum(score.num_swaps for score in self.scores.values())

    @property
    def num_named(self) -> int:
        """How many of these were named."""
        return sum(score.num_named for score in self.scores.values())

    @property
    def worst(self) -> Worst | None:
        """The worst verdict's run, then the one with most swaps unnamed, then the first.

        None where every tree is exact and every swap is named.
        """
        order = list(Verdict)
        missed = {
            seed: (order.index(one.verdict), one.num_swaps - one.num_named)
            for seed, one in self.scores.items()
        }
        seed = max(sorted(missed), key=lambda seed: missed[seed])
        return Worst(seed, self.scores[seed]) if any(missed[seed]) else None


def render_rows(rows: Iterable[Row], commands: Mapping[Scenario, str]) -> dict[str, Any]:
    """Return the document that `toponaut verify -o json` prints.

    Args:
        rows: one per scenario.
        commands: the command line that repeats the worst run, for scenarios that have one.
    """
    found = list(rows)
    totals = {verdict.value: sum(row.num(verdict) for row in found) for verdict in Verdict}
    return {
        "rows": [_render_row(row, commands.get(row.scenario)) for row in found],
        "total": {"runs": sum(totals.values()), **totals},
    }


def _render_row(row: Row, command: str | None) -> dict[str, Any]:
    worst = row.worst
    return {
        "fabric": row.scenario.fabric,
        "hcas": row.scenario.num_hcas,
        "names": row.scenario.spec.names.value,
        "fault": row.scenario.fault,
        "runs": len(row.scores),
        **{verdict.value: row.num(verdict) for verdict in Verdict},
        "swaps": {"detectable": row.num_swaps, "named": row.num_named},
        "worst": worst
        and {"seed": worst.seed, "verdict": worst.score.verdict.value, "command": command},
    }
