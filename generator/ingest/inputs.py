"""The inputs of one observation: claims, reports and inventory, with the problems in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from generator.objects.inventory import Inventory
from generator.objects.plane_config import DEFAULT_PLANES, PlaneChoice
from generator.objects.tree_spec import UnknownSetting
from topology.model.claims import Claim, ListedClaim, SweptClaims
from topology.model.errors import CutInput, ParseError
from topology.model.facts import Finding
from topology.reports.packed_reports import PackedReport


class DoubtKind(StrEnum):
    """What speaks against a sweep."""

    SWEEPS_DISAGREE = "SweepsDisagree"
    """Another sweeper sees other cables."""
    SWEEP_CONTRADICTED = "SweepContradicted"
    """Hosts report something else about themselves."""
    SWEEP_UNCONFIRMED = "SweepUnconfirmed"
    """A new sweeper reports the sweep, and no other sweeper confirms it."""


class SweepDoubt(NamedTuple):
    """Evidence against the sweep that is used; a plan that depends on it is held."""

    kind: DoubtKind
    message: str
    """One line, foreign names escaped."""
    nodes: frozenset[str] | None = None
    """The nodes whose own cables are in doubt; None: any node may be affected."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All inputs of one observation."""

    claims: tuple[Claim | SweptClaims, ...] = ()
    """Without those of the inventory."""
    reports: tuple[PackedReport, ...] = ()
    inventory: Inventory | None = None
    problems: tuple[ParseError, ...] = ()
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets without a complete sweep: their cables are unknown."""
    planes: PlaneChoice = DEFAULT_PLANES
    tier_names: tuple[str, ...] = ()
    """The names in the Fabric object; empty: the default names."""
    findings: tuple[Finding, ...] = ()
    """About the sweeps themselves: ignored, contradicted or in disagreement."""
    doubts: tuple[SweepDoubt, ...] = ()
    """Doubts about the sweeps that are used."""
    unknown_settings: tuple[UnknownSetting, ...] = ()
    """The settings of the tree of which no good value is known."""
    fabric: Mapping[str, Any] | None = None
    """The Fabric object of the cluster; None if there is none, or no cluster was read."""

    @property
    def cuts(self) -> tuple[CutInput, ...]:
        """The inputs whose end is missing: a device that they lack may exist."""
        return tuple(problem for problem in self.problems if isinstance(problem, CutInput))

    @property
    def all_claims(self) -> tuple[Claim | SweptClaims, ...]:
        """All claims, with those of the inventory."""
        return (*self.listed_claims, *self.claims)

    @property
    def listed_claims(self) -> tuple[Claim, ...]:
        """The claims of the inventory, one per node."""
        listed = self.inventory.nodes if self.inventory else ()
        return tuple(ListedClaim(node.name, node.ids) for node in listed)
