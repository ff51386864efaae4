"""What each finding costs: the bandwidth that is gone, the nodes behind it, and what it hides.

Counts cables, not rates: all cables of a host in the plane, the up-links of a leaf, and above the
leaves the up-links of a domain. A port of a host uses one leaf, and a collective waits for its
slowest rail, so each leaf is counted alone. The spines of a pod share their load, so they are
counted together. The expected cables of a device are the present ones and those that findings
report absent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from topology.findings.finding_causes import find_explanations
from topology.model.fabric import STATE_CODES, Fabric, Flags, Index
from topology.model.facts import Finding, FindingKind, PortState, Severity
from topology.model.ids import natural_key
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane

MAX_WARNING_SHARE: Final = 0.5
"""If more of its bandwidth is gone, a device cannot do its work: an error."""
MIN_WARNING_SHARE: Final = 0.01
"""If less of its bandwidth is gone, no job can measure it: an info."""
_OF_CABLES: Final = frozenset(
    {
        *(FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL, FindingKind.MISSING_LINK),
        *(FindingKind.SLOW_LINK, FindingKind.DOWN_PORT, FindingKind.FLAPPING_LINK),
    }
)
"""Their severity follows from the bandwidth that is gone."""
_MISPLACED: Final = frozenset({FindingKind.SWAPPED_CABLE, FindingKind.WRONG_RAIL})
"""They may leave a node without a place. The finding about that node is an error, and its cause
must not stand below it."""
_HIDING: Final = frozenset(
    {
        *(FindingKind.ONE_SIDED_LINK, FindingKind.NO_LLDP, FindingKind.UNRESOLVED_HOST),
        *(FindingKind.SILENT_NODE, FindingKind.STALE_REPORT, FindingKind.UNUSABLE_REPORT),
        *(FindingKind.DUPLICATE_NAME, FindingKind.DUPLICATE_ID, FindingKind.UNMATCHED_NODES),
        *(FindingKind.UNDECIDABLE, FindingKind.PLANE_UNKNOWN, FindingKind.CUT_INPUT),
        *(FindingKind.SWEEP_REFUSED, FindingKind.SWEEP_IGNORED, FindingKind.SWEEPS_DISAGREE),
        FindingKind.SWEEP_CONTRADICTED,
    }
)
"""What they are about cannot be seen, or not be believed."""
_HOST_RANK: Final = 0
_UNKNOWN: Final = -1
_MIN_FOLDED: Final = 2
"""A domain with one node or child is not named instead of it."""
_DIGITS: Final = 4


def measure_impacts(
    findings: Iterable[Finding], tree: TopologyTree, cables: CableCounts | None = None
) -> list[Finding]:
    """Return the findings with what they cost, and with the severity that follows from it.

    The order stays. Cost: O(findings + domains + nodes).

    Args:
        findings: of one observation. The cables that a rule already counted are kept.
        tree: of the same observation.
        cables: of its plane; without them no bandwidth is known.
    """
    rows, places = list(findings), _Places(tree)
    if cables is None:
        return [_describe(row, places, places.find_named(row)) for row in rows]
    losses = [cables.count_lost(row) for row in rows]
    totals = _add_up(rows, losses, cables)
    measured = []
    for row, lost in zip(rows, losses, strict=True):
        found = places.find(map(cables.name_of, lost)) if lost else places.find_named(row)
        described = _describe(row, places, found)
        measured.append(_grade(_count(described, lost, totals)) if lost else described)
    return measured


def add_workloads(
    findings: Iterable[Finding],
    tree: TopologyTree,
    *,
    gpus: Mapping[str, int] | None,
    gangs: Mapping[str, Collection[str]] | None,
) -> list[Finding]:
    """Return measured findings with the GPUs and the gangs behind them; the order stays.

    Args:
        findings: as `measure_impacts` returns them.
        tree: of the same observation.
        gpus: by node; None: unknown.
        gangs: the nodes of each running gang; None: unknown.
    """
    gangs_of = defaultdict[str, set[str]](set)
    for gang, nodes in (gangs or {}).items():
        for node in nodes:
            gangs_of[node].add(gang)
    domains = {domain.name: domain for domain in tree.domains}
    own = frozenset(tree.nodes)

    @cache
    def measure(place: str) -> tuple[int, frozenset[str]]:
        is_domain = place in domains and place not in own
        nodes = tree.nodes_of(domains[place]) if is_domain else (place,)
        found = (gangs_of.get(node, ()) for node in nodes)
        return sum((gpus or {}).get(node, 0) for node in nodes), frozenset[str]().union(*found)

    rows = []
    for row in findings:
        behind = [measure(place) for place in row.impact.places]
        felt = frozenset[str]().union(*(names for _, names in behind))
        impact = row.impact._replace(
            num_gpus=None if gpus is None else sum(num for num, _ in behind),
            gangs=None if gangs is None else tuple(sorted(felt, key=natural_key)),
        )
        rows.append(replace(row, impact=impact))
    return rows


class CableCounts:
    """The cables that each host, each leaf, and each domain above the leaves has upwards.

    These are the parts that lose bandwidth. A part is a number: that of the host or the leaf, and
    of a domain that of its first switch.
    """

    def __init__(self, fabric: Fabric, plane: Plane, tree: TopologyTree) -> None:
        """Count the cables of a plane. Cost: O(devices + links)."""
        self._names = fabric.columns.names
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._ranks = np.full(len(self._names), _UNKNOWN)
        self._ranks[list(plane.hosts)] = _HOST_RANK
        self._parts = np.arange(len(self._names))
        domains = np.full(len(self._names), _UNKNOWN)
        for number, domain in enumerate(tree.domains):
            switches = [self._numbers[name] for name in domain.switches if name in self._numbers]
            self._ranks[switches], domains[switches] = domain.tier, number
            if any(tree.domains[child].switches for child in domain.children):
                self._parts[switches] = switches[:1]  # they share their load
        self._present = self._count_present(plane, domains)
        self._is_unknown = self._find_unknown(fabric, plane)

    def _find_unknown(self, fabric: Fabric, plane: Plane) -> Flags:
        """Return the hosts that may have cables although no cable of them is known.

        A port that is not down has a cable, unless it is unplugged. A host whose ports are all down
        has no cable that counts, if the cables of other hosts are known.
        """
        columns, ports = fabric.columns, plane.ports.numbers
        if len(plane.host_edges):
            ports = ports[columns.states[ports] != STATE_CODES[PortState.DOWN]]
        is_open = np.zeros(len(self._names), np.bool_)
        is_open[columns.port_devices[ports]] = True
        is_open[(self._ranks != _HOST_RANK) | (self._present > 0)] = False
        return is_open

    def _count_present(self, plane: Plane, domains: Index) -> Index:
        a, b, _, _ = plane.switch_edges.columns
        lower = [plane.host_edges.columns.a]
        for low, high in ((a, b), (b, a)):
            is_peer = (self._ranks[low] == self._ranks[high]) & (domains[low] != domains[high])
            is_up = (self._ranks[low] > 0) & ((self._ranks[low] < self._ranks[high]) | is_peer)
            lower.append(low[is_up])
        return np.bincount(self._parts[np.concatenate(lower)], minlength=len(self._names))

    def is_unknown(self, part: int) -> bool:
        """Return whether a part is a host that may have cables although none is known."""
        return bool(self._is_unknown[part])

    def count_present(self, part: int) -> int:
        """Return the cables that a part has."""
        return int(self._present[part])

    def name_of(self, part: int) -> str:
        """Return the host or the switch that has the number of a part."""
        return self._names[part]

    def is_switch(self, part: int) -> bool:
        """Return whether a part is no host."""
        return bool(self._ranks[part] != _HOST_RANK)

    def count_lost(self, finding: Finding) -> dict[int, float]:
        """Return how many cables each part lost; empty if the finding is not about cables.

        A cable is lost by its lower end, which is nearer the nodes.
        """
        is_of_cables = finding.kind in _OF_CABLES or finding.kind is FindingKind.LOST_SWITCH
        if not is_of_cables or finding.impact.hides:
            return {}
        ends = Counter(
            self._numbers[end.device] for end in finding.ports if end.device in self._numbers
        )
        known = [device for device in ends if self._ranks[device] != _UNKNOWN]
        lowest = min((int(self._ranks[device]) for device in known), default=_UNKNOWN)
        lost: dict[int, float] = {}
        for device in sorted(known):
            if self._ranks[device] == lowest:
                part = int(self._parts[device])
                lost[part] = lost.get(part, 0.0) + ends[device]
        if finding.impact.cables is None:
            return lost
        return {part: finding.impact.cables / len(lost) for part in lost}


class _PartTotal(NamedTuple):
    """The cables of one part, with all findings."""

    num_expected: float
    """0: unknown."""
    num_gone: float
    is_switch: bool

    @property
    def is_cut_off(self) -> bool:
        """Whether this is a switch that has lost all of its up-links."""
        return self.is_switch and self.num_gone >= self.num_expected > 0


def _add_up(
    rows: Sequence[Finding], losses: Sequence[Mapping[int, float]], cables: CableCounts
) -> Mapping[int, _PartTotal]:
    """Return the total of each part that lost a cable.

    A finding that follows from another one counts the same cables, so it is left out.
    """
    gone, absent = defaultdict[int, float](float), defaultdict[int, float](float)
    explained = find_explanations(rows)
    for number, (row, lost) in enumerate(zip(rows, losses, strict=True)):
        if number in explained:
            continue
        for part, num in lost.items():
            gone[part] += num
            absent[part] += num if _is_absent(row) else 0.0
    totals = {}
    for part in {part for lost in losses for part in lost}:
        is_unknown = cables.is_unknown(part)
        num_expected = 0.0 if is_unknown else cables.count_present(part) + absent[part]
        num_gone = min(gone[part], num_expected)
        totals[part] = _PartTotal(num_expected, num_gone, cables.is_switch(part))
    return totals


def _is_absent(finding: Finding) -> bool:
    """Return whether the fabric lacks the cables of a finding; others are in the wrong place."""
    if finding.kind is FindingKind.DOWN_PORT:
        return len(finding.ports) == 1  # else a sweep or the switch still lists the cable
    return finding.kind in (FindingKind.MISSING_LINK, FindingKind.LOST_SWITCH)


def _count(
    finding: Finding, lost: Mapping[int, float], totals: Mapping[int, _PartTotal]
) -> Finding:
    """Return the finding with the bandwidth that is gone."""
    num_lost, rows = sum(lost.values()), [totals[part] for part in lost]
    num_expected = sum(row.num_expected for row in rows)
    impact = finding.impact._replace(cables=round(num_lost, _DIGITS))
    if not num_expected:
        return replace(finding, impact=impact)
    impact = impact._replace(
        share=round(min(num_lost / num_expected, 1.0), _DIGITS),
        gone_share=round(sum(row.num_gone for row in rows) / num_expected, _DIGITS),
        splits=finding.impact.splits or any(row.is_cut_off for row in rows),
    )
    return replace(finding, impact=impact)


def _grade(finding: Finding) -> Finding:
    """Return the finding with the severity that follows from the bandwidth that is gone."""
    impact = finding.impact
    if finding.kind not in _OF_CABLES or impact.gone_share is None or not impact.num_nodes:
        return finding
    severity = Severity.WARNING
    is_displacing = finding.kind in _MISPLACED and impact.hides
    if impact.splits or is_displacing or impact.gone_share > MAX_WARNING_SHARE:
        severity = Severity.ERROR
    elif impact.gone_share < MIN_WARNING_SHARE:
        severity = Severity.INFO
    return replace(finding, severity=severity)


def _describe(finding: Finding, places: _Places, names: Sequence[str]) -> Finding:
    """Return the finding with the places behind it, and with what it hides or splits."""
    num_nodes = sum(map(places.count_nodes, names))
    has_nodes = any(map(places.is_node, names))
    impact = finding.impact._replace(
        places=tuple(names),
        num_nodes=num_nodes,
        splits=finding.kind is FindingKind.ISLAND
        or (finding.kind is FindingKind.UNDECIDABLE and bool(names) and not has_nodes),
        hides=finding.impact.hides
        or finding.kind in _HIDING
        or any(map(places.is_unplaced, names)),
    )
    return replace(finding, impact=impact)


class _Places:
    """The domains and the nodes of a tree by name; a domain also by the names of its switches."""

    def __init__(self, tree: TopologyTree) -> None:
        self._domains = tree.domains
        self._with_ancestors = tree.with_ancestors
        self._unplaced = frozenset(row.node for row in tree.unplaced)
        self._positions = {node: position for position, node in enumerate(tree.nodes)}
        self._domain_of_node = {
            node: number for number, domain in enumerate(tree.domains) for node in domain.nodes
        }
        self._numbers = {
            name: number
            for number, domain in enumerate(tree.domains)
            for name in (*domain.switches, domain.name)
            if not self.is_node(name)
        }

    def is_unplaced(self, name: str) -> bool:
        """Return whether this is a node without a domain."""
        return name in self._unplaced

    def is_node(self, name: str) -> bool:
        """Return whether this is a node."""
        return name in self._domain_of_node or name in self._unplaced

    def count_nodes(self, place: str) -> int:
        """Return the nodes of a place that `find` named."""
        if self.is_node(place):
            return 1
        domain = self._domains[self._numbers[place]]
        return domain.stop - domain.start

    def find_named(self, finding: Finding) -> list[str]:
        """Return the nodes that a finding names, or else the domain of its first switch.

        A finding about an unknown network names no node if it leaves all nodes without a place.
        """
        if finding.impact.places:
            return self.find(finding.impact.places)
        if finding.kind is FindingKind.PLANE_UNKNOWN:
            return sorted(self._unplaced, key=natural_key)
        names = dict.fromkeys([finding.device, *(end.device for end in finding.ports)])
        nodes = [name for name in names if self.is_node(name)]
        if nodes:
            return self.find(nodes)
        return self.find([name for name in names if name in self._numbers][:1])

    def find(self, names: Iterable[str]) -> list[str]:
        """Return the fewest places that cover these nodes and switches, in the order of the tree.

        Names that the tree lacks are left out.
        """
        names = frozenset(names)
        placed = {name for name in names if name in self._domain_of_node}
        domains = {self._numbers[name] for name in names if name in self._numbers}
        num_named = Counter(self._domain_of_node[node] for node in placed)
        domains |= {
            number
            for number, num_nodes in num_named.items()
            if num_nodes >= _MIN_FOLDED and num_nodes == len(self._domains[number].nodes)
        }
        domains = self._fold(domains)
        single_nodes = [node for node in placed if not self._is_inside(node, domains)]
        rows = [(self._domains[number].start, self._domains[number].name) for number in domains]
        rows += [(self._positions[node], node) for node in single_nodes]
        in_tree_order = [name for _, name in sorted(rows)]
        return in_tree_order + sorted(names & self._unplaced, key=natural_key)

    def _is_inside(self, node: str, domains: Collection[int]) -> bool:
        around = self._with_ancestors(self._domain_of_node[node])
        return any(number in domains for number in around)

    def _fold(self, domains: set[int]) -> set[int]:
        """Drop domains inside others; replace a full set of children by their parent."""
        queue = sorted(domains)  # tier by tier, so that a parent comes after its children
        for number in queue:  # it grows
            parent = self._domains[number].parent
            if parent is None or parent in domains:
                continue
            around = self._domains[parent]
            is_full = domains.issuperset(around.children) and not around.nodes
            if is_full and len(around.children) >= _MIN_FOLDED:
                domains.add(parent)
                queue.append(parent)
        return {
            number for number in domains if domains.isdisjoint(self._with_ancestors(number)[1:])
        }
