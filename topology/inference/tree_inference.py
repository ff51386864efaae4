"""A fabric to its tree: select the plane, rank, group, name, and say what is wrong.

The one entry to the inference; everything it calls is pure. Hosts that are no cluster nodes
shape the tiers and are left out of the tree afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from topology.findings.one_sided_links import link_findings
from topology.findings.slow_links import slow_links
from topology.findings.swapped_cables import symmetry_findings
from topology.findings.tier_findings import tier_findings
from topology.findings.tree_findings import list_names, tie_reason, tree_findings
from topology.findings.treeness import treeness_findings
from topology.inference.directors import fold_directors
from topology.inference.domain_names import Nameless, assign_names
from topology.inference.nvlink_domains import (
    RANK,
    Cliques,
    clique_findings,
    find_cliques,
    nest_cliques,
)
from topology.model.errors import ConfigError, show
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Finding, sort_findings
from topology.model.ids import IdKind
from topology.model.lazy_rows import rows_at
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree
from topology.planes.plane import Plane, select_compute
from topology.planes.policy import COMPUTE
from topology.tiers.domain_links import Ways, find_ways
from topology.tiers.ranks import Ranks, rank_switches
from topology.tiers.tier_groups import Group, Grouping, group_switches

_TIER_NAMES = ("leaf", "spine", "core")


@dataclass(frozen=True, slots=True)
class Inference:
    """What the facts say: the tree, and everything that is wrong with the fabric."""

    tree: TopologyTree
    findings: tuple[Finding, ...]
    """Sorted by kind, device and port."""


def tier_names(
    num_tiers: int, configured: Sequence[str] = (), *, has_cliques: bool = False
) -> tuple[str, ...]:
    """Return names bottom-up: leaf, spine, core, core2 …, or the configured ones.

    Below the leaves stands `nvlink`, where there is a tier of cliques.

    Raises:
        ConfigError: fewer configured names than tiers, or one twice.
    """
    if configured:
        if len(set(configured)) < len(configured) or len(configured) < num_tiers:
            names = show(", ".join(configured))
            raise ConfigError(f"{num_tiers} tiers need as many different names, got {names}")
        return tuple(configured[:num_tiers])
    lowest = ("nvlink",) if has_cliques else ()
    later = (f"core{number}" for number in range(2, num_tiers))
    return (*lowest, *_TIER_NAMES, *later)[:num_tiers]


def infer(
    fabric: Fabric,
    *,
    plane: Plane | None = None,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> Inference:
    """Return the tree of a plane, byte-identical for the same facts in any order.

    Args:
        fabric: all devices and links.
        plane: of this fabric; the compute plane by the default policy where not given.
        previous: the last generation, whose domain names are carried over.
        names_of_tiers: bottom-up; the usual ones when empty.
    """
    found = infer_all(fabric, plane=plane, previous=previous, names_of_tiers=names_of_tiers)
    return found.inference


class FindingsBySource(NamedTuple):
    """What is wrong, by what says so."""

    links: frozenset[Finding] = frozenset()
    symmetry: frozenset[Finding] = frozenset()
    rates: frozenset[Finding] = frozenset()
    tree: frozenset[Finding] = frozenset()
    tiers: frozenset[Finding] = frozenset()
    treeness: frozenset[Finding] = frozenset()
    cliques: frozenset[Finding] = frozenset()


@dataclass(frozen=True, slots=True)
class Inferred:
    """An inference, and all that led to it: what is made of it again when little changes."""

    fabric: Fabric
    plane: Plane
    """Directors as one switch each."""
    has_directors: bool
    ranks: Ranks
    grouping: Grouping
    ways: Ways
    cliques: Cliques
    tree: TopologyTree
    titles: Mapping[int, str]
    """Name of each group's domain; groups without nodes are missing."""
    previous: TopologyTree | None
    """Whose names were carried over."""
    findings: FindingsBySource

    @property
    def inference(self) -> Inference:
        """The tree and all findings."""
        found = frozenset[Finding]().union(self.fabric.findings, *self.findings)
        return Inference(self.tree, sort_findings(found))


def infer_all(
    fabric: Fabric,
    *,
    plane: Plane | None = None,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> Inferred:
    """Return what `infer` does, and all that led to it."""
    folded = fold_directors(fabric, plane or select_compute(fabric))
    plane = folded.plane
    ranks = rank_switches(plane)
    grouping = group_switches(plane, ranks)
    ways = find_ways(plane, grouping)
    cliques = find_cliques(fabric) if plane.name == COMPUTE else {}
    unfolded = [
        replace(group, switches=tuple(folded.unfold(group.switches))) for group in grouping.groups
    ]
    nested = replace(grouping, groups=nest_cliques(unfolded, cliques))
    tree, titles = build_named(
        fabric, plane, nested, ranks=ranks, previous=previous, names=names_of_tiers
    )
    found = Inferred(
        fabric=fabric,
        plane=plane,
        has_directors=bool(folded.members),
        ranks=ranks,
        grouping=grouping,
        ways=ways,
        cliques=cliques,
        tree=tree,
        titles=titles,
        previous=previous,
        findings=FindingsBySource(),
    )
    return replace(found, findings=_findings(found))


def _findings(found: Inferred) -> FindingsBySource:
    fabric, plane, grouping, ways = found.fabric, found.plane, found.grouping, found.ways
    ranks = found.ranks
    return FindingsBySource(
        links=frozenset(link_findings(fabric)),
        symmetry=frozenset(symmetry_findings(fabric, plane, grouping=grouping, ways=ways)),
        rates=frozenset(slow_links(fabric, plane, grouping)),
        tree=frozenset(
            tree_findings(fabric, plane, ranks=ranks, grouping=grouping, tree=found.tree)
        ),
        tiers=frozenset(tier_findings(fabric, plane, ranks=ranks, grouping=grouping, ways=ways)),
        treeness=frozenset(treeness_findings(fabric, plane, grouping=grouping, ways=ways)),
        cliques=frozenset(clique_findings(fabric, grouping.groups, found.cliques)),
    )


def build_named(
    fabric: Fabric,
    plane: Plane,
    grouping: Grouping,
    *,
    ranks: Ranks,
    previous: TopologyTree | None,
    names: Sequence[str],
) -> tuple[TopologyTree, dict[int, str]]:
    """Return the tree of groups, and the name of each group that has nodes."""
    columns = columns_of(fabric)
    nodes = _nodes_below(columns.nodes, grouping.groups)
    kept = [at for at in range(len(grouping.groups)) if nodes[at]]
    levels = sorted({grouping.groups[at].rank for at in kept})
    tiers = tier_names(len(levels), names, has_cliques=RANK in levels)
    rows = [
        _nameless(fabric, grouping.groups[at], tier=tier, tiers=tiers, nodes=nodes[at])
        for at in kept
        for tier in (levels.index(grouping.groups[at].rank) + 1,)
    ]
    title = dict(zip(kept, assign_names(rows, previous), strict=True))
    specs = [
        DomainSpec(
            name=title[at],
            tier=row.tier,
            parent=_parent_name(grouping.groups, at, title),
            nodes=tuple(_own_nodes(columns.nodes, grouping.groups[at])),
            switches=tuple(sorted(columns.names[one] for one in grouping.groups[at].switches)),
            margin=grouping.groups[at].margin,
        )
        for at, row in zip(kept, rows, strict=True)
    ]
    placed = {node for spec in specs for node in spec.nodes}
    unplaced = _unplaced(fabric, plane, grouping, ranks=ranks, placed=placed)
    return build_tree(specs, tiers=tiers, plane=plane.name, unplaced=unplaced), title


def _own_nodes(nodes: Sequence[str | None], group: Group) -> Iterator[str]:
    return (node for host in group.hosts if (node := nodes[host]))


def _nodes_below(nodes: Sequence[str | None], groups: Sequence[Group]) -> list[list[str]]:
    below: list[list[str]] = [[] for _ in groups]
    for at, group in enumerate(groups):
        own = list(_own_nodes(nodes, group))
        above: int | None = at
        while above is not None:
            below[above] += own
            above = groups[above].parent
    return below


def _nameless(
    fabric: Fabric, group: Group, *, tier: int, tiers: Sequence[str], nodes: Sequence[str]
) -> Nameless:
    devices = rows_at(fabric.devices, group.switches)
    ids = {
        found.value
        for device in devices
        for found in device.ids
        if found.kind in (IdKind.NODE_GUID, IdKind.MAC, IdKind.CHASSIS_ID)
    }
    named = tuple(device.name for device in devices if device.name not in ids)
    others = (device.name for device in devices or rows_at(fabric.devices, group.hosts))
    lowest = min(ids) if ids else min(others, default="all")
    return Nameless(
        tier=tier,
        tier_name=tiers[tier - 1],
        nodes=frozenset(nodes),
        switches=named if 0 < len(named) == len(devices) else (),
        lowest_id=lowest.replace(":", ""),
    )


def _parent_name(groups: Sequence[Group], at: int, title: dict[int, str]) -> str | None:
    parent = groups[at].parent
    return None if parent is None else title[parent]


def _unplaced(
    fabric: Fabric, plane: Plane, grouping: Grouping, *, ranks: Ranks, placed: set[str]
) -> Iterator[Unplaced]:
    nodes = columns_of(fabric).nodes
    left = [(at, node) for at in plane.hosts if (node := nodes[at]) and node not in placed]
    ties = {tie.unit: tie for tie in grouping.host_ties}
    links: dict[int, list[int]] = defaultdict(list)
    for edge in plane.host_edges if left else ():
        links[edge.a].append(edge.b)
    for host, node in left:
        if host in ties:
            yield Unplaced(node, tie_reason(fabric, ties[host]))
        elif links[host]:
            where = list_names(fabric.devices[at].name for at in set(links[host]))
            is_spine = any(ranks.rank.get(at) != 1 for at in links[host])
            what = "no leaf" if is_spine else "a switch without hosts of its own"
            yield Unplaced(node, f"cabled to {where}, which is {what}")
        else:
            yield Unplaced(node, f"no link in the {plane.name} plane is known")
