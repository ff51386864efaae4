"""The inputs of one observation: claims, reports and inventory, with the problems in them."""

from __future__ import annotations

from dataclasses import dataclass

from generator.objects.inventory import Inventory
from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.errors import ParseError
from topology.reports.compact_reports import Report


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs of one observation."""

    claims: tuple[Claim | SweptClaims, ...] = ()
    """Without those of the inventory."""
    reports: tuple[Report, ...] = ()
    inventory: Inventory | None = None
    problems: tuple[ParseError, ...] = ()
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets without a complete sweep: their cables are unknown."""
    planes: PlaneChoice = DEFAULT_PLANES
    tier_names: tuple[str, ...] = ()
    """As the Fabric object says; empty: the default names."""

    @property
    def all_claims(self) -> tuple[Claim | SweptClaims, ...]:
        """All claims, with those of the inventory."""
        return (*self.listed_claims, *self.claims)

    @property
    def listed_claims(self) -> tuple[Claim, ...]:
        """The claims of the inventory, one per node."""
        listed = self.inventory.nodes if self.inventory else ()
        return tuple(Claim(node.device, Origin.INVENTORY) for node in listed)
