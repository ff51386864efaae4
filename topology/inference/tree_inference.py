"""A fabric to its tree: select the plane, rank, group, name, and say what is wrong.

The one entry to the inference; everything it calls is pure. Hosts that are no cluster nodes
shape the tiers and are left out of the tree afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from topology.findings.one_sided_links import find_one_sided_links
from topology.findings.slow_links import find_slow_links
from topology.findings.swapped_cables import find_asymmetries
from topology.findings.tier_findings import find_tier_problems
from topology.findings.tree_findings import format_names, explain_tie, find_tree_problems
from topology.findings.treeness import find_non_tree_wiring
from topology.inference.directors import fold_directors
from topology.inference.domain_names import UnnamedDomain, assign_names
from topology.inference.nvlink_domains import (
    CLIQUE_RANK,
    CliqueByHost,
    find_clique_problems,
    find_cliques,
    add_clique_tier,
)
from topology.model.errors import ConfigError, show
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Finding, sort_findings
from topology.model.ids import IdKind
from topology.model.lazy_rows import rows_at
from topology.model.tree import DomainSpec, TopologyTree, Unplaced, build_tree
from topology.planes.plane import Plane, select_compute_plane
from topology.planes.policy import COMPUTE
from topology.tiers.domain_links import DomainLinks, find_domain_links
from topology.tiers.ranks import Ranks, rank_switches
from topology.tiers.tier_groups import TierGroup, TierGroups, group_switches

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


def infer_tree(
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
    found = build_inference_state(
        fabric, plane=plane, previous=previous, names_of_tiers=names_of_tiers
    )
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
class InferenceState:
    """An inference, and all that led to it: what is made of it again when little changes."""

    fabric: Fabric
    plane: Plane
    """Directors as one switch each."""
    has_directors: bool
    ranks: Ranks
    grouping: TierGroups
    domain_links: DomainLinks
    cliques: CliqueByHost
    tree: TopologyTree
    group_names: Mapping[int, str]
    """Name of each group's domain; groups without nodes are missing."""
    previous: TopologyTree | None
    """Whose names were carried over."""
    findings: FindingsBySource

    @property
    def inference(self) -> Inference:
        """The tree and all findings."""
        found = frozenset[Finding]().union(self.fabric.findings, *self.findings)
        return Inference(self.tree, sort_findings(found))


def build_inference_state(
    fabric: Fabric,
    *,
    plane: Plane | None = None,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> InferenceState:
    """Return what `infer` does, and all that led to it."""
    folded = fold_directors(fabric, plane or select_compute_plane(fabric))
    plane = folded.plane
    ranks = rank_switches(plane)
    grouping = group_switches(plane, ranks)
    ways = find_domain_links(plane, grouping)
    cliques = find_cliques(fabric) if plane.name == COMPUTE else {}
    unfolded = [
        replace(group, switches=tuple(folded.unfold(group.switches))) for group in grouping.groups
    ]
    nested = replace(grouping, groups=add_clique_tier(unfolded, cliques))
    tree, titles = build_named_tree(
        fabric, plane, nested, ranks=ranks, previous=previous, names=names_of_tiers
    )
    found = InferenceState(
        fabric=fabric,
        plane=plane,
        has_directors=bool(folded.members),
        ranks=ranks,
        grouping=grouping,
        domain_links=ways,
        cliques=cliques,
        tree=tree,
        group_names=titles,
        previous=previous,
        findings=FindingsBySource(),
    )
    return replace(found, findings=_collect_findings(found))


def _collect_findings(found: InferenceState) -> FindingsBySource:
    fabric, plane, grouping, ways = found.fabric, found.plane, found.grouping, found.domain_links
    ranks = found.ranks
    return FindingsBySource(
        links=frozenset(find_one_sided_links(fabric)),
        symmetry=frozenset(find_asymmetries(fabric, plane, grouping=grouping, domain_links=ways)),
        rates=frozenset(find_slow_links(fabric, plane, grouping)),
        tree=frozenset(
            find_tree_problems(fabric, plane, ranks=ranks, grouping=grouping, tree=found.tree)
        ),
        tiers=frozenset(
            find_tier_problems(fabric, plane, ranks=ranks, grouping=grouping, domain_links=ways)
        ),
        treeness=frozenset(
            find_non_tree_wiring(fabric, plane, grouping=grouping, domain_links=ways)
        ),
        cliques=frozenset(find_clique_problems(fabric, grouping.groups, found.cliques)),
    )


def build_named_tree(
    fabric: Fabric,
    plane: Plane,
    grouping: TierGroups,
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
    tiers = tier_names(len(levels), names, has_cliques=CLIQUE_RANK in levels)
    rows = [
        _unnamed_domain(fabric, grouping.groups[at], tier=tier, tiers=tiers, nodes=nodes[at])
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
    unplaced = _find_unplaced(fabric, plane, grouping, ranks=ranks, placed=placed)
    return build_tree(specs, tiers=tiers, plane=plane.name, unplaced=unplaced), title


def _own_nodes(nodes: Sequence[str | None], group: TierGroup) -> Iterator[str]:
    return (node for host in group.hosts if (node := nodes[host]))


def _nodes_below(nodes: Sequence[str | None], groups: Sequence[TierGroup]) -> list[list[str]]:
    below: list[list[str]] = [[] for _ in groups]
    for at, group in enumerate(groups):
        own = list(_own_nodes(nodes, group))
        above: int | None = at
        while above is not None:
            below[above] += own
            above = groups[above].parent
    return below


def _unnamed_domain(
    fabric: Fabric, group: TierGroup, *, tier: int, tiers: Sequence[str], nodes: Sequence[str]
) -> UnnamedDomain:
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
    return UnnamedDomain(
        tier=tier,
        tier_name=tiers[tier - 1],
        nodes=frozenset(nodes),
        switches=named if 0 < len(named) == len(devices) else (),
        lowest_id=lowest.replace(":", ""),
    )


def _parent_name(groups: Sequence[TierGroup], at: int, title: dict[int, str]) -> str | None:
    parent = groups[at].parent
    return None if parent is None else title[parent]


def _find_unplaced(
    fabric: Fabric, plane: Plane, grouping: TierGroups, *, ranks: Ranks, placed: set[str]
) -> Iterator[Unplaced]:
    nodes = columns_of(fabric).nodes
    left = [(at, node) for at in plane.hosts if (node := nodes[at]) and node not in placed]
    ties = {tie.unit: tie for tie in grouping.host_ties}
    links: dict[int, list[int]] = defaultdict(list)
    for edge in plane.host_edges if left else ():
        links[edge.a].append(edge.b)
    for host, node in left:
        if host in ties:
            yield Unplaced(node, explain_tie(fabric, ties[host]))
        elif links[host]:
            where = format_names(fabric.devices[at].name for at in set(links[host]))
            is_spine = any(ranks.rank.get(at) != 1 for at in links[host])
            what = "no leaf" if is_spine else "a switch without hosts of its own"
            yield Unplaced(node, f"cabled to {where}, which is {what}")
        else:
            yield Unplaced(node, f"no link in the {plane.name} plane is known")
