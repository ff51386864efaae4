"""Claims to a Fabric: devices with one identity each, and links paired from both ends.

Nothing is dropped: a cable that only one end reports is a link with one side, parallel cables
stay parallel, and what contradicts itself becomes a finding. Which links matter to jobs is
decided in `planes`, what they mean in `tiers`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from topology.model.claims import Claim, FirstOwners, SweptClaims
from topology.model.facts import DeviceKind, Finding, GpuDistance, Medium, PortName, PortState
from topology.model.ids import Id

if TYPE_CHECKING:
    from topology.model.fabric_columns import FabricColumns


_NOBODY: Final[FirstOwners] = MappingProxyType({})


class FabricDevice(NamedTuple):
    """One device; its index in `Fabric.devices` is its number everywhere else."""

    name: str
    """Unique: the node name, else the device's own, else its lowest id."""
    kind: DeviceKind
    node: str | None
    """The cluster node it is, None for switches and for hosts that are none."""
    ids: Sequence[Id]
    """Sorted."""
    is_reporting: bool = True
    """It speaks for itself, so that its silence about a cable means much."""
    has_report: bool = False
    """An agent reports for it; only that tells what no cable of the network shows."""


class FabricPort(NamedTuple):
    """One port; its index in `Fabric.ports` is its number in links."""

    device: int
    name: str
    medium: Medium
    state: PortState
    rate_bps: int | None
    rdma_device: str | None
    gpu_distance: GpuDistance | None
    firmware_lldp: bool | None = None
    """Whether its card eats LLDP frames; None where nothing tells."""
    subnet: str | None = None
    """Prefix of its InfiniBand subnet, where its owner tells."""


class Link(NamedTuple):
    """One cable between two ports, `a` < `b`."""

    a: int
    b: int
    is_one_sided: bool
    """Only one end reports it although the other could have."""
    is_disputed: bool
    """The end that does not report it is on another cable, which both of its ends confirm."""
    rate_bps: int | None
    """The lower of what the two ends say."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """Everything that is known about how devices are wired; devices in natural name order."""

    devices: Sequence[FabricDevice]
    ports: Sequence[FabricPort]
    """Grouped by device."""
    links: Sequence[Link]
    """Sorted by ports."""
    findings: tuple[Finding, ...]
    columns: FabricColumns | None = field(default=None, compare=False, repr=False)
    """The same as arrays, where it was made of arrays; see `fabric_columns.columns_of`."""

    def port_name(self, port: int) -> PortName:
        """Return a port as people find it."""
        found = self.ports[port]
        return PortName(self.devices[found.device].name, found.name)

    def show_link(self, link: Link) -> str:
        """Return both ends of a link as a message names them."""
        ends = (self.port_name(link.a), self.port_name(link.b))
        return " and ".join(f"{end.device} port {end.port}" for end in ends)


def build_fabric(
    claims: Iterable[Claim | SweptClaims], *, first_owners: FirstOwners = _NOBODY
) -> Fabric:
    """Join claims to one fabric. The order of claims does not matter.

    Cost: O(n log n) in ports and neighbors, 10 µs each; 1 µs where all claims are of sweeps
    without contradictions, which are then joined as columns, to the same fabric.

    Args:
        claims: of all origins.
        first_owners: by id the node that had it before, for ids that two claim now.
    """
    claims = list(claims)
    swept = [claim for claim in claims if isinstance(claim, SweptClaims)]
    if swept and len(swept) == len(claims):
        from topology.join.sweep_join import build_swept  # noqa: PLC0415 - numpy for large sweeps only

        found = build_swept(swept)
        if found is not None:
            return found
    from topology.join.claim_join import join_claims  # noqa: PLC0415 - it makes what is defined here

    return join_claims(claims, first_owners=first_owners).fabric
