"""NVLink domains as a tier below the leaves, where they nest in these.

Hosts of one clique reach each other over NVLink, past every network. A clique whose hosts sit
below several leaf groups is told as it is per group; where most do, NVLink and network cut across
each other, no tree has both, and the network's stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from topology.findings.tree_findings import format_names
from topology.model.fabric import Fabric, columns_of
from topology.model.fabric_columns import MEDIUM_CODES
from topology.model.facts import (
    DeviceKind,
    Finding,
    FindingKind,
    Medium,
    PortName,
    Severity,
    finding_about,
)
from topology.model.lazy_rows import rows_at
from topology.tiers.tier_groups import TierGroup

CLIQUE_RANK = 0
"""Of a domain of NVLink: below the leaves."""
CliqueByHost = Mapping[int, int]
"""Host to the device that stands for its clique."""


def find_cliques(fabric: Fabric) -> dict[int, int]:
    """Return the clique of each host that is in one, not those that are in two. Cost: O(links)."""
    found: dict[int, set[int]] = defaultdict(set)
    columns = columns_of(fabric)
    is_nvlink = columns.media == MEDIUM_CODES[Medium.NVLINK]
    if not is_nvlink.any():
        return {}
    links = np.flatnonzero(is_nvlink[columns.links.a] | is_nvlink[columns.links.b])
    for link in rows_at(fabric.links, links.tolist()):
        ends = fabric.ports[link.a], fabric.ports[link.b]
        for near, far in (ends, ends[::-1]):
            if fabric.devices[near.device].kind is DeviceKind.HOST:
                found[near.device].add(far.device)
    return {host: min(devices) for host, devices in found.items() if len(devices) == 1}


def add_clique_tier(groups: Sequence[TierGroup], cliques: CliqueByHost) -> tuple[TierGroup, ...]:
    """Return the groups with a tier of cliques below the leaves, as they are where none nests.

    The new groups stand after the others, by leaf group and then by clique. A host without a
    clique is a domain of its own there: nothing is as near to it as NVLink would be.
    """
    if not _has_tier(groups, cliques):
        return tuple(groups)
    nested: list[TierGroup] = []
    for at, group in enumerate(groups):
        members: dict[tuple[bool, int], list[int]] = defaultdict(list)
        for host in group.hosts:
            clique = cliques.get(host)
            members[(clique is None, host if clique is None else clique)].append(host)
        for (is_alone, number), hosts in sorted(members.items()):
            switches = () if is_alone else (number,)
            nested.append(TierGroup(CLIQUE_RANK, switches, tuple(hosts), 1.0, parent=at))
    return (*(replace(group, hosts=()) for group in groups), *nested)


def _has_tier(groups: Sequence[TierGroup], cliques: CliqueByHost) -> bool:
    """Return whether more than half of the cliques lie in one leaf group each."""
    places = _groups_by_clique(groups, cliques)
    return 2 * sum(len(leaves) == 1 for leaves in places.values()) > len(places)


def _find_unknown_cliques(
    fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost
) -> Iterator[Finding]:
    """Yield a finding of the hosts of which nobody can know the clique: only they can tell it."""
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
                f"No agent tells the NVLink domain of {format_names(names)}, so each stands alone "
                "in that tier. See that the agent runs there."
            ),
        )


def _groups_by_clique(groups: Sequence[TierGroup], cliques: CliqueByHost) -> dict[int, set[int]]:
    """Return clique to the leaf groups that its hosts are in."""
    places: dict[int, set[int]] = defaultdict(set)
    for at, group in enumerate(groups):
        for host in group.hosts:
            if host in cliques:
                places[cliques[host]].add(at)
    return places


def find_clique_problems(
    fabric: Fabric, groups: Sequence[TierGroup], cliques: CliqueByHost
) -> Iterator[Finding]:
    """Yield a finding per clique in several leaf groups, and one of hosts that say nothing."""
    if _has_tier(groups, cliques):
        yield from _find_unknown_cliques(fabric, groups, cliques)
    for clique, leaves in sorted(_groups_by_clique(groups, cliques).items()):
        if len(leaves) == 1:
            continue
        name = fabric.devices[clique].name
        parts = [_hosts_of(fabric, groups[at], clique, cliques) for at in sorted(leaves)]
        shown = " and ".join(format_names(part) for part in parts)
        yield Finding(
            kind=FindingKind.TIER_MISMATCH,
            device=name,
            port=None,
            severity=Severity.WARNING,
            message=(
                f"The hosts of NVLink domain {name} are below different leaves ({shown}), so it is "
                "no domain of the tree as a whole. Check where their network cables lead."
            ),
            ports=tuple(PortName(host, "") for part in parts for host in part),
        )


def _hosts_of(fabric: Fabric, group: TierGroup, clique: int, cliques: CliqueByHost) -> list[str]:
    return [fabric.devices[host].name for host in group.hosts if cliques.get(host) == clique]
