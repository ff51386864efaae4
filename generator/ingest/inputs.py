"""The inputs of one observation: claims, reports and inventory, with what could not be read."""

from __future__ import annotations

from dataclasses import dataclass

from generator.objects.inventory import Inventory
from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.errors import ParseError
from topology.reports.compact_reports import Report


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that was read, as claims."""

    claims: tuple[Claim | SweptClaims, ...] = ()
    """Without the inventory's."""
    reports: tuple[Report, ...] = ()
    inventory: Inventory | None = None
    problems: tuple[ParseError, ...] = ()
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets without a whole sweep, so that what they cable is not known."""
    planes: PlaneChoice = DEFAULT_PLANES
    tier_names: tuple[str, ...] = ()
    """As the Fabric object says; the usual ones where empty."""

    @property
    def all_claims(self) -> tuple[Claim | SweptClaims, ...]:
        """Claims including the inventory's."""
        return (*self.listed_claims, *self.claims)

    @property
    def listed_claims(self) -> tuple[Claim, ...]:
        """The inventory's."""
        listed = self.inventory.nodes if self.inventory else ()
        return tuple(Claim(node.device, Origin.INVENTORY) for node in listed)
