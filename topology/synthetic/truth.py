"""The right tree of a damaged fabric: worked out from its plan and its cables, not inferred.

A host is in the leaf group, and a unit below the unit, that holds most of its cables. A tie leaves
a host unplaced and a unit standing alone, and so does having no cable at all. Units of one rank
that are cabled to each other, as the groups of a dragonfly+ are, meet one tier up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import permutations
from typing import Any

from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree, render_tree
from topology.synthetic.faults import DamagedFabric, Fault
from topology.synthetic.membership import (
    Attachments,
    SwitchUnit,
    count_attachments,
    find_plurality,
    unit_of,
)
from topology.synthetic.spec import TIER_NAMES
from topology.synthetic.wiring import unit_name

NVLINK_TIER = "nvlink"


def derive_truth(damaged: DamagedFabric) -> TopologyTree:
    """Return the true tree; silent hosts stay where their cables are. Cost: O(cables)."""
    attachments = count_attachments(damaged)
    members: dict[SwitchUnit, list[str]] = {}
    unplaced = []
    for host in damaged.wiring.hosts:
        held = attachments.hosts.get(host.name, Counter())
        home = find_plurality(held)
        if home is None:
            unplaced.append(Unplaced(host.name, _reason(held)))
        else:
            members.setdefault(home, []).append(host.name)
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
    """Yield domains a tier up, and those of NVLink below the leaf groups, by what is in each."""
    cliques = {host.name: host.clique for host in damaged.wiring.hosts}
    for spec in specs:
        yield replace(spec, tier=spec.tier + 1, nodes=())
        for clique in {cliques[node] for node in spec.nodes}:
            nodes = tuple(node for node in spec.nodes if cliques[node] == clique)
            yield DomainSpec(f"{spec.name}-{NVLINK_TIER}-{clique}", 1, spec.name, nodes)


def render_truth(tree: TopologyTree, faults: Iterable[Fault]) -> dict[str, Any]:
    """Return the document of the true tree with the faults that were made."""
    rows = [
        {
            "kind": fault.kind.value,
            "ports": [{"device": end.device, "port": end.port} for end in fault.ports],
            "detectable": fault.is_detectable,
        }
        for fault in faults
    ]
    return render_tree(tree) | {"faults": rows}


def _reason(held: Mapping[SwitchUnit, int]) -> str:
    if not held:
        return "none of its ports has a link"
    most = max(held.values())
    tied = sorted(unit_name(*unit) for unit, num in held.items() if num == most)
    return f"as many links to {' as to '.join(tied)}"


def _parents(
    members: Mapping[SwitchUnit, list[str]], attachments: Attachments
) -> dict[SwitchUnit, SwitchUnit | None]:
    """Return the parent of every unit that has hosts below it."""
    parents: dict[SwitchUnit, SwitchUnit | None] = {}
    below = list(members)
    while below:
        for unit in below:
            parents[unit] = find_plurality(attachments.units.get(unit, Counter()))
        below = sorted({home for unit in below if (home := parents[unit])} - parents.keys())
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
    """Return the units that cables between equals join, set by set, each sorted."""
    around: dict[SwitchUnit, set[SwitchUnit]] = {}
    for pair in attachments.peers:
        if units >= set(pair):
            for one, other in permutations(pair):
                around.setdefault(one, set()).add(other)
    joined = []
    while around:
        found: set[SwitchUnit] = set()
        frontier = {min(around)}
        while frontier:
            found |= frontier
            frontier = {near for unit in frontier for near in around.pop(unit)} - found
        joined.append(sorted(found))
    return joined


def _switches_by_unit(damaged: DamagedFabric) -> dict[SwitchUnit, tuple[str, ...]]:
    """Return the names of the switches that each unit has left, sorted."""
    names: dict[SwitchUnit, list[str]] = {}
    for switch in damaged.wiring.switches:
        held = names.setdefault(unit_of(switch), [])
        if switch.name not in damaged.lost_switches:
            held.append(switch.name)
    return {unit: tuple(sorted(held)) for unit, held in names.items()}
