"""The one line from inputs to a tree with its findings, shared by every command and the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory
from generator.observe.freshness import report_findings
from generator.observe.port_findings import PortMemory, port_findings
from topology.identity.id_owners import owners_of
from topology.incremental.incremental_tree import Context, Known, Path, Wanted, learn
from topology.model.claims import Claim, FirstOwners, Key, SweptClaims
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
    owners: FirstOwners = field(default_factory=dict[Key, str], compare=False, repr=False)
    """By id the node that has it, where nodes report: who had it first when another claims it."""
    path: Path = field(default=Path.WHOLE, compare=False)
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
    findings = sort_findings([*found.findings, *report_findings(inputs, now=now, ages=None)])
    return replace(found, findings=findings)


class FabricMemory:
    """What was made of the last inputs, so that the next are only looked at where they differ."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.known: Known | None = None
        self.ports = PortMemory()
        self._listed: tuple[Inventory | None, tuple[Claim, ...]] = (None, ())
        self._owners: FirstOwners | None = None

    def claims(self, inputs: Inputs) -> tuple[Claim | SweptClaims, ...]:
        """Return all claims, those of the same inventory as the same objects."""
        inventory, claims = self._listed
        if inventory is not inputs.inventory:
            claims = inputs.listed_claims
            self._listed = (inputs.inventory, claims)
        return (*claims, *inputs.claims)

    def learn(self, inputs: Inputs, wanted: Wanted, context: Context) -> Known:
        """Return what the inputs tell, and remember it."""
        self.known = learn(self.claims(inputs), wanted=wanted, context=context, last=self.known)
        return self.known

    def owners(self, known: Known) -> FirstOwners:
        """Return who has which id: the same as before where no more than cables moved."""
        if known.path is Path.WHOLE or self._owners is None:
            self._owners = owners_of(known.fabric)
        return self._owners


def observe_fabric(
    inputs: Inputs,
    *,
    previous: TopologyTree | None = None,
    first_owners: FirstOwners = MappingProxyType({}),
    names_of_tiers: Sequence[str] = (),
    memory: FabricMemory | None = None,
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
    memory = memory or FabricMemory()
    choice = inputs.planes
    wanted = Wanted(choice.name, tuple(choice.policies), tuple(names_of_tiers))
    known = memory.learn(inputs, wanted, Context(previous, first_owners))
    found = known.inferred.inference
    told = port_findings(known.fabric, known.plane, inputs.reports, memory=memory.ports)
    findings = sort_findings([*found.findings, *told])
    owners: FirstOwners = memory.owners(known) if inputs.reports else {}
    return Observation(
        found.tree, findings, inputs.unknown_subnets, known.split.names, owners, known.path
    )
