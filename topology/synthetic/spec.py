"""The parameters of a synthetic fabric, and the shape of its network.

Every kind except dragonfly+ is a folded Clos: leaf groups, pods of leaf groups, units of pods.
Half of the ports of a switch point down, half up; at the top, all point down. In a dragonfly+, the
spines of pods are cabled to each other: its top has no switch. This module does not name or wire
devices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from topology.model.errors import ConfigError
from topology.model.facts import Medium
from topology.sources.infiniband.link_rates import RATES_BPS

MIN_RADIX = 4
MIN_TIERS = 2
STORAGE_RANK = 0
"""Rank of storage leaves, which are not part of the compute fabric."""
SPINE_RANK = 2
"""Rank at which every leaf of a pod reaches every switch; higher ranks have parallel sets."""
TIER_NAMES = ("leaf", "spine", "core", "core2")


class FabricKind(StrEnum):
    """How hosts are cabled to the fabric."""

    FAT_TREE = "fat-tree"
    """One port to one leaf."""
    RAIL = "rail"
    """Rail-optimised: port r to leaf r of its leaf group."""
    DUAL_HOMED = "dual-homed"
    """Two ports, to the two leaves of an MLAG pair."""
    DUAL_PLANE = "dual-plane"
    """A port per rail to each of two fabrics, which only the hosts connect."""
    DRAGONFLY_PLUS = "dragonfly-plus"
    """One port to one leaf; groups of leaves and spines, with cables between the spines of any two
    groups."""


class NamePolicy(StrEnum):
    """Whether names of devices contain their position."""

    PLAIN = "plain"
    """Names with positions: `leaf-p01-g02-r3`; hosts are numbered along the leaves."""
    OPAQUE = "opaque"
    """Names without positions: hashed names for switches, random numbers for hosts."""


@dataclass(frozen=True, slots=True)
class SyntheticSpec:
    """The parameters of a fabric."""

    kind: FabricKind
    num_hosts: int
    """Number of hosts; the last leaf group may have free ports."""
    rails: int = 8
    """Ports of a host, and leaves of a group, in each plane; for kinds rail and dual-plane."""
    radix: int = 64
    """Ports of every switch, an even number."""
    tiers: int | None = None
    """Ranks of switches, 2 to 4; None for as few as the hosts need. A dragonfly+ has two."""
    medium: Medium = Medium.INFINIBAND
    names: NamePolicy = NamePolicy.PLAIN
    rate_bps: int = 400_000_000_000
    """Rate of every cable. It must be a rate of InfiniBand, also on Ethernet: 25, 50, 100, 200, 400
    Gb/s."""
    uplinks: int | None = None
    """Up-links of every leaf, fewer if it is oversubscribed; None for half of its ports."""
    storage_leaves: int = 0
    """Switches without up-links to which each host has one additional port, of the same rate."""
    islands: int = 0
    """Number of pods (or of the units directly below the top) without a cable to the others: the
    last ones."""
    peer_links: int = 0
    """Cables between the two leaves of an MLAG pair, on ports beyond the radix."""
    nvlink_hosts: int = 0
    """Hosts per NVLink domain; 0 for no domains. The domains nest in leaf groups."""

    @property
    def num_planes(self) -> int:
        """Number of fabrics that only hosts connect."""
        return 2 if self.kind is FabricKind.DUAL_PLANE else 1

    @property
    def ports_per_plane(self) -> int:
        """Ports of a host in one plane, which equals the number of leaves of a group there."""
        if self.kind is FabricKind.DUAL_HOMED:
            return 2
        return self.rails if self.kind in {FabricKind.RAIL, FabricKind.DUAL_PLANE} else 1

    @property
    def ports_per_host(self) -> int:
        """Ports of a host, which equals the number of leaves of a group in all planes."""
        return self.num_planes * self.ports_per_plane

    @property
    def num_uplinks(self) -> int:
        """Up-links of every leaf."""
        return self.num_half_ports if self.uplinks is None else self.uplinks

    @property
    def num_half_ports(self) -> int:
        """Half of a switch's ports. Below the top, this many point down, and at most as many up."""
        return self.radix // 2


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The shape of the network of a spec."""

    num_groups: int
    """Number of leaf groups; the last may have fewer hosts."""
    fan_outs: tuple[int, ...]
    """Number of lower units that one unit connects, one entry per rank from 2; the last unit of a
    rank may connect fewer."""
    widths: tuple[int, ...]
    """Number of switches in one set of parallel switches, one entry per rank from 2. At rank 2, a
    set connects all leaves of a plane of a unit; above, set j connects the j-th switch of each
    lower unit. The top of a dragonfly+ has none."""

    @property
    def num_tiers(self) -> int:
        """Number of tiers of units: the ranks of switches, and the top of a dragonfly+."""
        return 1 + len(self.fan_outs)

    def path(self, rank: int, index: int) -> tuple[int, ...]:
        """Return the indices of the units that contain unit `index` of a rank, and its own index.

        The outermost unit is first; indices count per rank. The single unit at the top is omitted,
        so its path is empty.
        """
        if rank == self.num_tiers:
            return ()
        steps = [index]
        for fan_out in self.fan_outs[rank - 1 : -1]:
            steps.append(steps[-1] // fan_out)
        return tuple(reversed(steps))


def derive_shape(spec: SyntheticSpec) -> NetworkShape:
    """Return the smallest network for a spec, non-blocking except for the up-links of leaves.

    The top has as few switches as its ports allow, but at least two, so cables may be parallel.
    More tiers than needed split the hosts into smaller pods. A dragonfly+ whose hosts fit into one
    group is split too.

    Raises:
        ConfigError: a number is out of range, or the hosts do not fit.
    """
    _check(spec)
    num_groups = -(-spec.num_hosts // spec.num_half_ports)
    if spec.kind is FabricKind.DRAGONFLY_PLUS:
        return _dragonfly(spec, num_groups)
    tier_counts = (spec.tiers,) if spec.tiers else range(MIN_TIERS, len(TIER_NAMES) + 1)
    for num_tiers in tier_counts:
        fan_outs = _fan_outs(spec, num_groups, num_tiers)
        if fan_outs:
            return NetworkShape(num_groups, fan_outs, _widths(spec, fan_outs))
    limit = spec.tiers or len(TIER_NAMES)
    raise ConfigError(
        f"{spec.num_hosts} hosts with {spec.ports_per_host} ports do not fit into {limit} tiers "
        f"of {spec.radix}-port switches: use a larger radix, more tiers or fewer rails"
    )


def _dragonfly(spec: SyntheticSpec, num_leaves: int) -> NetworkShape:
    """Return the shape of a dragonfly+: half of the ports of a spine lead to other groups."""
    fan_out = min(spec.num_half_ports, max(1, num_leaves // 2))
    num_groups = -(-num_leaves // fan_out)
    width = _width(fan_out, spec.num_uplinks, down=spec.num_half_ports)
    if num_groups - 1 > width * spec.num_half_ports:
        raise ConfigError(
            f"{num_groups} groups of {width} spines with {spec.num_half_ports} ports to other "
            "groups cannot all be connected to each other: use a larger radix"
        )
    return NetworkShape(num_leaves, (fan_out, num_groups), (width, 0))


def _check(spec: SyntheticSpec) -> None:
    for is_wrong, problem in chain(_problems(spec), _odd_problems(spec)):
        if is_wrong:
            raise ConfigError(problem)


def _problems(spec: SyntheticSpec) -> Iterator[tuple[bool, str]]:
    """Yield (whether the spec is wrong, message) for each rule of a regular Clos."""
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
    """Yield (whether the spec is wrong, message) for the parts that are not in a regular Clos."""
    yield (
        not 1 <= spec.num_uplinks <= spec.num_half_ports,
        f"expected 1 to {spec.num_half_ports} up-links of a leaf, got {spec.uplinks}",
    )
    yield (
        not 0 <= spec.storage_leaves < spec.ports_per_host,
        f"expected fewer storage leaves than {spec.ports_per_host}, got {spec.storage_leaves}",
    )
    yield (
        spec.peer_links < 0 or (spec.peer_links > 0 and spec.kind is not FabricKind.DUAL_HOMED),
        f"only MLAG pairs have peer links, got {spec.peer_links}",
    )
    yield (
        spec.nvlink_hosts < 0
        or (spec.nvlink_hosts > 0 and spec.num_half_ports % spec.nvlink_hosts > 0),
        f"NVLink hosts: expected a divisor of {spec.num_half_ports}, got {spec.nvlink_hosts}",
    )


def _fan_outs(spec: SyntheticSpec, num_groups: int, num_tiers: int) -> tuple[int, ...]:
    """Return the number of lower units per unit at each rank from 2; empty if they do not fit."""
    fan_outs: list[int] = []
    units = num_groups
    for rank in range(2, num_tiers + 1):
        room = _max_lower_units(spec, rank, num_tiers)
        # Limits the size of a unit so that every rank above has at least two units to connect.
        fan_out = min(room, max(1, units >> (num_tiers - rank)))
        if fan_out < 1 or (rank == num_tiers and fan_out < units):
            return ()
        fan_outs.append(fan_out)
        units = -(-units // fan_out)
    return tuple(fan_outs)


def _max_lower_units(spec: SyntheticSpec, rank: int, num_tiers: int) -> int:
    """Return the number of lower units that the downward ports of a rank's switches can connect."""
    ports = spec.radix if rank == num_tiers else spec.num_half_ports
    return ports // spec.ports_per_plane if rank == SPINE_RANK else ports


def _widths(spec: SyntheticSpec, fan_outs: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of switches per unit at each rank from 2."""
    widths = []
    for rank, fan_out in enumerate(fan_outs, 2):
        is_top = rank == 1 + len(fan_outs)
        down = spec.radix if is_top else spec.num_half_ports
        is_spine = rank == SPINE_RANK
        members = fan_out * (spec.ports_per_plane if is_spine else 1)
        widths.append(
            _width(members, spec.num_uplinks if is_spine else spec.num_half_ports, down=down)
        )
    return tuple(widths)


def _width(members: int, ups: int, *, down: int) -> int:
    """Return the number of switches with `down` downward ports for all cables from below.

    At least two, if each member below has two up-links. Only a divisor of `ups` distributes the
    up-links of a switch evenly.
    """
    need = max(min(2, ups), -(-members * ups // down))
    return next(num for num in range(need, ups + 1) if ups % num == 0)
