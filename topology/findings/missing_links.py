"""Cables that are absent although symmetry expects them, and an end would report them.

The expected number is what most peers have: hosts of one leaf group have the same number of links,
and leaves below one group of spines have the same number of up-links. Where many peers have fewer,
that number is expected too (see `usual_counts`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from topology.findings.absent_cables import AbsentCables, infer_absent_cables
from topology.findings.port_cohorts import NO_GROUP, Cohort, build_group_columns, find_cohorts
from topology.findings.tree_findings import format_links
from topology.findings.usual_counts import (
    MIN_USUAL_PER_ODD,
    CountsByUsual,
    count_host_links,
    expected_count,
    find_designed_by_usual,
    find_most_frequent,
)
from topology.findings.usual_ports import CableIndex, LinkedPorts, UsualPorts
from topology.model.fabric import Fabric, FabricPort
from topology.model.fabric_columns import Index
from topology.model.facts import Finding, FindingKind, Impact, Medium, PortName, Severity
from topology.model.ids import natural_key
from topology.model.pair_counts import PairCounts
from topology.planes.plane import Plane
from topology.tiers.domain_links import DomainLinks
from topology.tiers.tier_groups import TierGroups

DENSE_SHARE = 2 / 3
"""Share of pairs with a cable from which an absent pair is a gap and not the design."""


def find_missing_links(
    fabric: Fabric,
    plane: Plane,
    *,
    grouping: TierGroups,
    domain_links: DomainLinks,
    misplaced: set[int],
    host_counts: CountsByUsual,
) -> Iterator[Finding]:
    """Yield missing-link findings.

    Args:
        fabric: the names, and the ports without a link.
        plane: the cables.
        grouping: the groups of the plane.
        domain_links: the cables between the switches of the plane.
        misplaced: devices with a cable in the wrong place, which already explains a gap.
        host_counts: the numbers of links that hosts have by design.
    """
    cables = _PlaneCables(
        fabric=fabric,
        plane=plane,
        of_hosts=CableIndex(fabric, plane.host_edges.columns),
        of_switches=CableIndex(fabric, plane.switch_edges.columns),
        linked=LinkedPorts(fabric),
        cohorts=find_cohorts(fabric, plane, build_group_columns(fabric, grouping)),
        grouping=grouping,
        group_of=grouping.by_switch(),
        of_siblings={},
    )
    yield from _find_missing_host_links(cables, misplaced, host_counts)
    yield from _find_missing_switch_links(cables, domain_links, misplaced)


class _PlaneCables(NamedTuple):
    """The names and the cables of a plane."""

    fabric: Fabric
    plane: Plane
    of_hosts: CableIndex
    of_switches: CableIndex
    linked: LinkedPorts
    cohorts: Sequence[Cohort]
    grouping: TierGroups
    group_of: Mapping[int, int]
    """The group of each switch."""
    of_siblings: dict[int, UsualPorts]
    """By group, filled on demand: the ports of its cables to the group above."""

    def find_sibling_ports(self, low: int) -> UsualPorts:
        """Return the ports of the cables from the group of a switch to the group above."""
        number = self.group_of[low]
        if number not in self.of_siblings:
            group = self.grouping.groups[number]
            uppers = () if group.parent is None else self.grouping.groups[group.parent].switches
            ends = (group.switches, uppers)
            self.of_siblings[number] = UsualPorts(self.of_switches, ends, self.linked)
        return self.of_siblings[number]


def _find_missing_switch_links(
    cables: _PlaneCables, domain_links: DomainLinks, misplaced: set[int]
) -> Iterator[Finding]:
    """Yield the gaps of switches, compared within each cohort: peers have the same switches above.

    How many up-links are the design is decided for all switches below one group.
    """
    lowers: dict[int, list[int]] = defaultdict(list)
    for group in cables.grouping.groups:
        if group.parent is not None:
            lowers[group.parent] += [switch for switch in group.switches if switch not in misplaced]
    is_up = domain_links.is_up & ~np.isin(domain_links.near, list(misplaced))
    up = PairCounts(domain_links.near, domain_links.far, domain_links.counts).where(is_up)
    cohorts = [cohort for cohort in cables.cohorts if cohort.rank]
    lower_side, upper_side = (np.full(len(cables.fabric.devices), NO_GROUP) for _ in range(2))
    for number, cohort in enumerate(cohorts):
        lower_side[cohort.members], upper_side[cohort.uppers] = number, number
    numbers = np.where(lower_side[up.left] == upper_side[up.right], lower_side[up.left], NO_GROUP)
    # A leaf without hosts seems to be above the spines that it is cabled to, but in no cohort.
    inside = up.where(numbers != NO_GROUP)
    totals = np.bincount(inside.left, inside.counts, len(cables.fabric.devices)).astype(np.intp)
    frequencies = {
        group_index: Counter(totals[below].tolist()) for group_index, below in lowers.items()
    }
    designed = find_designed_by_usual(frequencies.values())
    in_cohort = frozenset(chain.from_iterable(cohort.members for cohort in cohorts))
    for group_index, below in lowers.items():
        gap = expected_count(0, designed[find_most_frequent(frequencies[group_index])])
        for low in below if gap else ():
            if low not in in_cohort and _is_cut_off(cables, low, totals):
                ports = cables.find_sibling_ports(low).find_near_ports(low, gap)
                yield _total_finding(cables.fabric, low, (0, gap), ports)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(cohorts) + 1)).tolist()
    for number, cohort in enumerate(cohorts):
        below = [switch for switch in cohort.members if switch not in misplaced]
        expected = designed[find_most_frequent(frequencies[cohort.group])]
        gaps = {
            low: expected_count(total, expected) - total
            for low, total in zip(below, totals[below].tolist(), strict=True)
        }
        pairs = up.where(order[bounds[number] : bounds[number + 1]])
        is_full = len(pairs.counts) == len(below) * len(cohort.uppers)
        if any(gaps.values()) or not is_full or len(set(pairs.counts)) > 1:
            yield from _find_missing_uplinks(cables, pairs, (below, cohort.uppers), gaps)


def _is_cut_off(cables: _PlaneCables, leaf: int, num_uplinks: Index) -> bool:
    """Return whether a leaf without any up-link should have some.

    Without up-links it has no peers with the same switches above. So the leaves at the same ports
    of other hosts are compared: most of them have up-links, unlike those of a rail that has no
    spines by design, such as one for storage. A leaf at these ports of all hosts has no peers.
    """
    _, leaves, ports, _ = cables.plane.host_edges.columns
    codes, _ = cables.fabric.columns.port_names.code(ports)
    is_same_port = np.isin(codes, codes[leaves == leaf])
    peers = np.setdiff1d(leaves[is_same_port], [leaf])
    num_cabled = int(np.count_nonzero(num_uplinks[peers]))
    return cables.fabric.devices[leaf].is_reporting and 2 * num_cabled > len(peers)


def _find_missing_host_links(
    cables: _PlaneCables, misplaced: set[int], host_counts: CountsByUsual
) -> Iterator[Finding]:
    """Yield the gaps of hosts."""
    fabric, plane = cables.fabric, cables.plane
    num_links = count_host_links(plane, len(fabric.devices)).tolist()
    columns = fabric.columns
    is_spare = plane.ports.is_member.copy()
    is_spare[columns.links.a] = is_spare[columns.links.b] = False
    spare: dict[int, list[int]] = defaultdict(list)
    for port in np.flatnonzero(is_spare).tolist():
        spare[int(columns.port_devices[port])].append(port)
    # Without a single cable (reports without a sweep) nothing is known, so nothing is missing.
    for host in plane.hosts if plane.host_edges else ():
        if num_links[host] == 0 and spare[host] and host not in misplaced:
            ends = [fabric.port_name(port) for port in spare[host]]
            is_hidden = _are_hidden(fabric, spare[host])
            yield _host_finding(fabric, host, (0, len(ends)), ends, is_hidden=is_hidden)
    for group in cables.grouping.groups:
        usual = find_most_frequent(Counter([num_links[host] for host in group.hosts]))
        ports: UsualPorts | None = None
        for host in group.hosts:
            present = num_links[host]
            expected = expected_count(present, host_counts[usual])
            if present < expected and (host not in misplaced or spare[host]):
                ports = ports or UsualPorts(
                    cables.of_hosts, (group.hosts, group.switches), cables.linked
                )
                ends = [fabric.port_name(port) for port in spare[host][: expected - present]]
                ends = _find_host_ends(fabric, host, ends, (ports, expected - present))
                is_hidden = _are_hidden(fabric, spare[host][: expected - present])
                yield _host_finding(fabric, host, (present, expected), ends, is_hidden=is_hidden)


def is_hidden_port(port: FabricPort) -> bool:
    """Return whether the agent sees no interface of a port, because a pod may have it.

    Such a port has the name of its RDMA device.
    """
    return bool(
        port.medium is Medium.ETHERNET
        and port.rdma_device
        and port.name.startswith(f"{port.rdma_device}/")
    )


def _are_hidden(fabric: Fabric, ports: Sequence[int]) -> bool:
    rows = [fabric.ports[index] for index in ports]
    return bool(rows) and all(map(is_hidden_port, rows))


def _find_host_ends(
    fabric: Fabric, host: int, spare: Sequence[PortName], usual: tuple[UsualPorts, int]
) -> list[PortName]:
    """Return the ports of a host that lack a link, each followed by the far end if it is known.

    Args:
        fabric: the names.
        host: the host.
        spare: the ports that the host itself reports without a link.
        usual: the ports of its group, and how many links the host lacks.
    """
    ports, num = usual
    name = fabric.devices[host].name
    ends: list[PortName] = []
    for end in spare or [PortName(name, port) for port in ports.find_near_ports(host, num)]:
        ends.append(end)
        far = ports.find_far_device(end.port)
        if far is not None:
            ends.append(PortName(fabric.devices[far].name, ports.find_far_port_of(host, far)))
    return ends


def _host_finding(
    fabric: Fabric,
    host: int,
    num_links: tuple[int, int],
    ends: Sequence[PortName],
    *,
    is_hidden: bool,
) -> Finding:
    """Return the finding of a host.

    Args:
        fabric: the names.
        host: the host that lacks links.
        num_links: how many links it has, and how many it should have.
        ends: its ports without a link, each followed by the far end if it is known.
        is_hidden: whether its ports are known by their RDMA devices alone.
    """
    name, (present, expected) = fabric.devices[host].name, num_links
    own = [end.port for end in ends if end.device == name]
    places = [f", {end.port}" if end.device == name else f" to {_show_end(end)}" for end in ends]
    unlinked = f" (no link on {''.join(places).removeprefix(', ')})" if ends else ""
    advice = "Check the cable, the transceiver and the port."
    if is_hidden:
        advice = (
            "The interfaces of these ports are in another network namespace, such as that of a "
            "pod, so their cables are unknown until they return to the host; nothing is broken."
        )
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=name,
        port=own[0] if len(own) == 1 else None,
        severity=Severity.INFO if is_hidden else Severity.WARNING,
        message=f"{name} has {format_links(present)}, expected {expected}{unlinked}. {advice}",
        ports=tuple(ends) or (PortName(name, ""),),
        impact=Impact(hides=True) if is_hidden else Impact(cables=expected - present),
    )


def _show_end(end: PortName) -> str:
    return f"{end.device} port {end.port}" if end.port else end.device


def _find_missing_uplinks(
    cables: _PlaneCables,
    up: PairCounts,
    ends: tuple[Sequence[int], Sequence[int]],
    gaps: Mapping[int, int],
) -> Iterator[Finding]:
    """Yield the gaps below a group: by pair if most pairs have a cable, else in total.

    The pairs of a switch are named if they add up to its gap. If a few switches have all of their
    cables, but on the wrong pairs, their pairs are named too. Other pairs with few cables are the
    design.

    Args:
        cables: the names and the cables.
        up: the counts of cables from the switches below to the group.
        ends: the switches below, and the switches of the group, both ascending.
        gaps: how many up-links each switch below lacks.
    """
    lowers, uppers = ends
    rows = np.searchsorted(lowers, up.left)
    usual = find_most_frequent(Counter(up.counts.tolist()))
    num_pairs = np.bincount(rows, minlength=len(lowers))
    shortage = np.bincount(rows, np.maximum(usual - up.counts, 0), len(lowers)).astype(np.intp)
    num_absent = shortage + usual * (len(uppers) - num_pairs)
    lacking = np.array([gaps[low] for low in lowers], np.intp)
    is_dense = len(up.counts) >= DENSE_SHARE * len(lowers) * len(uppers)
    is_named = (lacking == num_absent) & is_dense
    is_moved = (lacking == 0) & (num_absent > 0)
    if is_dense and (1 + MIN_USUAL_PER_ODD) * np.count_nonzero(is_moved) <= len(lowers):
        is_named |= is_moved
    order, stops = np.argsort(rows, kind="stable"), np.cumsum(num_pairs).tolist()
    totals = np.bincount(rows, up.counts, len(lowers)).astype(np.intp).tolist()
    fabric = cables.fabric
    ports: UsualPorts | None = None
    for row, low in enumerate(lowers):
        own = up.where(order[stops[row] - num_pairs.item(row) : stops[row]])
        if is_named[row] and num_absent[row]:
            ports = ports or UsualPorts(cables.of_switches, ends, cables.linked)
            yield from _find_absent_pairs(cables, low, own, (uppers, usual), ports)
        if lacking[row] and not is_named[row] and fabric.devices[low].is_reporting:
            ports = ports or UsualPorts(cables.of_switches, ends, cables.linked)
            num_links = totals[row], totals[row] + gaps[low]
            yield _total_finding(fabric, low, num_links, ports.find_near_ports(low, gaps[low]))


def _find_absent_pairs(
    cables: _PlaneCables,
    low: int,
    own: PairCounts,
    design: tuple[Sequence[int], int],
    ports: UsualPorts,
) -> Iterator[Finding]:
    """Yield the pairs of one switch that have fewer cables than the design.

    Args:
        cables: the names and the cables.
        low: the switch below.
        own: its cables to the group above.
        design: the switches of that group, and the usual number of cables of a pair.
        ports: the ports of its cohort.
    """
    fabric, (uppers, usual) = cables.fabric, design
    present = dict(zip(own.right.tolist(), own.counts.tolist(), strict=True))
    for high in uppers:
        num_present = present.get(high, 0)
        pair = (low, high)
        if num_present < usual and any(fabric.devices[switch].is_reporting for switch in pair):
            rules = ports, cables.find_sibling_ports(low)
            absent = infer_absent_cables(rules, low, high, usual - num_present)
            yield _pair_finding(fabric, pair, (num_present, usual), absent)


def _pair_finding(
    fabric: Fabric,
    pair: tuple[int, int],
    num_links: tuple[int, int],
    absent: AbsentCables,
) -> Finding:
    """Return the finding of two switches.

    Args:
        fabric: the names.
        pair: the lower and the upper switch.
        num_links: how many cables they have, and how many they should have.
        absent: the ports at which cables are absent.
    """
    low, high = (fabric.devices[switch].name for switch in pair)
    present, expected = num_links
    places = [
        f"{name} {_show_choices(ports, expected - present)}"
        for name, ports in ((low, absent.near_choices), (high, absent.far_choices))
        if ports
    ]
    where = f" ({' and '.join(places)}, as its peers)" if places else ""
    cables = [[PortName(low, near), PortName(high, far)] for near, far in absent.ends]
    if len(cables) == 1:
        cables[0].sort(key=_sort_key)
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=low,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{low} has {format_links(present)} to {high}, expected {expected}{where}. Check the "
            "cables and transceivers between the two."
        ),
        ports=tuple(chain.from_iterable(cables)),
        impact=Impact(cables=expected - present),
    )


def _show_choices(ports: Sequence[str], num: int) -> str:
    """Return the ports of absent cables in words, or the ports of which they are some."""
    names = ", ".join(ports)
    if len(ports) == num:
        return f"port {names}"
    return f"{'one' if num == 1 else num} of ports {names}"


def _total_finding(
    fabric: Fabric, low: int, num_links: tuple[int, int], ports: Sequence[str]
) -> Finding:
    """Return the finding of a switch with too few up-links.

    Args:
        fabric: the names.
        low: the switch.
        num_links: how many it has, and how many it should have.
        ports: the ports at which cables are absent; empty if unknown.
    """
    name, (present, expected) = fabric.devices[low].name, num_links
    where = f" (no link on {', '.join(ports)})" if ports else ""
    return Finding(
        kind=FindingKind.MISSING_LINK,
        device=name,
        port=None,
        severity=Severity.WARNING,
        message=(
            f"{name} has {format_links(present, 'up-link')}, but its peers have "
            f"{expected}{where}. Check its ports, cables and transceivers."
        ),
        ports=tuple(PortName(name, port) for port in ports) or (PortName(name, ""),),
        impact=Impact(cables=expected - present),
    )


def _sort_key(end: PortName) -> tuple[object, ...]:
    return natural_key(end.device)
