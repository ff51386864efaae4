"""The entry point of the inference: a fabric to its tree and findings.

Selects the plane, ranks and groups its switches, names the domains, and collects the findings. All
of it is pure. Hosts that are not cluster nodes shape the tiers, and are left out of the tree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from topology.findings.link_findings import find_one_sided_links, find_slow_links
from topology.findings.lost_switches import find_lost_switches
from topology.findings.swapped_cables import find_asymmetries
from topology.findings.tier_findings import find_tier_problems
from topology.findings.tree_conformance import find_non_tree_wiring
from topology.findings.tree_findings import explain_tie, find_tree_problems, format_names
from topology.inference.directors import fold_directors
from topology.inference.domain_names import UnnamedDomain, assign_names
from topology.inference.nvlink_domains import (
    CLIQUE_RANK,
    add_clique_tier,
    find_clique_problems,
    find_cliques,
)
from topology.model.errors import ConfigError
from topology.model.fabric import Fabric
from topology.model.facts import Finding, sort_findings
from topology.model.ids import IdKind
from topology.model.tree import (
    DomainSpec,
    TopologyTree,
    Unplaced,
    build_tree,
    find_tier_name_problem,
)
from topology.planes.plane import Plane
from topology.planes.policy import COMPUTE
from topology.tiers.domain_links import find_domain_links
from topology.tiers.ranks import Ranks, rank_switches
from topology.tiers.tier_groups import TierGroup, TierGroups, group_switches

_TIER_NAMES = ("leaf", "spine", "core")


@dataclass(frozen=True, slots=True)
class Inference:
    """The tree of a fabric, and all findings."""

    tree: TopologyTree
    findings: tuple[Finding, ...]
    """Sorted by kind, device and port."""


def tier_names(
    num_tiers: int, configured: Sequence[str] = (), *, has_cliques: bool = False
) -> tuple[str, ...]:
    """Return the tier names bottom-up: the configured names, then the default names.

    The default names are leaf, spine, core, core2 and so on; a tier of cliques below the leaves is
    named `nvlink`. A tier without a configured name keeps its default name, or is `tier-N` if that
    name is configured for a lower tier. This is no error: one cable can add a tier, and must not
    cost the whole tree.

    Raises:
        ConfigError: a name is reserved or listed twice.
    """
    problem = find_tier_name_problem(configured)
    if problem is not None:
        raise ConfigError(f"names of tiers: {problem}")
    lowest = ("nvlink",) if has_cliques else ()
    later = (f"core{number}" for number in range(2, num_tiers))
    default_names = (*lowest, *_TIER_NAMES, *later)[:num_tiers]
    further = (
        f"tier-{tier}" if name in configured else name
        for tier, name in enumerate(default_names[len(configured) :], len(configured) + 1)
    )
    return (*configured, *further)[:num_tiers]


def infer_tree(
    fabric: Fabric,
    plane: Plane,
    *,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> Inference:
    """Return the tree of a plane, byte-identical for the same facts in any order.

    Args:
        fabric: all devices and links.
        plane: a plane of this fabric.
        previous: the last generation, whose domain names are carried over.
        names_of_tiers: bottom-up; the default names if empty.
    """
    folded = fold_directors(fabric, plane)
    plane = folded.plane
    ranks = rank_switches(plane)
    grouping = group_switches(plane, ranks)
    cliques = find_cliques(fabric) if plane.name == COMPUTE else {}
    unfolded = [
        replace(group, switches=tuple(folded.unfold(group.switches))) for group in grouping.groups
    ]
    nested = replace(grouping, groups=add_clique_tier(fabric, unfolded, cliques))
    tree = _build_named_tree(
        fabric, plane, nested, ranks=ranks, previous=previous, names=names_of_tiers
    )
    domain_links = find_domain_links(plane, grouping)
    findings = frozenset[Finding]().union(
        fabric.findings,
        find_one_sided_links(fabric),
        find_slow_links(fabric, plane, grouping),
        find_asymmetries(fabric, plane, grouping=grouping, domain_links=domain_links),
        find_lost_switches(fabric, plane, grouping),
        find_tree_problems(fabric, plane, ranks=ranks, grouping=grouping, tree=tree),
        find_tier_problems(
            fabric, plane, ranks=ranks, grouping=grouping, domain_links=domain_links
        ),
        find_non_tree_wiring(fabric, plane, grouping=grouping, domain_links=domain_links),
        find_clique_problems(fabric, grouping.groups, cliques),
    )
    return Inference(tree, sort_findings(findings))


def _build_named_tree(
    fabric: Fabric,
    plane: Plane,
    grouping: TierGroups,
    *,
    ranks: Ranks,
    previous: TopologyTree | None,
    names: Sequence[str],
) -> TopologyTree:
    """Return the tree of the groups that have nodes."""
    columns = fabric.columns
    nodes = _nodes_below(columns.nodes, grouping.groups)
    groups_with_nodes = [index for index in range(len(grouping.groups)) if nodes[index]]
    levels = sorted({grouping.groups[index].rank for index in groups_with_nodes})
    tiers = tier_names(len(levels), names, has_cliques=CLIQUE_RANK in levels)
    domains = [
        _unnamed_domain(fabric, grouping.groups[index], tier=tier, tiers=tiers, nodes=nodes[index])
        for index in groups_with_nodes
        for tier in (levels.index(grouping.groups[index].rank) + 1,)
    ]
    group_names = dict(zip(groups_with_nodes, assign_names(domains, previous), strict=True))
    specs = [
        DomainSpec(
            name=group_names[index],
            tier=domain.tier,
            parent=None if (above := grouping.groups[index].parent) is None else group_names[above],
            nodes=tuple(_own_nodes(columns.nodes, grouping.groups[index])),
            switches=tuple(
                sorted(columns.names[switch] for switch in grouping.groups[index].switches)
            ),
            margin=grouping.groups[index].margin,
        )
        for index, domain in zip(groups_with_nodes, domains, strict=True)
    ]
    placed = {node for spec in specs for node in spec.nodes}
    unplaced = list(_find_unplaced(fabric, plane, grouping, ranks=ranks, placed=placed))
    return build_tree(specs, tiers=tiers, plane=plane.name, unplaced=unplaced)


def _own_nodes(nodes: Sequence[str | None], group: TierGroup) -> Iterator[str]:
    return (node for host in group.hosts if (node := nodes[host]))


def _nodes_below(nodes: Sequence[str | None], groups: Sequence[TierGroup]) -> list[list[str]]:
    below: list[list[str]] = [[] for _ in groups]
    for group_index, group in enumerate(groups):
        own_nodes = list(_own_nodes(nodes, group))
        ancestor: int | None = group_index
        while ancestor is not None:
            below[ancestor] += own_nodes
            ancestor = groups[ancestor].parent
    return below


def _unnamed_domain(
    fabric: Fabric, group: TierGroup, *, tier: int, tiers: Sequence[str], nodes: Sequence[str]
) -> UnnamedDomain:
    devices = [fabric.devices[index] for index in group.switches]
    ids = {
        identifier.value
        for device in devices
        for identifier in device.ids
        if identifier.kind in (IdKind.NODE_GUID, IdKind.MAC, IdKind.CHASSIS_ID)
    }
    switch_names = tuple(device.name for device in devices if device.name not in ids)
    device_names = (fabric.devices[index].name for index in group.switches or group.hosts)
    lowest = min(ids) if ids else min(device_names, default="all")
    return UnnamedDomain(
        tier=tier,
        tier_name=tiers[tier - 1],
        nodes=frozenset(nodes),
        switches=switch_names if 0 < len(switch_names) == len(devices) else (),
        lowest_id=lowest.replace(":", ""),
    )


def _find_unplaced(
    fabric: Fabric, plane: Plane, grouping: TierGroups, *, ranks: Ranks, placed: set[str]
) -> Iterator[Unplaced]:
    nodes = fabric.columns.nodes
    unplaced_hosts = [
        (device, node) for device in plane.hosts if (node := nodes[device]) and node not in placed
    ]
    ties = {tie.unit: tie for tie in grouping.host_ties}
    links: dict[int, list[int]] = defaultdict(list)
    for edge in plane.host_edges if unplaced_hosts else ():
        links[edge.a].append(edge.b)
    for host, node in unplaced_hosts:
        if host in ties:
            yield Unplaced(node, explain_tie(fabric, ties[host]))
        elif links[host]:
            switch_names = format_names(fabric.devices[device].name for device in set(links[host]))
            is_spine = any(ranks.rank.get(device) != 1 for device in links[host])
            problem = "not a leaf" if is_spine else "a switch without hosts of its own"
            yield Unplaced(node, f"cabled to {switch_names}, which is {problem}")
        else:
            yield Unplaced(node, f"no link in the {plane.name} plane is known")
