"""An inference made again where only cables of hosts moved: what else there is stays as it was.

The hosts whose cables moved, and all that cables of hosts join to them, are judged before and after
as a part of their own. When that changes no group of leaves, nothing above them changes. Anything
else, and whatever this cannot tell, is inferred in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from topology.findings.one_sided_links import link_findings
from topology.findings.slow_links import slow_links
from topology.findings.swapped_cables import RARE, symmetry_findings
from topology.findings.tier_findings import tier_findings
from topology.findings.tree_findings import tree_findings
from topology.incremental.group_update import JudgedPart, judge_part, regroup
from topology.incremental.partial_plane import find_part
from topology.inference.nvlink_domains import clique_findings, find_cliques, nest_cliques
from topology.inference.tree_inference import FindingsBySource, Inferred, build_named, infer_all
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Finding
from topology.model.tree import TopologyTree
from topology.planes.cables import pairs_of
from topology.planes.plane import Plane
from topology.planes.policy import COMPUTE
from topology.tiers.domain_links import find_ways
from topology.tiers.ranks import Ranks, rerank
from topology.tiers.tier_groups import Grouping

_NO_RANKS = Ranks({}, ())
_NO_GROUPS = Grouping((), (), (), ())
_NO_TREE = TopologyTree("", (), (), ())


class Extent(StrEnum):
    """How much was inferred anew."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


class Reinferred(NamedTuple):
    """The inference now, and how much of it is new."""

    inferred: Inferred
    extent: Extent


class Site(NamedTuple):
    """A fabric as it is now, and what moved in it."""

    fabric: Fabric
    plane: Plane
    """With the same devices and cables between switches as before."""
    hosts: frozenset[int]
    """At the ends of cables that are new, gone, or of another rate or standing."""
    keeps_links: bool
    """Whether all cables are as they were, but for the numbers of their ports."""


def reinfer(
    last: Inferred,
    site: Site,
    *,
    previous: TopologyTree | None,
    names_of_tiers: Sequence[str] = (),
) -> Reinferred:
    """Return what `infer_all` would.

    Args:
        last: the inference of the fabric before.
        site: the fabric now.
        previous: the tree whose names are carried over.
        names_of_tiers: as the last time.
    """
    found = _Reinferring(last, site, previous, tuple(names_of_tiers)).infer()
    if found is not None:
        return found
    whole = infer_all(
        site.fabric, plane=site.plane, previous=previous, names_of_tiers=names_of_tiers
    )
    return Reinferred(whole, Extent.ALL)


@dataclass(frozen=True, slots=True)
class _Reinferring:
    last: Inferred
    site: Site
    previous: TopologyTree | None
    names: tuple[str, ...]

    def infer(self) -> Reinferred | None:
        last, site = self.last, self.site
        cliques = find_cliques(site.fabric) if site.plane.name == COMPUTE else {}
        if last.has_directors or cliques != last.cliques:
            return None
        if not site.hosts:
            again = self._again(last.grouping, last.ranks, last.findings.symmetry)
            return Reinferred(again, Extent.NOTHING)
        ranks = rerank(last.ranks, site.plane)
        if ranks is None:
            return None
        devices = find_part((last.plane, site.plane), site.hosts)
        old = judge_part(last.fabric, last.plane, last.ranks, devices)
        new = judge_part(site.fabric, site.plane, ranks, devices)
        grouping = regroup(last.grouping, old, new)
        if grouping is None or not (old.part.plane.host_edges and new.part.plane.host_edges):
            return None
        found = self._again(grouping, ranks, self._symmetry(grouping, old, new))
        tree = (last.findings.tree - _of_domains(last)) - _of_part(old) | _of_part(new)
        found = replace(found, findings=found.findings._replace(tree=tree | _of_domains(found)))
        return Reinferred(found, Extent.PART)

    def _again(self, grouping: Grouping, ranks: Ranks, symmetry: frozenset[Finding]) -> Inferred:
        """Return the last inference with other hosts in its leaf groups.

        Of findings about the tree only those about whole domains are new.
        """
        last, fabric, plane = self.last, self.site.fabric, self.site.plane
        tree, titles = self._tree(grouping, ranks)
        tiers, cliques = last.findings.tiers, last.findings.cliques
        if not _has_same_sizes(last.grouping, grouping):
            tiers = frozenset(
                tier_findings(fabric, plane, ranks=ranks, grouping=grouping, ways=last.ways)
            )
        if last.cliques:
            cliques = frozenset(clique_findings(fabric, grouping.groups, last.cliques))
        again = replace(
            last,
            fabric=fabric,
            plane=plane,
            ranks=ranks,
            grouping=grouping,
            tree=tree,
            titles=titles,
            previous=self.previous,
        )
        links, rates = last.findings.links, last.findings.rates
        if not self.site.keeps_links:
            links = frozenset(link_findings(fabric))
            rates = frozenset(slow_links(fabric, plane, grouping))
        local = last.findings.tree - _of_domains(last)
        findings = FindingsBySource(
            links=links,
            symmetry=symmetry,
            rates=rates,
            tree=local | _of_domains(again),
            tiers=tiers,
            treeness=last.findings.treeness,
            cliques=cliques,
        )
        return replace(again, findings=findings)

    def _symmetry(self, grouping: Grouping, old: JudgedPart, new: JudgedPart) -> frozenset[Finding]:
        last, site = self.last, self.site
        parts = ((last.plane, old), (site.plane, new))
        rules = {_is_rare(plane) for plane, _ in parts}
        rules |= {_is_rare(judged.part.plane) for _, judged in parts}
        # A cable to a spine is compared with the spine's group, which no part of hosts has.
        is_on_spine = old.ranks.hosts_on_spines or new.ranks.hosts_on_spines
        if is_on_spine or len(rules - {None}) > 1:
            return frozenset(
                symmetry_findings(site.fabric, site.plane, grouping=grouping, ways=last.ways)
            )
        return (last.findings.symmetry - _symmetry_of(old)) | _symmetry_of(new)

    def _tree(self, grouping: Grouping, ranks: Ranks) -> tuple[TopologyTree, Mapping[int, str]]:
        """Return the tree, made of the last one where every node stays where it is."""
        last = self.last
        has_names = self.previous is last.previous or self.previous is last.tree
        if has_names and self._keeps_nodes(grouping):
            return self._with_margins(grouping), last.titles
        nested = replace(grouping, groups=nest_cliques(grouping.groups, last.cliques))
        return build_named(
            self.site.fabric,
            self.site.plane,
            nested,
            ranks=ranks,
            previous=self.previous,
            names=self.names,
        )

    def _keeps_nodes(self, grouping: Grouping) -> bool:
        """Return whether all nodes stay where they are, and nowhere where they are nowhere."""
        was, now = self.last.grouping, grouping
        nodes = columns_of(self.site.fabric).nodes
        unplaced = {gone.node for gone in self.last.tree.unplaced}
        return (
            was.host_ties == now.host_ties
            and all(
                one.hosts == other.hosts
                for one, other in zip(was.groups, now.groups, strict=True)
                if one is not other
            )
            and not any(nodes[host] in unplaced for host in self.site.hosts)
        )

    def _with_margins(self, grouping: Grouping) -> TopologyTree:
        last = self.last
        margins = {
            last.titles[at]: round(group.margin, 4)
            for at, (group, old) in enumerate(
                zip(grouping.groups, last.grouping.groups, strict=True)
            )
            if group.margin != old.margin and at in last.titles
        }
        if not margins:
            return last.tree
        domains = (
            replace(domain, margin=margins[domain.name]) if domain.name in margins else domain
            for domain in last.tree.domains
        )
        return replace(last.tree, domains=tuple(domains))


def _has_same_sizes(one: Grouping, other: Grouping) -> bool:
    """Return whether groups have as many hosts, and the same hosts are undecided."""
    sizes = ([len(group.hosts) for group in found.groups] for found in (one, other))
    return one.host_ties == other.host_ties and next(sizes) == next(sizes)


def _is_rare(plane: Plane) -> bool | None:
    """Return whether hosts with several cables to one leaf are few enough to be told of.

    None where there are none.
    """
    hosts, _, counts = pairs_of(plane.host_edges)
    is_doubled = counts > 1
    if not is_doubled.any():
        return None
    doubled = np.unique(hosts[is_doubled])
    found, num_leaves = np.unique(hosts, return_counts=True)
    spread = np.count_nonzero(num_leaves[~np.isin(found, doubled)] > 1)
    return bool(spread >= RARE * len(doubled))


def _symmetry_of(judged: JudgedPart) -> frozenset[Finding]:
    part = judged.part
    ways = find_ways(part.plane, judged.grouping)
    return frozenset(
        symmetry_findings(part.fabric, part.plane, grouping=judged.grouping, ways=ways)
    )


def _of_part(judged: JudgedPart) -> frozenset[Finding]:
    """Return what is wrong with the hosts and leaves of a part but for cables."""
    part = judged.part
    return frozenset(
        tree_findings(
            part.fabric, part.plane, ranks=judged.ranks, grouping=judged.grouping, tree=_NO_TREE
        )
    )


def _of_domains(found: Inferred) -> frozenset[Finding]:
    """Return what is wrong with whole domains."""
    return frozenset(
        tree_findings(
            found.fabric, found.plane, ranks=_NO_RANKS, grouping=_NO_GROUPS, tree=found.tree
        )
    )
