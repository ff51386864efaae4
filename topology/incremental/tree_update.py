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

from topology.findings.one_sided_links import find_one_sided_links
from topology.findings.slow_links import find_slow_links
from topology.findings.swapped_cables import MIN_USUAL_PER_ODD, find_asymmetries
from topology.findings.tier_findings import find_tier_problems
from topology.findings.tree_findings import find_tree_problems
from topology.incremental.group_update import GroupedPart, group_part, update_groups
from topology.incremental.partial_plane import find_part
from topology.inference.nvlink_domains import add_clique_tier, find_clique_problems, find_cliques
from topology.inference.tree_inference import (
    FindingsBySource,
    InferenceState,
    build_inference_state,
    build_named_tree,
)
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Finding
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane
from topology.planes.policy import COMPUTE
from topology.tiers.domain_links import find_domain_links
from topology.tiers.ranks import Ranks, update_ranks
from topology.tiers.tier_groups import TierGroups

_NO_RANKS = Ranks({}, ())
_NO_GROUPS = TierGroups((), (), (), ())
_NO_TREE = TopologyTree("", (), (), ())


class InferenceScope(StrEnum):
    """How much was inferred anew."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


class InferenceUpdate(NamedTuple):
    """The inference now, and how much of it is new."""

    state: InferenceState
    scope: InferenceScope


class ChangedPlane(NamedTuple):
    """A fabric as it is now, and what moved in it."""

    fabric: Fabric
    plane: Plane
    """With the same devices and cables between switches as before."""
    hosts: frozenset[int]
    """At the ends of cables that are new, gone, or of another rate or standing."""
    keeps_links: bool
    """Whether all cables are as they were, but for the numbers of their ports."""


def update_inference(
    last: InferenceState,
    site: ChangedPlane,
    *,
    previous: TopologyTree | None,
    names_of_tiers: Sequence[str] = (),
) -> InferenceUpdate:
    """Return what `build_inference_state` would.

    Args:
        last: the inference of the fabric before.
        site: the fabric now.
        previous: the tree whose names are carried over.
        names_of_tiers: as the last time.
    """
    found = _InferenceUpdater(last, site, previous, tuple(names_of_tiers)).infer()
    if found is not None:
        return found
    whole = build_inference_state(
        site.fabric, plane=site.plane, previous=previous, names_of_tiers=names_of_tiers
    )
    return InferenceUpdate(whole, InferenceScope.ALL)


@dataclass(frozen=True, slots=True)
class _InferenceUpdater:
    last: InferenceState
    changed_plane: ChangedPlane
    previous: TopologyTree | None
    names: tuple[str, ...]

    def infer(self) -> InferenceUpdate | None:
        last, site = self.last, self.changed_plane
        cliques = find_cliques(site.fabric) if site.plane.name == COMPUTE else {}
        if last.has_directors or cliques != last.cliques:
            return None
        if not site.hosts:
            again = self._replace_hosts(last.grouping, last.ranks, last.findings.symmetry)
            return InferenceUpdate(again, InferenceScope.NOTHING)
        ranks = update_ranks(last.ranks, site.plane)
        if ranks is None:
            return None
        devices = find_part((last.plane, site.plane), site.hosts)
        old = group_part(last.fabric, last.plane, last.ranks, devices)
        new = group_part(site.fabric, site.plane, ranks, devices)
        grouping = update_groups(last.grouping, old, new)
        if grouping is None or not (old.part.plane.host_edges and new.part.plane.host_edges):
            return None
        found = self._replace_hosts(grouping, ranks, self._symmetry(grouping, old, new))
        tree = (last.findings.tree - _domain_findings(last)) - _part_findings(old) | _part_findings(
            new
        )
        found = replace(
            found, findings=found.findings._replace(tree=tree | _domain_findings(found))
        )
        return InferenceUpdate(found, InferenceScope.PART)

    def _replace_hosts(
        self, grouping: TierGroups, ranks: Ranks, symmetry: frozenset[Finding]
    ) -> InferenceState:
        """Return the last inference with other hosts in its leaf groups.

        Of findings about the tree only those about whole domains are new.
        """
        last, fabric, plane = self.last, self.changed_plane.fabric, self.changed_plane.plane
        tree, titles = self._tree(grouping, ranks)
        tiers, cliques = last.findings.tiers, last.findings.cliques
        if not _has_same_sizes(last.grouping, grouping):
            tiers = frozenset(
                find_tier_problems(
                    fabric, plane, ranks=ranks, grouping=grouping, domain_links=last.domain_links
                )
            )
        if last.cliques:
            cliques = frozenset(find_clique_problems(fabric, grouping.groups, last.cliques))
        again = replace(
            last,
            fabric=fabric,
            plane=plane,
            ranks=ranks,
            grouping=grouping,
            tree=tree,
            group_names=titles,
            previous=self.previous,
        )
        links, rates = last.findings.links, last.findings.rates
        if not self.changed_plane.keeps_links:
            links = frozenset(find_one_sided_links(fabric))
            rates = frozenset(find_slow_links(fabric, plane, grouping))
        local = last.findings.tree - _domain_findings(last)
        findings = FindingsBySource(
            links=links,
            symmetry=symmetry,
            rates=rates,
            tree=local | _domain_findings(again),
            tiers=tiers,
            treeness=last.findings.treeness,
            cliques=cliques,
        )
        return replace(again, findings=findings)

    def _symmetry(
        self, grouping: TierGroups, old: GroupedPart, new: GroupedPart
    ) -> frozenset[Finding]:
        last, site = self.last, self.changed_plane
        parts = ((last.plane, old), (site.plane, new))
        rules = {_are_doubled_cables_rare(plane) for plane, _ in parts}
        rules |= {_are_doubled_cables_rare(judged.part.plane) for _, judged in parts}
        # A cable to a spine is compared with the spine's group, which no part of hosts has.
        is_on_spine = old.ranks.hosts_on_spines or new.ranks.hosts_on_spines
        if is_on_spine or len(rules - {None}) > 1:
            return frozenset(
                find_asymmetries(
                    site.fabric, site.plane, grouping=grouping, domain_links=last.domain_links
                )
            )
        return (last.findings.symmetry - _symmetry_findings(old)) | _symmetry_findings(new)

    def _tree(self, grouping: TierGroups, ranks: Ranks) -> tuple[TopologyTree, Mapping[int, str]]:
        """Return the tree, made of the last one where every node stays where it is."""
        last = self.last
        has_names = self.previous is last.previous or self.previous is last.tree
        if has_names and self._keeps_nodes(grouping):
            return self._with_margins(grouping), last.group_names
        nested = replace(grouping, groups=add_clique_tier(grouping.groups, last.cliques))
        return build_named_tree(
            self.changed_plane.fabric,
            self.changed_plane.plane,
            nested,
            ranks=ranks,
            previous=self.previous,
            names=self.names,
        )

    def _keeps_nodes(self, grouping: TierGroups) -> bool:
        """Return whether all nodes stay where they are, and nowhere where they are nowhere."""
        was, now = self.last.grouping, grouping
        nodes = columns_of(self.changed_plane.fabric).nodes
        unplaced = {gone.node for gone in self.last.tree.unplaced}
        return (
            was.host_ties == now.host_ties
            and all(
                one.hosts == other.hosts
                for one, other in zip(was.groups, now.groups, strict=True)
                if one is not other
            )
            and not any(nodes[host] in unplaced for host in self.changed_plane.hosts)
        )

    def _with_margins(self, grouping: TierGroups) -> TopologyTree:
        last = self.last
        margins = {
            last.group_names[at]: round(group.margin, 4)
            for at, (group, old) in enumerate(
                zip(grouping.groups, last.grouping.groups, strict=True)
            )
            if group.margin != old.margin and at in last.group_names
        }
        if not margins:
            return last.tree
        domains = (
            replace(domain, margin=margins[domain.name]) if domain.name in margins else domain
            for domain in last.tree.domains
        )
        return replace(last.tree, domains=tuple(domains))


def _has_same_sizes(one: TierGroups, other: TierGroups) -> bool:
    """Return whether groups have as many hosts, and the same hosts are undecided."""
    sizes = ([len(group.hosts) for group in found.groups] for found in (one, other))
    return one.host_ties == other.host_ties and next(sizes) == next(sizes)


def _are_doubled_cables_rare(plane: Plane) -> bool | None:
    """Return whether hosts with several cables to one leaf are few enough to be told of.

    None where there are none.
    """
    hosts, _, counts = plane.host_edges.pairs
    is_doubled = counts > 1
    if not is_doubled.any():
        return None
    doubled = np.unique(hosts[is_doubled])
    found, num_leaves = np.unique(hosts, return_counts=True)
    spread = np.count_nonzero(num_leaves[~np.isin(found, doubled)] > 1)
    return bool(spread >= MIN_USUAL_PER_ODD * len(doubled))


def _symmetry_findings(judged: GroupedPart) -> frozenset[Finding]:
    part = judged.part
    ways = find_domain_links(part.plane, judged.grouping)
    return frozenset(
        find_asymmetries(part.fabric, part.plane, grouping=judged.grouping, domain_links=ways)
    )


def _part_findings(judged: GroupedPart) -> frozenset[Finding]:
    """Return what is wrong with the hosts and leaves of a part but for cables."""
    part = judged.part
    return frozenset(
        find_tree_problems(
            part.fabric, part.plane, ranks=judged.ranks, grouping=judged.grouping, tree=_NO_TREE
        )
    )


def _domain_findings(found: InferenceState) -> frozenset[Finding]:
    """Return what is wrong with whole domains."""
    return frozenset(
        find_tree_problems(
            found.fabric, found.plane, ranks=_NO_RANKS, grouping=_NO_GROUPS, tree=found.tree
        )
    )
