"""The one line from inputs to a tree with its findings, shared by every command and the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory
from generator.observe.freshness import derive_report_findings
from generator.observe.port_findings import HostPortCache, derive_port_findings
from topology.identity.id_owners import index_id_owners
from topology.incremental.incremental_tree import (
    PreviousGeneration,
    TreeState,
    RebuildScope,
    TreeOptions,
    build_tree_state,
)
from topology.model.claims import Claim, PreviousOwners, Key, SweptClaims
from topology.model.facts import Finding, sort_findings
from topology.model.tree import TopologyTree


@dataclass(frozen=True, slots=True)
class Observation:
    """What the inputs say about the fabric."""

    tree: TopologyTree
    findings: tuple[Finding, ...]
    """Sorted by kind, device and port."""
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets whose cables are not known; the tree lacks what hangs on them."""
    planes: tuple[str, ...] = ()
    """The networks that have ports."""
    owners: PreviousOwners = field(default_factory=dict[Key, str], compare=False, repr=False)
    """By id the node that has it, where nodes report: who had it first when another claims it."""
    path: RebuildScope = field(default=RebuildScope.WHOLE, compare=False)
    """How much was done anew for it."""


def observe(
    inputs: Inputs,
    *,
    now: datetime,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> Observation | None:
    """Return the tree and the findings of saved inputs, whose age means nothing.

    No data is unknown, never an empty fabric: what to do about it is the caller's choice.

    Args:
        inputs: claims and reports; None is returned where nothing usable was read.
        now: with a time zone, to judge ages by.
        previous: the last generation's tree, whose names are carried over.
        names_of_tiers: bottom-up; the usual ones when empty.
    """
    found = observe_fabric(inputs, previous=previous, names_of_tiers=names_of_tiers)
    if found is None:
        return None
    findings = sort_findings(
        [*found.findings, *derive_report_findings(inputs, now=now, periods=None)]
    )
    return replace(found, findings=findings)


class ObservationCache:
    """What was made of the last inputs, so that the next are only looked at where they differ."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.known: TreeState | None = None
        self.port_cache = HostPortCache()
        self._listed: tuple[Inventory | None, tuple[Claim, ...]] = (None, ())
        self._owners: PreviousOwners | None = None

    def collect_claims(self, inputs: Inputs) -> tuple[Claim | SweptClaims, ...]:
        """Return all claims, those of the same inventory as the same objects."""
        inventory, claims = self._listed
        if inventory is not inputs.inventory:
            claims = inputs.listed_claims
            self._listed = (inputs.inventory, claims)
        return (*claims, *inputs.claims)

    def update(self, inputs: Inputs, wanted: TreeOptions, context: PreviousGeneration) -> TreeState:
        """Return what the inputs tell, and remember it."""
        self.known = build_tree_state(
            self.collect_claims(inputs), options=wanted, context=context, last=self.known
        )
        return self.known

    def find_owners(self, known: TreeState) -> PreviousOwners:
        """Return who has which id: the same as before where no more than cables moved."""
        if known.scope is RebuildScope.WHOLE or self._owners is None:
            self._owners = index_id_owners(known.fabric)
        return self._owners


def observe_fabric(
    inputs: Inputs,
    *,
    previous: TopologyTree | None = None,
    first_owners: PreviousOwners = MappingProxyType({}),
    names_of_tiers: Sequence[str] = (),
    memory: ObservationCache | None = None,
) -> Observation | None:
    """Return the tree and those findings that follow from facts alone, not from their status.

    Args:
        inputs: claims and reports; None is returned where nothing usable was read.
        previous: the last generation's tree, whose names are carried over.
        first_owners: the last generation's owners, who keep what another claims without proof.
        names_of_tiers: bottom-up; the usual ones when empty.
        memory: what was observed last; without it all is looked at.
    """
    if not inputs.claims:
        return None
    memory = memory or ObservationCache()
    choice = inputs.planes
    wanted = TreeOptions(choice.plane_name, tuple(choice.policies), tuple(names_of_tiers))
    known = memory.update(inputs, wanted, PreviousGeneration(previous, first_owners))
    found = known.inference_state.inference
    told = derive_port_findings(known.fabric, known.plane, inputs.reports, memory=memory.port_cache)
    findings = sort_findings([*found.findings, *told])
    owners: PreviousOwners = memory.find_owners(known) if inputs.reports else {}
    return Observation(
        found.tree, findings, inputs.unknown_subnets, known.split.names, owners, known.scope
    )
