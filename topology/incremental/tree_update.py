"""The inference updated after only host cables moved; everything else stays as it was.

The hosts with moved cables, and all devices that host cables connect to them, are inferred as a
separate part before and after the change. If no group of leaves changes, nothing above the leaves
changes. In all other cases the full inference runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from topology.findings.lost_switches import find_lost_switches
from topology.findings.one_sided_links import find_one_sided_links
from topology.findings.slow_links import find_slow_links
from topology.findings.swapped_cables import find_asymmetries
from topology.findings.tier_findings import find_tier_problems
from topology.findings.tree_findings import find_tree_problems
from topology.findings.usual_counts import (
    MIN_USUAL_PER_ODD,
    CountsByUsual,
    find_designed_host_links,
)
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
_NO_GROUPS = TierGroups((), (), (), (), ())
_NO_TREE = TopologyTree("", (), (), ())


class InferenceScope(StrEnum):
    """How much was inferred again."""

    NOTHING = "nothing"
    PART = "part"
    ALL = "all"


class InferenceUpdate(NamedTuple):
    """The new inference, and how much of it was inferred again."""

    state: InferenceState
    scope: InferenceScope


class ChangedPlane(NamedTuple):
    """The new fabric and plane, and the hosts with moved cables."""

    fabric: Fabric
    plane: Plane
    """A plane with the same devices and the same cables between switches as before."""
    hosts: frozenset[int]
    """The hosts at the ends of cables that were added, removed or changed otherwise."""
    keeps_links: bool
    """Whether all cables are unchanged, apart from port numbers."""


def update_inference(
    last: InferenceState,
    site: ChangedPlane,
    *,
    previous: TopologyTree | None,
    names_of_tiers: Sequence[str] = (),
) -> InferenceUpdate:
    """Return the result of `build_inference_state`, updated from the last one if possible.

    Args:
        last: the inference of the fabric before.
        site: the new fabric and plane.
        previous: the tree whose names are carried over.
        names_of_tiers: the same names as for `last`.
    """
    update = _InferenceUpdater(last, site, previous, tuple(names_of_tiers)).infer()
    if update is not None:
        return update
    full_inference = build_inference_state(
        site.fabric, plane=site.plane, previous=previous, names_of_tiers=names_of_tiers
    )
    return InferenceUpdate(full_inference, InferenceScope.ALL)


@dataclass(frozen=True, slots=True)
class _InferenceUpdater:
    last: InferenceState
    changed_plane: ChangedPlane
    previous: TopologyTree | None
    names: tuple[str, ...]

    def infer(self) -> InferenceUpdate | None:
        last_state, site = self.last, self.changed_plane
        cliques = find_cliques(site.fabric) if site.plane.name == COMPUTE else {}
        if last_state.has_directors or cliques != last_state.cliques:
            return None
        if not site.hosts:
            updated_state = self._replace_hosts(
                last_state.grouping, last_state.ranks, last_state.findings.symmetry
            )
            return InferenceUpdate(updated_state, InferenceScope.NOTHING)
        ranks = update_ranks(last_state.ranks, site.plane)
        if ranks is None:
            return None
        devices = find_part((last_state.plane, site.plane), site.hosts)
        old = group_part(last_state.fabric, last_state.plane, last_state.ranks, devices)
        new = group_part(site.fabric, site.plane, ranks, devices)
        grouping = update_groups(last_state.grouping, old, new)
        if grouping is None or not (old.part.plane.host_edges and new.part.plane.host_edges):
            return None
        updated_state = self._replace_hosts(grouping, ranks, self._symmetry(grouping, old, new))
        tree = (last_state.findings.tree - _domain_findings(last_state)) - _part_findings(
            old
        ) | _part_findings(new)
        updated_state = replace(
            updated_state,
            findings=updated_state.findings._replace(tree=tree | _domain_findings(updated_state)),
        )
        return InferenceUpdate(updated_state, InferenceScope.PART)

    def _replace_hosts(
        self, grouping: TierGroups, ranks: Ranks, symmetry: frozenset[Finding]
    ) -> InferenceState:
        """Return the last inference with other hosts in its leaf groups.

        Of the findings about the tree, only those about complete domains are computed again.
        """
        last, fabric, plane = self.last, self.changed_plane.fabric, self.changed_plane.plane
        tree, group_names = self._tree(grouping, ranks)
        tiers, cliques = last.findings.tiers, last.findings.cliques
        if not _has_same_sizes(last.grouping, grouping):
            tiers = frozenset(
                find_tier_problems(
                    fabric, plane, ranks=ranks, grouping=grouping, domain_links=last.domain_links
                )
            )
        if last.cliques:
            cliques = frozenset(find_clique_problems(fabric, grouping.groups, last.cliques))
        updated = replace(
            last,
            fabric=fabric,
            plane=plane,
            ranks=ranks,
            grouping=grouping,
            tree=tree,
            group_names=group_names,
            previous=self.previous,
        )
        links, rates = last.findings.links, last.findings.rates
        switches = last.findings.switches
        if not self.changed_plane.keeps_links:
            switches = frozenset(find_lost_switches(fabric, plane, grouping))
            links = frozenset(find_one_sided_links(fabric))
            rates = frozenset(find_slow_links(fabric, plane, grouping))
        local = last.findings.tree - _domain_findings(last)
        findings = FindingsBySource(
            links=links,
            symmetry=symmetry,
            switches=switches,
            rates=rates,
            tree=local | _domain_findings(updated),
            tiers=tiers,
            treeness=last.findings.treeness,
            cliques=cliques,
        )
        return replace(updated, findings=findings)

    def _symmetry(
        self, grouping: TierGroups, old: GroupedPart, new: GroupedPart
    ) -> frozenset[Finding]:
        last_state, site = self.last, self.changed_plane
        parts = ((last_state.plane, old), (site.plane, new))
        rules = {_are_doubled_cables_rare(plane) for plane, _ in parts}
        rules |= {_are_doubled_cables_rare(grouped_part.part.plane) for _, grouped_part in parts}
        # A cable to a spine is compared with the spine's group, which is not in the part.
        is_on_spine = old.ranks.hosts_on_spines or new.ranks.hosts_on_spines
        # Hosts are compared with the hosts of the whole plane, also with those outside of the part.
        counts = find_designed_host_links(site.plane, grouping)
        has_other_counts = counts != find_designed_host_links(last_state.plane, last_state.grouping)
        if is_on_spine or has_other_counts or len(rules - {None}) > 1:
            return frozenset(
                find_asymmetries(
                    site.fabric, site.plane, grouping=grouping, domain_links=last_state.domain_links
                )
            )
        old_findings, new_findings = (_symmetry_findings(part, counts) for part in (old, new))
        return (last_state.findings.symmetry - old_findings) | new_findings

    def _tree(self, grouping: TierGroups, ranks: Ranks) -> tuple[TopologyTree, Mapping[int, str]]:
        """Return the tree, updated from the last one if every node keeps its place."""
        last_state = self.last
        has_names = self.previous is last_state.previous or self.previous is last_state.tree
        if has_names and self._keeps_nodes(grouping):
            return self._with_margins(grouping), last_state.group_names
        fabric = self.changed_plane.fabric
        groups = add_clique_tier(fabric, grouping.groups, last_state.cliques)
        nested = replace(grouping, groups=groups)
        return build_named_tree(
            fabric,
            self.changed_plane.plane,
            nested,
            ranks=ranks,
            previous=self.previous,
            names=self.names,
        )

    def _keeps_nodes(self, grouping: TierGroups) -> bool:
        """Return whether all placed nodes keep their place, and all other nodes stay unplaced."""
        was, now = self.last.grouping, grouping
        nodes = columns_of(self.changed_plane.fabric).nodes
        unplaced = {unplaced_node.node for unplaced_node in self.last.tree.unplaced}
        return (
            was.host_ties == now.host_ties
            and all(
                old_group.hosts == new_group.hosts
                for old_group, new_group in zip(was.groups, now.groups, strict=True)
                if old_group is not new_group
            )
            and not any(nodes[host] in unplaced for host in self.changed_plane.hosts)
        )

    def _with_margins(self, grouping: TierGroups) -> TopologyTree:
        last_state = self.last
        margins = {
            last_state.group_names[group_index]: round(group.margin, 4)
            for group_index, (group, old) in enumerate(
                zip(grouping.groups, last_state.grouping.groups, strict=True)
            )
            if group.margin != old.margin and group_index in last_state.group_names
        }
        if not margins:
            return last_state.tree
        domains = (
            replace(domain, margin=margins[domain.name]) if domain.name in margins else domain
            for domain in last_state.tree.domains
        )
        return replace(last_state.tree, domains=tuple(domains))


def _has_same_sizes(old_grouping: TierGroups, new_grouping: TierGroups) -> bool:
    """Return whether all groups have as many hosts, and the same hosts are between groups."""
    sizes = (
        [len(group.hosts) for group in grouping.groups] for grouping in (old_grouping, new_grouping)
    )
    return (
        old_grouping.host_ties == new_grouping.host_ties
        and old_grouping.divided_hosts == new_grouping.divided_hosts
        and next(sizes) == next(sizes)
    )


def _are_doubled_cables_rare(plane: Plane) -> bool | None:
    """Return whether hosts with several cables to one leaf are few enough to be reported.

    None if there are no such hosts.
    """
    hosts, _, counts = plane.host_edges.pairs
    is_doubled = counts > 1
    if not is_doubled.any():
        return None
    doubled = np.unique(hosts[is_doubled])
    distinct_hosts, num_leaves = np.unique(hosts, return_counts=True)
    spread = np.count_nonzero(num_leaves[~np.isin(distinct_hosts, doubled)] > 1)
    return bool(spread >= MIN_USUAL_PER_ODD * len(doubled))


def _symmetry_findings(grouped_part: GroupedPart, host_counts: CountsByUsual) -> frozenset[Finding]:
    part = grouped_part.part
    domain_links = find_domain_links(part.plane, grouped_part.grouping)
    return frozenset(
        find_asymmetries(
            part.fabric,
            part.plane,
            grouping=grouped_part.grouping,
            domain_links=domain_links,
            host_counts=host_counts,
        )
    )


def _part_findings(grouped_part: GroupedPart) -> frozenset[Finding]:
    """Return the findings about the hosts and leaves of a part, without those about cables."""
    part = grouped_part.part
    return frozenset(
        find_tree_problems(
            part.fabric,
            part.plane,
            ranks=grouped_part.ranks,
            grouping=grouped_part.grouping,
            tree=_NO_TREE,
        )
    )


def _domain_findings(state: InferenceState) -> frozenset[Finding]:
    """Return the findings about complete domains."""
    return frozenset(
        find_tree_problems(
            state.fabric, state.plane, ranks=_NO_RANKS, grouping=_NO_GROUPS, tree=state.tree
        )
    )
