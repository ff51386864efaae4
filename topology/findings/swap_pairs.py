"""Two cables that are in each other's port, and the findings about them.

Two misplaced cables that mirror each other had their ends exchanged. If a cable could pair with
several others, the ports at the upper ends decide. A device is mostly at the port of one name on
every switch above, so its other cables show at which port its misplaced cable was.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from topology.findings.port_cohorts import NO_GROUP, GroupColumns
from topology.findings.usual_ports import MIN_WITNESSES, CableIndex
from topology.model.fabric import Fabric
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.plug_moves import rank_moves
from topology.planes.cables import Edge
from topology.planes.plane import Plane

GroupOrRail = int | str
"""Where a cable belongs: the index of a group, or the label of a rail."""


class MisplacedCable(NamedTuple):
    """A cable that is not where its peers are."""

    edge: Edge
    """`a` is the lower device: a host, or the switch of the lower rank."""
    expected: GroupOrRail
    """Where the lower device belongs."""
    actual: GroupOrRail
    """Where the upper end is."""


PairScore = Callable[[MisplacedCable, MisplacedCable], tuple[int, ...] | None]
"""How badly two misplaced cables fit as one swap, the most important number first; 0 is perfect.
None if an exchange would not repair them."""


class UpperEnds:
    """The switches above each device, and the ports at which its cables are there."""

    def __init__(self, fabric: Fabric, plane: Plane, groups: GroupColumns) -> None:
        """Read no cable yet.

        Args:
            fabric: the names.
            plane: the cables.
            groups: the groups of the plane.
        """
        self._fabric, self._groups = fabric, groups
        self._of_hosts = CableIndex(fabric, plane.host_edges.columns)
        self._of_switches = CableIndex(fabric, plane.switch_edges.columns)
        self._ports: dict[tuple[int, int], Counter[str]] = {}

    def list_cables(self, low: int) -> Iterator[tuple[int, str, str]]:
        """Yield the switch, the port of this device and the port of the switch, for each cable."""
        is_host = self._groups.switch_group[low] == NO_GROUP
        return (self._of_hosts if is_host else self._of_switches).list_cables(low)

    def count_present(self, first: MisplacedCable, second: MisplacedCable) -> int:
        """Count the other cables of each device to the switch at which the other's cable is."""
        num = sum(
            switch == far.edge.b
            for near, far in ((first, second), (second, first))
            for switch, _, _ in self.list_cables(near.edge.a)
        )
        return num - 2 * (first.edge.a == second.edge.a)

    def count_unsupported(self, first: MisplacedCable, second: MisplacedCable) -> int:
        """Return how many of two cables are at a port name that the other device does not use."""
        return sum(
            not self._count_witnesses(near, far) for near, far in ((first, second), (second, first))
        )

    def are_exchanged(self, first: MisplacedCable, second: MisplacedCable) -> bool:
        """Return whether each cable is at the port where most cables of the other device are."""
        return all(
            self._count_witnesses(near, far) >= MIN_WITNESSES
            for near, far in ((first, second), (second, first))
        )

    def are_refuted(self, first: MisplacedCable, second: MisplacedCable) -> bool:
        """Return whether a device is mostly at another port name above than after the exchange."""
        for near, far in ((first, second), (second, first)):
            others = self._count_others(near, far)
            if not others[self._name_port(far)] and (
                2 * max(others.values(), default=0) > max(others.total(), MIN_WITNESSES)
            ):
                return True
        return False

    def _count_witnesses(self, near: MisplacedCable, far: MisplacedCable) -> int:
        """Return how many other cables of the near device are at the port name of the far cable."""
        return self._count_others(near, far)[self._name_port(far)]

    def _count_others(self, near: MisplacedCable, far: MisplacedCable) -> Counter[str]:
        """Return the number of other cables of the near device at each port name."""
        own = {
            (cable.edge.b, self._name_port(cable))
            for cable in (near, far)
            if cable.edge.a == near.edge.a
        }
        return self._count(near.edge.a, self._rank(far.edge.b)) - Counter(name for _, name in own)

    def _name_port(self, cable: MisplacedCable) -> str:
        return self._fabric.ports[cable.edge.b_port].name

    def _rank(self, switch: int) -> int:
        return int(self._groups.ranks[self._groups.switch_group[switch]])

    def _count(self, low: int, rank: int) -> Counter[str]:
        """Return the number of cables from a device to each port name of a rank."""
        if (low, rank) not in self._ports:
            self._ports[low, rank] = Counter(
                port for switch, _, port in self.list_cables(low) if self._rank(switch) == rank
            )
        return self._ports[low, rank]


def pair_swaps(
    fabric: Fabric, cables: Iterable[MisplacedCable], kind: FindingKind, score: PairScore
) -> Iterator[Finding]:
    """Pair misplaced cables that mirror each other, best fit first; yield pairs, then the rest."""
    by_move: dict[tuple[GroupOrRail, GroupOrRail], list[MisplacedCable]] = defaultdict(list)
    for cable in cables:
        by_move[cable.expected, cable.actual].append(cable)
    for (expected, actual), forward in sorted(by_move.items(), key=lambda row: str(row[0])):
        reverse = by_move.get((actual, expected), [])
        if reverse and _sort_key(expected) > _sort_key(actual):
            continue  # reported with its mirror
        pairs = find_best_pairs(forward, reverse, score)
        for first, second in pairs:
            yield build_swap_finding(fabric, kind, first, second)
        paired = {cable for pair in pairs for cable in pair}
        for cable in (*forward, *reverse):
            if cable not in paired:
                yield _lone_finding(fabric, kind, cable)


def _sort_key(place: GroupOrRail) -> tuple[int, str]:
    """Return a place as a sort key: groups by number, rails and switches by name."""
    return (place, "") if isinstance(place, int) else (-1, place)


def find_best_pairs(
    forward: Sequence[MisplacedCable], reverse: Sequence[MisplacedCable], score: PairScore
) -> list[tuple[MisplacedCable, MisplacedCable]]:
    """Return pairs of a cable and its mirror, best fit first; a cable is in one pair at most."""
    ranked = sorted(
        (badness, first, second)
        for first in forward
        for second in reverse
        if (badness := score(first, second)) is not None
    )
    used: set[MisplacedCable] = set()
    pairs = []
    for _, first, second in ranked:
        if first not in used and second not in used:
            pairs.append((first, second))
            used |= {first, second}
    return pairs


def build_swap_finding(
    fabric: Fabric, kind: FindingKind, first: MisplacedCable, second: MisplacedCable
) -> Finding:
    """Return the finding of a pair, with the plugs to exchange."""
    ends = [
        fabric.port_name(port)
        for cable in (first, second)
        for port in (cable.edge.a_port, cable.edge.b_port)
    ]
    swap = (ends[1], ends[3]) if _are_upper_better(first, second) else (ends[0], ends[2])
    problem = "on each other's rail" if kind is FindingKind.WRONG_RAIL else "swapped"
    return Finding(
        kind=kind,
        device=ends[1].device,
        port=ends[1].port,
        severity=Severity.WARNING,
        message=(
            f"The cables of {ends[0].device} port {ends[0].port} and {ends[2].device} port "
            f"{ends[2].port} are {problem}: exchange the plugs in {swap[0].device} port "
            f"{swap[0].port} and {swap[1].device} port {swap[1].port}."
        ),
        ports=tuple(ends),
        swap=(swap,),
    )


def _are_upper_better(first: MisplacedCable, second: MisplacedCable) -> bool:
    """Return whether the plugs at the upper ends are exchanged, and not those at the lower ones."""
    lower, upper = (first.edge.a, second.edge.a), (first.edge.b, second.edge.b)
    upper_rank = rank_moves([upper, upper[::-1]], lambda _: 1)
    return upper_rank > rank_moves([lower, lower[::-1]], lambda _: 0)


def _lone_finding(fabric: Fabric, kind: FindingKind, cable: MisplacedCable) -> Finding:
    low_port, high_port = fabric.port_name(cable.edge.a_port), fabric.port_name(cable.edge.b_port)
    is_rail = kind is FindingKind.WRONG_RAIL
    reason = "its other links lead elsewhere"
    if isinstance(cable.expected, str):
        whose = "other hosts use" if is_rail else "its peers use"
        reason = f"{whose} this port on another {'rail' if is_rail else 'switch'}"
    return Finding(
        kind=kind,
        device=high_port.device,
        port=high_port.port,
        severity=Severity.WARNING,
        message=(
            f"{low_port.device} port {low_port.port} is cabled to {high_port.device} port "
            f"{high_port.port}, but {reason}. Move the cable back. The other cable of the swap is "
            "not visible."
        ),
        ports=(low_port, high_port),
    )
