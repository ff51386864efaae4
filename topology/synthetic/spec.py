"""What a synthetic fabric shall be, and the shape of the network that carries it.

Every fabric but one is a folded Clos: leaf groups, pods of leaf groups, units of pods. Half of a
switch's ports look down, half up; at the top all look down. A dragonfly+ is pods whose spines are
cabled to each other instead: its top has no switch. Nothing here names or wires anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from topology.model.errors import ConfigError
from topology.model.facts import Medium
from topology.sources.infiniband.node_names import RATES_BPS

MIN_RADIX = 4
MIN_TIERS = 2
STORAGE_RANK = 0
"""Of switches that are no part of the fabric that jobs use."""
SPINE_RANK = 2
"""Every leaf of a pod reaches every switch of this rank; ranks above have planes."""
TIER_NAMES = ("leaf", "spine", "core", "core2")


class FabricKind(StrEnum):
    """How a host meets the fabric."""

    FAT_TREE = "fat-tree"
    """One port to one leaf."""
    RAIL = "rail"
    """Rail-optimised: port r to leaf r of its leaf group."""
    DUAL_HOMED = "dual-homed"
    """Two ports, to the two leaves of an MLAG pair."""
    DUAL_PLANE = "dual-plane"
    """A port per rail to each of two fabrics, which nothing but the hosts joins."""
    DRAGONFLY_PLUS = "dragonfly-plus"
    """One port to one leaf; groups of leaves and spines, and cables between spines of any two."""


class NamePolicy(StrEnum):
    """What the names of devices tell."""

    PLAIN = "plain"
    """Positions: `leaf-p01-g02-r3`, hosts numbered along the leaves."""
    OPAQUE = "opaque"
    """Nothing: switches have meaningless names, hosts are numbered at random."""


@dataclass(frozen=True, slots=True)
class SyntheticSpec:
    """A fabric in a few numbers."""

    kind: FabricKind
    num_hosts: int
    """The last leaf group need not be full."""
    rails: int = 8
    """Ports of a host, and leaves of a group, in each plane; of kinds rail and dual-plane."""
    radix: int = 64
    """Ports of every switch, even."""
    tiers: int | None = None
    """Ranks of switches, 2 to 4; as few as the hosts need where None. A dragonfly+ has two."""
    medium: Medium = Medium.INFINIBAND
    names: NamePolicy = NamePolicy.PLAIN
    rate_bps: int = 400_000_000_000
    """Of every cable; one that InfiniBand knows, on Ethernet too: 25, 50, 100, 200, 400 Gb/s."""
    uplinks: int | None = None
    """Cables up from every leaf, fewer where it is oversubscribed; half its ports where None."""
    storage_leaves: int = 0
    """Switches without up-links to which each host has one more port, of the same rate."""
    islands: int = 0
    """Pods, or what else meets at the top, without a cable to the others; the last ones."""
    peer_links: int = 0
    """Cables between the two leaves of an MLAG pair, on ports beyond the radix."""
    nvlink_hosts: int = 0
    """Hosts of every NVLink domain; none where 0. The domains nest in leaf groups."""

    @property
    def num_planes(self) -> int:
        """Fabrics that only hosts join."""
        return 2 if self.kind is FabricKind.DUAL_PLANE else 1

    @property
    def ports_per_plane(self) -> int:
        """Ports that a host has in one plane, which is the number of leaves of a group there."""
        if self.kind is FabricKind.DUAL_HOMED:
            return 2
        return self.rails if self.kind in {FabricKind.RAIL, FabricKind.DUAL_PLANE} else 1

    @property
    def ports_per_host(self) -> int:
        """Number of ports of a host, which is the number of leaves of a group in all planes."""
        return self.num_planes * self.ports_per_plane

    @property
    def num_uplinks(self) -> int:
        """Cables up from every leaf."""
        return self.num_half_ports if self.uplinks is None else self.uplinks

    @property
    def num_half_ports(self) -> int:
        """Ports of a switch below the top that look down, and that look up."""
        return self.radix // 2


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The network of a spec."""

    num_groups: int
    """Leaf groups; the last may hold fewer hosts."""
    fan_outs: tuple[int, ...]
    """Units of the rank below that one unit joins, one entry per rank from 2; the last unit of a
    rank may join fewer."""
    widths: tuple[int, ...]
    """Switches that one set of parallel ones has, one entry per rank from 2. At rank 2 a set joins
    all leaves of a unit's plane; above, set j joins the j-th switch of each lower unit. The top
    of a dragonfly+ has none."""

    @property
    def num_tiers(self) -> int:
        """Tiers of units: ranks of switches, and the top of a dragonfly+."""
        return 1 + len(self.fan_outs)

    def path(self, rank: int, index: int) -> tuple[int, ...]:
        """Return the units around and including unit `index` of a rank, outermost first.

        The one unit at the top is left out, so its path is empty; indices count per rank.
        """
        if rank == self.num_tiers:
            return ()
        steps = [index]
        for fan_out in self.fan_outs[rank - 1 : -1]:
            steps.append(steps[-1] // fan_out)
        return tuple(reversed(steps))


def derive_shape(spec: SyntheticSpec) -> NetworkShape:
    """Return the smallest network for a spec, non-blocking but for the leaves' up-links.

    There are as few switches at the top as its ports allow, but two, hence parallel cables.
    Demanded tiers that are not needed split the hosts into smaller pods, and so does a dragonfly+
    that one group would do for.

    Raises:
        ConfigError: a number is out of range, or the hosts do not fit.
    """
    _check(spec)
    num_groups = -(-spec.num_hosts // spec.num_half_ports)
    if spec.kind is FabricKind.DRAGONFLY_PLUS:
        return _dragonfly(spec, num_groups)
    wanted = (spec.tiers,) if spec.tiers else range(MIN_TIERS, len(TIER_NAMES) + 1)
    for num_tiers in wanted:
        fan_outs = _fan_outs(spec, num_groups, num_tiers)
        if fan_outs:
            return NetworkShape(num_groups, fan_outs, _widths(spec, fan_outs))
    limit = spec.tiers or len(TIER_NAMES)
    raise ConfigError(
        f"{spec.num_hosts} hosts with {spec.ports_per_host} ports do not fit into {limit} tiers "
        f"of {spec.radix}-port switches: take a larger radix, more tiers or fewer rails"
    )


def _dragonfly(spec: SyntheticSpec, num_leaves: int) -> NetworkShape:
    """Return groups with as many spines as leaves, half of whose ports lead to other groups."""
    fan_out = min(spec.num_half_ports, max(1, num_leaves // 2))
    num_groups = -(-num_leaves // fan_out)
    width = _width(fan_out, spec.num_uplinks, down=spec.num_half_ports)
    if num_groups - 1 > width * spec.num_half_ports:
        raise ConfigError(
            f"{num_groups} groups of {width} spines with {spec.num_half_ports} ports to other groups do not "
            "reach each other: take a larger radix"
        )
    return NetworkShape(num_leaves, (fan_out, num_groups), (width, 0))


def _check(spec: SyntheticSpec) -> None:
    for is_wrong, problem in chain(_problems(spec), _odd_problems(spec)):
        if is_wrong:
            raise ConfigError(problem)


def _problems(spec: SyntheticSpec) -> Iterator[tuple[bool, str]]:
    """Yield what can be wrong with a spec: whether it is, and the message."""
    yield spec.num_hosts < 1, f"expected at least one host, got {spec.num_hosts}"
    yield (
        spec.radix < MIN_RADIX or spec.radix % 2 > 0,
        f"expected an even radix of {MIN_RADIX} or more, got {spec.radix}",
    )
    yield spec.ports_per_host < 1, f"expected at least one rail, got {spec.rails}"
    most = len(TIER_NAMES)
    yield (
        spec.tiers is not None and not MIN_TIERS <= spec.tiers <= most,
        f"expected {MIN_TIERS} to {most} tiers, got {spec.tiers}",
    )
    yield (
        spec.kind is FabricKind.DRAGONFLY_PLUS and spec.tiers not in {None, MIN_TIERS},
        f"a dragonfly+ has {MIN_TIERS} ranks of switches, got {spec.tiers}",
    )
    yield (
        spec.medium is Medium.NVLINK,
        "expected infiniband or ethernet: NVLink has no leaves and spines",
    )
    yield (
        spec.rate_bps not in RATES_BPS.values(),
        f"expected the rate of an InfiniBand link, got {spec.rate_bps} bit/s",
    )


def _odd_problems(spec: SyntheticSpec) -> Iterator[tuple[bool, str]]:
    """Yield what can be wrong with the parts that a regular Clos has not."""
    yield (
        not 1 <= spec.num_uplinks <= spec.num_half_ports,
        f"expected 1 to {spec.num_half_ports} up-links of a leaf, got {spec.uplinks}",
    )
    yield (
        not 0 <= spec.storage_leaves < spec.ports_per_host,
        f"a host on {spec.ports_per_host} leaves needs fewer storage leaves: {spec.storage_leaves}",
    )
    yield (
        spec.peer_links < 0 or (spec.peer_links > 0 and spec.kind is not FabricKind.DUAL_HOMED),
        f"only MLAG pairs have peer links, got {spec.peer_links}",
    )
    yield (
        spec.nvlink_hosts < 0
        or (spec.nvlink_hosts > 0 and spec.num_half_ports % spec.nvlink_hosts > 0),
        f"expected NVLink domains that divide {spec.num_half_ports} hosts evenly, got {spec.nvlink_hosts}",
    )


def _fan_outs(spec: SyntheticSpec, num_groups: int, num_tiers: int) -> tuple[int, ...]:
    """Return the units joined at each rank from 2; empty where the groups do not fit."""
    fan_outs: list[int] = []
    units = num_groups
    for rank in range(2, num_tiers + 1):
        room = _max_lower_units(spec, rank, num_tiers)
        # No unit is larger than what leaves two units for every rank above.
        fan_out = min(room, max(1, units >> (num_tiers - rank)))
        if fan_out < 1 or (rank == num_tiers and fan_out < units):
            return ()
        fan_outs.append(fan_out)
        units = -(-units // fan_out)
    return tuple(fan_outs)


def _max_lower_units(spec: SyntheticSpec, rank: int, num_tiers: int) -> int:
    """Return how many lower units the downward ports of a rank's switches can join."""
    ports = spec.radix if rank == num_tiers else spec.num_half_ports
    return ports // spec.ports_per_plane if rank == SPINE_RANK else ports


def _widths(spec: SyntheticSpec, fan_outs: tuple[int, ...]) -> tuple[int, ...]:
    widths = []
    for rank, fan_out in enumerate(fan_outs, 2):
        down = spec.radix if rank == 1 + len(fan_outs) else spec.num_half_ports
        is_spine = rank == SPINE_RANK
        members = fan_out * (spec.ports_per_plane if is_spine else 1)
        widths.append(
            _width(members, spec.num_uplinks if is_spine else spec.num_half_ports, down=down)
        )
    return tuple(widths)


def _width(members: int, ups: int, *, down: int) -> int:
    """Return how many switches with `down` ports downwards take all cables from below.

    There are two at least, where each member below has two. Only a divisor spreads the upward
    cables of a switch evenly.
    """
    need = max(min(2, ups), -(-members * ups // down))
    return next(num for num in range(need, ups + 1) if ups % num == 0)
