"""The true tree of a damaged fabric: derived from its plan and its cables, not inferred.

A host belongs to the leaf group to which most of its cables lead; the parent of a unit is the unit
to which most of its up-links lead. With a tie or without a cable, a host is unplaced and a unit has
no parent. Units of one rank that are cabled to each other, like the groups of a dragonfly+, have a
common parent one tier up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import permutations
from typing import Any, NamedTuple, TypeVar

from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree, render_tree
from topology.synthetic.faults import DamagedFabric, Fault
from topology.synthetic.spec import STORAGE_RANK, TIER_NAMES
from topology.synthetic.wiring import Cable, Switch, unit_name

UnitT = TypeVar("UnitT", bound=Hashable)


class SwitchUnit(NamedTuple):
    """A leaf group, the spines of a pod, and so on up to the single unit at the top."""

    rank: int
    path: tuple[int, ...]


def unit_of(switch: Switch) -> SwitchUnit:
    """Return the unit of a switch."""
    return SwitchUnit(switch.rank, switch.path)


class Attachments(NamedTuple):
    """Numbers of cables by the unit to which they lead."""

    hosts: Mapping[str, Counter[SwitchUnit]]
    """Per host with a cable, the number of cables by leaf group, without storage leaves."""
    units: Mapping[SwitchUnit, Counter[SwitchUnit]]
    """Per unit with a cable upwards, the number of these by the unit above."""
    peers: frozenset[tuple[SwitchUnit, SwitchUnit]]
    """Pairs of units of one rank with a cable between them; the smaller unit is first."""


def count_attachments(damaged: DamagedFabric) -> Attachments:
    """Count the cables of a damaged fabric by unit. Cost: O(cables)."""
    unit_by_name = {switch.name: unit_of(switch) for switch in damaged.wiring.switches}
    hosts: dict[str, Counter[SwitchUnit]] = {}
    units: dict[SwitchUnit, Counter[SwitchUnit]] = {}
    peers: set[tuple[SwitchUnit, SwitchUnit]] = set()
    for cable in damaged.cables:
        above = unit_by_name[cable.high.device]
        if above.rank == STORAGE_RANK:
            continue
        if is_host_cable(cable, unit_by_name):
            hosts.setdefault(cable.low.device, Counter())[above] += 1
            continue
        below = unit_by_name[cable.low.device]
        if below.rank < above.rank:
            units.setdefault(below, Counter())[above] += 1
        elif below != above:
            peers.add((min(below, above), max(below, above)))
    return Attachments(hosts, units, frozenset(peers))


def is_host_cable(cable: Cable, switches: Mapping[str, object]) -> bool:
    """Return whether the lower end of a cable is a host; `switches` has all switch names."""
    return cable.low.device not in switches


def find_plurality(counts: Mapping[UnitT, int]) -> UnitT | None:
    """Return the unit with the largest count; None for a tie or if there are no counts."""
    ranked = sorted(counts.values(), reverse=True)
    if not ranked or ranked[:1] == ranked[1:2]:
        return None
    return max(counts, key=lambda unit: counts[unit])


def find_majority(counts: Mapping[UnitT, int]) -> UnitT | None:
    """Return the unit with more than half of the total, None if there is none."""
    top = find_plurality(counts)
    return top if top is not None and 2 * counts[top] > sum(counts.values()) else None


NVLINK_TIER = "nvlink"


def derive_truth(damaged: DamagedFabric) -> TopologyTree:
    """Return the true tree; silent hosts are placed by their cables too. Cost: O(cables)."""
    attachments = count_attachments(damaged)
    members: dict[SwitchUnit, list[str]] = {}
    unplaced = []
    for host in damaged.wiring.hosts:
        links_by_unit = attachments.hosts.get(host.name, Counter())
        unit = find_plurality(links_by_unit)
        if unit is None:
            unplaced.append(Unplaced(host.name, _reason(links_by_unit)))
        else:
            members.setdefault(unit, []).append(host.name)
    parents = _parents(members, attachments)
    switches = _switches_by_unit(damaged)
    specs = [
        DomainSpec(
            name=unit_name(*unit),
            tier=unit.rank,
            parent=None if parent is None else unit_name(*parent),
            nodes=tuple(members.get(unit, ())),
            switches=switches.get(unit, ()),
        )
        for unit, parent in parents.items()
    ]
    tiers = TIER_NAMES[: max((unit.rank for unit in parents), default=1)]
    if damaged.wiring.spec.nvlink_hosts and specs:
        specs, tiers = list(_with_cliques(damaged, specs)), (NVLINK_TIER, *tiers)
    return build_tree(specs, tiers=tiers, unplaced=unplaced)


def _with_cliques(damaged: DamagedFabric, specs: Iterable[DomainSpec]) -> Iterator[DomainSpec]:
    """Yield the domains one tier up, and the NVLink domains below each leaf group."""
    cliques = {host.name: host.clique for host in damaged.wiring.hosts}
    for spec in specs:
        yield replace(spec, tier=spec.tier + 1, nodes=())
        for clique in {cliques[node] for node in spec.nodes}:
            nodes = tuple(node for node in spec.nodes if cliques[node] == clique)
            yield DomainSpec(f"{spec.name}-{NVLINK_TIER}-{clique}", 1, spec.name, nodes)


def render_truth(tree: TopologyTree, faults: Iterable[Fault]) -> dict[str, Any]:
    """Return the JSON document of the true tree and the applied faults."""
    rows = [
        {
            "kind": fault.kind.value,
            "ports": [{"device": end.device, "port": end.port} for end in fault.ports],
            "detectable": fault.is_detectable,
        }
        for fault in faults
    ]
    return render_tree(tree) | {"faults": rows}


def _reason(links_by_unit: Mapping[SwitchUnit, int]) -> str:
    if not links_by_unit:
        return "none of its ports has a link"
    most = max(links_by_unit.values())
    tied = sorted(unit_name(*unit) for unit, num in links_by_unit.items() if num == most)
    return f"the same number of links to {' and to '.join(tied)}"


def _parents(
    members: Mapping[SwitchUnit, list[str]], attachments: Attachments
) -> dict[SwitchUnit, SwitchUnit | None]:
    """Return the parent of every unit with hosts below it."""
    parents: dict[SwitchUnit, SwitchUnit | None] = {}
    below = list(members)
    while below:
        for unit in below:
            parents[unit] = find_plurality(attachments.units.get(unit, Counter()))
        below = sorted({parent for unit in below if (parent := parents[unit])} - parents.keys())
    roots = {unit for unit, parent in parents.items() if parent is None}
    joined = _joined_by_peers(roots, attachments)
    for tops in joined:
        above = SwitchUnit(tops[0].rank + 1, tops[0].path if len(joined) > 1 else ())
        parents.update(dict.fromkeys(tops, above))
        parents[above] = None
    return parents


def _joined_by_peers(
    units: AbstractSet[SwitchUnit], attachments: Attachments
) -> list[list[SwitchUnit]]:
    """Return the sets of units that cables between units of one rank connect, each sorted."""
    peers_by_unit: dict[SwitchUnit, set[SwitchUnit]] = {}
    for pair in attachments.peers:
        if units >= set(pair):
            for unit, peer in permutations(pair):
                peers_by_unit.setdefault(unit, set()).add(peer)
    joined = []
    while peers_by_unit:
        connected: set[SwitchUnit] = set()
        frontier = {min(peers_by_unit)}
        while frontier:
            connected |= frontier
            frontier = {near for unit in frontier for near in peers_by_unit.pop(unit)} - connected
        joined.append(sorted(connected))
    return joined


def _switches_by_unit(damaged: DamagedFabric) -> dict[SwitchUnit, tuple[str, ...]]:
    """Return the names of the remaining switches of each unit, sorted."""
    names: dict[SwitchUnit, list[str]] = {}
    for switch in damaged.wiring.switches:
        switch_names = names.setdefault(unit_of(switch), [])
        if switch.name not in damaged.lost_switches:
            switch_names.append(switch.name)
    return {unit: tuple(sorted(switch_names)) for unit, switch_names in names.items()}
