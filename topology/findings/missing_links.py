"""Cables that are absent although symmetry expects them, and an end would report them.

The expected number is what most peers have: hosts of one leaf group have the same number of links,
and leaves below one group of spines have the same number of up-links. Where many peers have fewer,
that number is expected too (see `usual_counts`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from topology.findings.absent_cables import AbsentCables, infer_absent_cables
from topology.findings.port_cohorts import NO_GROUP, Cohort, build_group_columns, find_cohorts
from topology.findings.tree_findings import format_links
from topology.findings.usual_counts import (
    MIN_USUAL_PER_ODD,
    count_host_links,
    expected_count,
    find_designed_by_group,
    find_most_frequent,
)
from topology.findings.usual_ports import CableIndex, LinkedPorts, UsualPorts
from topology.model.fabric import Fabric, FabricPort, Index
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
    misplaced: Collection[int],
) -> Iterator[Finding]:
    """Yield missing-link findings.

    Args:
        fabric: the names, and the ports without a link.
        plane: the cables.
        grouping: the groups of the plane.
        domain_links: the cables between the switches of the plane.
        misplaced: devices with a cable in the wrong place, a set. Their numbers of links show
            nothing, but a port without a link that their peers use is a gap.
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
        misplaced=misplaced,
        of_siblings={},
    )
    yield from _find_missing_host_links(cables)
    yield from _find_missing_switch_links(cables, domain_links)


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
    misplaced: Collection[int]
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


class _UplinkDesign(NamedTuple):
    """How many up-links the switches below each group have by design, descending."""

    num_ports: Mapping[int, int]
    """By group: how many ports the members of most cohorts below it use."""
    of_full: Mapping[int, Sequence[int]]
    """By group, shown by the cohorts that use so many ports."""
    of_all: Mapping[int, Sequence[int]]
    """By group, shown by all switches below it."""

    def find(self, cohort: Cohort) -> Sequence[int]:
        """Return the numbers for a cohort.

        If a cohort lost a switch above, the numbers of its members are no design of the others.
        """
        is_full = len(cohort.usual) >= self.num_ports[cohort.group]
        return (self.of_full if is_full else self.of_all)[cohort.group]


def _find_missing_switch_links(
    cables: _PlaneCables, domain_links: DomainLinks
) -> Iterator[Finding]:
    """Yield the gaps of switches, compared within each cohort: peers have the same switches above.

    How many up-links are the design is decided for all switches below one group.
    """
    cohorts = [cohort for cohort in cables.cohorts if cohort.rank]
    pairs = _split_by_cohort(cables.fabric, cohorts, domain_links)
    totals = np.zeros(len(cables.fabric.devices), np.intp)
    for own in pairs:
        np.add.at(totals, own.left, own.counts)
    design = _find_uplink_design(cables, cohorts, totals)
    yield from _find_cut_off_leaves(cables, cohorts, totals, design)
    for cohort, own in zip(cohorts, pairs, strict=True):
        designed = design.find(cohort)
        is_short = any(
            expected_count(num, designed) > num for num in totals[cohort.members].tolist()
        )
        is_full = len(own.counts) == len(cohort.members) * len(cohort.uppers)
        if is_short or not is_full or len({*own.counts.tolist()}) > 1:
            yield from _CohortGaps(cables, cohort, own, designed).find()


def _split_by_cohort(
    fabric: Fabric, cohorts: Sequence[Cohort], domain_links: DomainLinks
) -> list[PairCounts]:
    """Return the numbers of cables from the members of each cohort to the switches above.

    A leaf without hosts seems to be above the spines that it is cabled to, but in no cohort.
    """
    lower_side, upper_side = (np.full(len(fabric.devices), NO_GROUP) for _ in range(2))
    for number, cohort in enumerate(cohorts):
        lower_side[cohort.members], upper_side[cohort.uppers] = number, number
    up = PairCounts(domain_links.near, domain_links.far, domain_links.counts).where(
        domain_links.is_up
    )
    numbers = np.where(lower_side[up.left] == upper_side[up.right], lower_side[up.left], NO_GROUP)
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(len(cohorts) + 1)).tolist()
    return [up.where(order[start:stop]) for start, stop in pairwise(bounds)]


def _find_uplink_design(
    cables: _PlaneCables, cohorts: Sequence[Cohort], totals: Index
) -> _UplinkDesign:
    """Return how many up-links switches have by design.

    Args:
        cables: the groups, and the switches whose numbers show nothing.
        cohorts: the cohorts of switches.
        totals: the number of up-links of each device.
    """
    num_ports = _count_usual_ports(cohorts)
    partial = (row.members for row in cohorts if len(row.usual) < num_ports[row.group])
    in_part = frozenset(chain.from_iterable(partial))
    lowers: dict[int, list[int]] = defaultdict(list)
    for group in cables.grouping.groups:
        if group.parent is not None:
            lowers[group.parent] += (low for low in group.switches if low not in cables.misplaced)
    full = {group: [low for low in below if low not in in_part] for group, below in lowers.items()}
    return _UplinkDesign(
        num_ports,
        _find_designed(totals, full, num_ports),
        _find_designed(totals, lowers, num_ports),
    )


def _find_designed(
    totals: Index, lowers: Mapping[int, Sequence[int]], num_ports: Mapping[int, int]
) -> Mapping[int, Sequence[int]]:
    """Return the numbers of up-links by design of the given switches below each group."""
    frequencies = [Counter(totals[below].tolist()) for below in lowers.values()]
    found = find_designed_by_group(frequencies, [num_ports[group] for group in lowers])
    return dict(zip(lowers, found, strict=True))


def _count_usual_ports(cohorts: Iterable[Cohort]) -> Mapping[int, int]:
    """Return how many ports the cohorts below each group use, most of them; 0 without any."""
    sizes: dict[int, Counter[int]] = defaultdict(Counter)
    for cohort in cohorts:
        sizes[cohort.group][len(cohort.usual)] += len(cohort.members)
    return Counter({group: find_most_frequent(counts) for group, counts in sizes.items()})


def _find_cut_off_leaves(
    cables: _PlaneCables, cohorts: Iterable[Cohort], totals: Index, design: _UplinkDesign
) -> Iterator[Finding]:
    """Yield the gaps of switches without any up-link, which are in no cohort."""
    others = {*chain.from_iterable(cohort.members for cohort in cohorts), *cables.misplaced}
    for group in cables.grouping.groups:
        gap = 0 if group.parent is None else expected_count(0, design.of_all[group.parent])
        for low in group.switches if gap else ():
            if low not in others and _is_cut_off(cables, low, totals):
                ports = cables.find_sibling_ports(low).find_near_ports(low, gap)
                yield _total_finding(cables.fabric, low, (0, gap), ports, num_absent=gap)


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


def _find_missing_host_links(cables: _PlaneCables) -> Iterator[Finding]:
    """Yield the gaps of hosts."""
    fabric, plane, misplaced = cables.fabric, cables.plane, cables.misplaced
    groups = cables.grouping.groups
    num_ports = _count_usual_ports(cohort for cohort in cables.cohorts if not cohort.rank)
    num_links = count_host_links(plane, len(fabric.devices)).tolist()
    frequencies = [Counter([num_links[host] for host in group.hosts]) for group in groups]
    designed = find_designed_by_group(frequencies, [num_ports[at] for at in range(len(groups))])
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
    for group, own_design in zip(groups, designed, strict=True):
        ports: UsualPorts | None = None
        for host in group.hosts:
            present = num_links[host]
            expected = expected_count(present, own_design)
            if present < expected and (host not in misplaced or spare[host]):
                ports = ports or UsualPorts(
                    cables.of_hosts, (group.hosts, group.switches), cables.linked
                )
                own = _choose_spare(fabric, spare[host], ports.list_free_near_ports(host))
                own = own[: expected - present]
                ends = [fabric.port_name(port) for port in own]
                ends = _find_host_ends(fabric, host, ends, (ports, expected - present))
                is_hidden = _are_hidden(fabric, own)
                yield _host_finding(fabric, host, (present, expected), ends, is_hidden=is_hidden)


def _choose_spare(fabric: Fabric, ports: Sequence[int], usual: Collection[str]) -> Sequence[int]:
    """Return the ports of a host without a link, those first that its peers use.

    If the switch at a port of all peers is lost, this port is no gap of one host.
    """
    return sorted(ports, key=lambda port: fabric.ports[port].name not in usual)


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


class _CohortGaps:
    """The gaps of one cohort of switches: by pair if most pairs have a cable, else in total."""

    def __init__(
        self, cables: _PlaneCables, cohort: Cohort, pairs: PairCounts, designed: Sequence[int]
    ) -> None:
        self._cables, self._cohort, self._designed = cables, cohort, designed
        self._fabric = cables.fabric
        self._counts = pairs.by_left
        self._usual = _find_usual_bundle(cohort, pairs, designed)
        num_pairs = len(cohort.members) * len(cohort.uppers)
        self._is_dense = len(pairs.counts) >= DENSE_SHARE * num_pairs

    @cached_property
    def _ports(self) -> UsualPorts:
        ends = self._cohort.members, self._cohort.uppers
        return UsualPorts(self._cables.of_switches, ends, self._cables.linked)

    def find(self) -> Iterator[Finding]:
        """Yield the findings by switch: its pairs, then the rest of its gap.

        Pairs are named unless they are more than the gap. If a few switches have all of their
        cables, but on the wrong pairs, their pairs are named too. Other pairs with few cables are
        the design.
        """
        moved = self._find_moved()
        for low in self._cohort.members:
            absent, num_lacking = self._count_absent_pairs(low), self._count_lacking(low)
            named: dict[int, AbsentCables] = {}
            if self._is_misplaced(low) or low in moved or sum(absent.values()) <= num_lacking:
                named.update(self._find_pairs(low, absent))
            for high, found in named.items():
                num_links = self._usual - absent[high], self._usual
                yield _pair_finding(self._fabric, (low, high), num_links, found)
            num_left = num_lacking - sum(absent[high] for high in named)
            if num_left > 0 and self._fabric.devices[low].is_reporting:
                ports = self._find_other_ports(low, num_lacking, named.values())
                expected = self._count_expected(low)
                num_links = expected - num_lacking, expected
                yield _total_finding(self._fabric, low, num_links, ports, num_absent=num_left)

    def _is_misplaced(self, low: int) -> bool:
        return low in self._cables.misplaced

    def _count_present(self, low: int) -> int:
        return sum(self._counts.get(low, {}).values())

    def _count_expected(self, low: int) -> int:
        return expected_count(self._count_present(low), self._designed)

    def _count_lacking(self, low: int) -> int:
        """Return how many up-links a switch lacks.

        A cable in the wrong place is in a port of this switch all the same. So a misplaced switch
        lacks as many as it has free ports that its peers use.
        """
        if self._is_misplaced(low):
            return len(self._ports.list_free_near_ports(low))
        return self._count_expected(low) - self._count_present(low)

    def _count_absent_pairs(self, low: int) -> Mapping[int, int]:
        """Return how many cables are absent to each switch above that has fewer than usual."""
        counts = self._counts.get(low, {})
        return {
            high: self._usual - counts.get(high, 0)
            for high in (self._cohort.uppers if self._is_dense else ())
            if counts.get(high, 0) < self._usual
        }

    def _find_moved(self) -> Collection[int]:
        """Return the switches with all of their cables, but on the wrong pairs, if they are few."""
        members = self._cohort.members
        moved = [
            low
            for low in members
            if not self._is_misplaced(low)
            and self._count_absent_pairs(low)
            and not self._count_lacking(low)
        ]
        return moved if (1 + MIN_USUAL_PER_ODD) * len(moved) <= len(members) else ()

    def _find_pairs(
        self, low: int, absent: Mapping[int, int]
    ) -> Iterator[tuple[int, AbsentCables]]:
        """Yield the switches above to which cables are absent, and the ports of these cables.

        Of a misplaced switch only those count that belong into its free ports.
        """
        for high, num in absent.items():
            if any(self._fabric.devices[switch].is_reporting for switch in (low, high)):
                rules = self._ports, self._cables.find_sibling_ports(low)
                found = infer_absent_cables(rules, low, high, num)
                if not self._is_misplaced(low) or all(near for near, _ in found.ends):
                    yield high, found

    def _find_other_ports(self, low: int, num: int, named: Iterable[AbsentCables]) -> Sequence[str]:
        """Return the free ports for the cables that a switch lacks beside the named ones.

        None if it has not as many free ports as it lacks cables.
        """
        taken = {near for found in named for near, _ in found.ends}
        free = self._ports.find_near_ports(low, num)
        return [] if "" in taken else [port for port in free if port not in taken]


def _find_usual_bundle(cohort: Cohort, pairs: PairCounts, designed: Sequence[int]) -> int:
    """Return how many cables most pairs of a cohort have.

    The few wide bundles of a small cohort may all lack a cable, so an equal share of the up-links
    counts more, if a pair has as many cables.
    """
    frequencies = Counter(pairs.counts.tolist())
    share, remainder = divmod(designed[0], len(cohort.uppers))
    return share if not remainder and share in frequencies else find_most_frequent(frequencies)


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
    fabric: Fabric,
    low: int,
    num_links: tuple[int, int],
    ports: Sequence[str],
    *,
    num_absent: int,
) -> Finding:
    """Return the finding of a switch with too few up-links.

    Args:
        fabric: the names.
        low: the switch.
        num_links: how many it has, and how many it should have.
        ports: the ports at which cables are absent; empty if unknown.
        num_absent: how many of the absent cables no other finding names.
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
        impact=Impact(cables=num_absent),
    )


def _sort_key(end: PortName) -> tuple[object, ...]:
    return natural_key(end.device)
