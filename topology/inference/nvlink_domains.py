"""NVLink domains (cliques) as a tier below the leaves, if they nest in leaf groups.

The tier concerns every node, also those without a clique. So it needs witnesses: a share of the
nodes must report cliques. Hosts of one clique reach each other over NVLink, without any network. A
clique whose hosts are below several leaf groups becomes one domain per group. If most cliques are
like that, NVLink and the network cut across each other: no tree can show both, and the tree shows
the network.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from topology.findings.tree_findings import format_names
from topology.model.fabric import MEDIUM_CODES, Fabric
from topology.model.facts import (
    DeviceKind,
    Finding,
    FindingKind,
    Medium,
    PortName,
    Severity,
    finding_about,
)
from topology.tiers.tier_groups import TierGroup

CLIQUE_RANK = 0
"""The rank of an NVLink domain: below the leaves."""
MIN_CLIQUE_HOSTS = 2
"""Hosts that must report a clique below their leaf; the word of one host adds no tier."""
MIN_CLIQUE_PERCENT = 5
"""Share of all nodes that these hosts must be: one rack of 18 in 360 nodes, and not two in 128."""
CliqueByHost = Mapping[int, int]
"""Host to the device that represents its clique."""


def find_cliques(fabric: Fabric) -> dict[int, int]:
    """Return the clique of each host that reports exactly one. Cost: O(links).

    Only a host's own NVLink port shows its clique: another host's report about it does not count.
    """
    cliques_by_host: dict[int, set[int]] = defaultdict(set)
    columns = fabric.columns
    is_nvlink = columns.media == MEDIUM_CODES[Medium.NVLINK]
    if not is_nvlink.any():
        return {}
    links = np.flatnonzero(is_nvlink[columns.links.a] | is_nvlink[columns.links.b])
    for link in fabric.links.at(links.tolist()):
        ends = fabric.ports[link.a], fabric.ports[link.b]
        for host_end, clique_end in (ends, ends[::-1]):
            is_own = host_end.medium is Medium.NVLINK
            kinds = (fabric.devices[end.device].kind for end in (host_end, clique_end))
            if is_own and tuple(kinds) == (DeviceKind.HOST, DeviceKind.SWITCH):
                cliques_by_host[host_end.device].add(clique_end.device)
    return {host: min(devices) for host, devices in cliques_by_host.items() if len(devices) == 1}


def add_clique_tier(
    fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost
) -> tuple[TierGroup, ...]:
    """Return the groups with a tier of cliques below the leaves; unchanged if cliques do not nest.

    The new groups follow the others, by leaf group and then by clique. A host without a clique is a
    domain alone: no other host is as near to it as NVLink would make it.
    """
    if not _has_tier(fabric, groups, cliques):
        return tuple(groups)
    nested: list[TierGroup] = []
    for group_index, group in enumerate(groups):
        members: dict[tuple[bool, int], list[int]] = defaultdict(list)
        for host in group.hosts:
            clique = cliques.get(host)
            members[(clique is None, host if clique is None else clique)].append(host)
        for (is_alone, number), hosts in sorted(members.items()):
            switches = () if is_alone else (number,)
            nested.append(TierGroup(CLIQUE_RANK, switches, tuple(hosts), 1.0, parent=group_index))
    return (*(replace(group, hosts=()) for group in groups), *nested)


def _has_tier(fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost) -> bool:
    """Return whether enough hosts are in cliques, and most of them below the leaf of their clique.

    The leaf of a clique is the leaf group of most of its hosts. Hosts are counted, not cliques, so
    that one host that reports another clique than its own neither adds the tier nor takes it away.
    """
    hosts_by_clique: dict[int, Counter[int]] = defaultdict(Counter)
    for group_index, group in enumerate(groups):
        for host in group.hosts:
            if host in cliques:
                hosts_by_clique[cliques[host]][group_index] += 1
    num_nested = sum(
        counts.most_common(1)[0][1]
        for counts in hosts_by_clique.values()
        if len(counts) == 1 or 2 * max(counts.values()) > counts.total()
    )
    num_hosts = sum(counts.total() for counts in hosts_by_clique.values())
    return 2 * num_nested > num_hosts and num_nested >= _count_needed_hosts(fabric, groups)


def _count_needed_hosts(fabric: Fabric, groups: Sequence[TierGroup]) -> int:
    """Return how many hosts below the leaf of their clique the tier needs."""
    nodes = fabric.columns.nodes
    num_nodes = sum(nodes[host] is not None for group in groups for host in group.hosts)
    return max(MIN_CLIQUE_HOSTS, -(-num_nodes * MIN_CLIQUE_PERCENT // 100))


def _find_few_cliques(
    fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost
) -> Iterator[Finding]:
    """Yield a finding that names the hosts in cliques if they are too few for a tier."""
    hosts = [host for group in groups for host in group.hosts if host in cliques]
    num_needed = _count_needed_hosts(fabric, groups)
    if MIN_CLIQUE_HOSTS <= len(hosts) < num_needed:
        names = sorted(fabric.devices[host].name for host in hosts)
        yield finding_about(
            FindingKind.TIER_MISMATCH,
            names,
            severity=Severity.WARNING,
            message=(
                f"Only {format_names(names)} report an NVLink domain. A tier of NVLink domains "
                f"concerns all nodes, and needs {num_needed} hosts that report one "
                f"({MIN_CLIQUE_PERCENT} %), so the tree has none. Check these reports if the hosts "
                "are in no NVLink domain."
            ),
        )


def _find_unknown_cliques(
    fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost
) -> Iterator[Finding]:
    """Yield a finding about hosts without a report: only the agent on a host reports its clique."""
    names = sorted(
        fabric.devices[host].name
        for group in groups
        for host in group.hosts
        if host not in cliques and not fabric.devices[host].has_report
    )
    if names:
        yield finding_about(
            FindingKind.UNDECIDABLE,
            names,
            severity=Severity.WARNING,
            message=(
                f"No agent reports the NVLink domain of {format_names(names)}, so each host is a "
                "domain alone in that tier. Check that the agent runs there."
            ),
        )


def _groups_by_clique(groups: Sequence[TierGroup], cliques: CliqueByHost) -> dict[int, set[int]]:
    """Return the leaf groups of each clique."""
    groups_by_clique: dict[int, set[int]] = defaultdict(set)
    for group_index, group in enumerate(groups):
        for host in group.hosts:
            if host in cliques:
                groups_by_clique[cliques[host]].add(group_index)
    return groups_by_clique


def find_clique_problems(
    fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost
) -> Iterator[Finding]:
    """Yield the findings about cliques: too few, in several leaf groups, hosts without a report."""
    if _has_tier(fabric, groups, cliques):
        yield from _find_unknown_cliques(fabric, groups, cliques)
    yield from _find_few_cliques(fabric, groups, cliques)
    for clique, leaves in sorted(_groups_by_clique(groups, cliques).items()):
        if len(leaves) == 1:
            continue
        name = fabric.devices[clique].name
        hosts_by_group = [
            _hosts_of(fabric, groups[group_index], clique, cliques)
            for group_index in sorted(leaves)
        ]
        shown_groups = " and ".join(format_names(hosts) for hosts in hosts_by_group)
        yield Finding(
            kind=FindingKind.TIER_MISMATCH,
            device=name,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"The hosts of NVLink domain {name} are below different leaves ({shown_groups}), "
                "so it is not one domain of the tree. Check where their network cables lead."
            ),
            ports=tuple(PortName(host, "") for hosts in hosts_by_group for host in hosts),
        )


def _hosts_of(fabric: Fabric, group: TierGroup, clique: int, cliques: CliqueByHost) -> list[str]:
    return [fabric.devices[host].name for host in group.hosts if cliques.get(host) == clique]
