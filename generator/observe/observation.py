"""From inputs to a tree with its findings: shared by every command and the server. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from generator.ingest.inputs import Inputs, SweepDoubt
from generator.objects.inventory import Inventory
from generator.observe.cut_inputs import describe_cuts, withhold_findings
from generator.observe.domain_size import LargeDomain, derive_size_findings, find_large_domains
from generator.observe.freshness import derive_report_findings
from generator.observe.inventory_findings import describe_lost_entries
from generator.observe.known_switches import KnownSwitches
from generator.observe.port_findings import HostPortCache, derive_port_findings
from generator.observe.unknown_settings import derive_setting_findings, describe_settings
from generator.observe.unmatched_nodes import derive_unmatched_nodes
from topology.findings.plane_findings import find_plane_problems
from topology.identity.id_owners import DeferredOwners, index_id_owners
from topology.identity.node_names import build_node_names
from topology.incremental.incremental_tree import (
    PreviousGeneration,
    RebuildScope,
    TreeOptions,
    TreeState,
    build_tree_state,
    update_tree_state,
)
from topology.model.claims import Claim, Key, PreviousOwners, SweptClaims
from topology.model.facts import Finding, FindingKind, sort_findings
from topology.model.tree import TopologyTree
from topology.planes.plane import PlaneSplit


@dataclass(frozen=True, slots=True)
class Observation:
    """The tree and the findings that follow from the inputs."""

    tree: TopologyTree
    findings: tuple[Finding, ...]
    """Sorted by kind, device and port."""
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets whose cables are unknown, so the tree lacks their connections."""
    doubts: tuple[SweepDoubt, ...] = ()
    """What speaks against the sweeps that the tree follows from."""
    planes: tuple[str, ...] = ()
    """The networks that have ports."""
    plan_stops: tuple[str, ...] = ()
    """Why nothing may be planned from this observation: a part of its input is known to be lost, or
    a HyperNode cannot be stored."""
    owners: PreviousOwners = field(default_factory=dict[Key, str], compare=False, repr=False)
    """The node that owns each id. It keeps the id when another node claims it. Empty without
    reports."""
    path: RebuildScope = field(default=RebuildScope.WHOLE, compare=False)
    """How much of the tree was rebuilt."""


def observe(
    inputs: Inputs,
    *,
    now: datetime,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
    memory: ObservationCache | None = None,
) -> Observation | None:
    """Return the tree and the findings of saved inputs, whose age means nothing.

    No data means unknown, never an empty fabric; the caller decides what to do then.

    Args:
        inputs: claims and reports; without a usable claim None is returned.
        now: with a time zone.
        previous: the previous generation's tree, whose names are carried over.
        names_of_tiers: bottom-up; empty: the default names.
        memory: stores the state of the observation, for callers that need the cables too.
    """
    observation = observe_fabric(
        inputs, previous=previous, names_of_tiers=names_of_tiers, memory=memory
    )
    if observation is None:
        return None
    findings = sort_findings(
        [*observation.findings, *derive_report_findings(inputs, now=now, periods=None)]
    )
    return replace(observation, findings=findings)


class ObservationCache:
    """The state of the last observation, so that only changed inputs are evaluated again."""

    def __init__(
        self, *, has_updates: bool = True, known_switches: KnownSwitches | None = None
    ) -> None:
        """Start without a state.

        Args:
            has_updates: whether further inputs follow; a single answer needs less work.
            known_switches: those of earlier generations; None: there are none.
        """
        self._known_switches = known_switches or KnownSwitches()
        self._has_updates = has_updates
        self.known: TreeState | None = None
        self.port_cache = HostPortCache()
        self._listed: tuple[Inventory | None, tuple[Claim, ...]] = (None, ())
        self._owners: PreviousOwners | None = None

    @property
    def split(self) -> PlaneSplit | None:
        """The cables of the last observation and their planes; None without one."""
        return None if self.known is None else self.known.split

    def collect_claims(self, inputs: Inputs) -> tuple[Claim | SweptClaims, ...]:
        """Return all claims; an unchanged inventory gives the identical claim objects."""
        inventory, claims = self._listed
        if inventory is not inputs.inventory:
            claims = inputs.listed_claims
            self._listed = (inputs.inventory, claims)
        return (*claims, *inputs.claims)

    def update(self, inputs: Inputs, wanted: TreeOptions, context: PreviousGeneration) -> TreeState:
        """Return the tree state of the inputs, and store it for the next call.

        The last state is dropped before a whole one is built: two would need twice the memory.
        """
        self.port_cache.forget_others(inputs.reports)  # they would last until the next tree
        claims = self.collect_claims(inputs)
        known = self.known and update_tree_state(
            self.known, claims, options=wanted, context=context
        )
        if known is None:
            self.known = self._owners = None
            known = build_tree_state(
                claims, options=wanted, context=context, has_updates=self._has_updates
            )
        self.known = known
        return known

    def list_findings(self, state: TreeState) -> Iterable[Finding]:
        """Return the findings about the tree and its cables, lost switches by their names."""
        findings = state.inference_state.inference.findings
        if not self._has_updates:
            return findings
        unnamed = [row for row in findings if row.kind is FindingKind.LOST_SWITCH]
        lost = self._known_switches.update(
            state.fabric,
            state.plane,
            unnamed,
            keeps_switches=state.scope is not RebuildScope.WHOLE,
        )
        return [*(row for row in findings if row.kind is not FindingKind.LOST_SWITCH), *lost]

    def find_owners(self, known: TreeState) -> PreviousOwners:
        """Return the owner of each id; the previous result if only cables changed."""
        if known.scope is RebuildScope.WHOLE or self._owners is None:
            self._owners = (
                DeferredOwners(known.fabric)
                if known.joined is None
                else index_id_owners(known.fabric, known.joined.ids)
            )
        return self._owners


def observe_fabric(
    inputs: Inputs,
    *,
    previous: TopologyTree | None = None,
    first_owners: PreviousOwners = MappingProxyType({}),
    names_of_tiers: Sequence[str] = (),
    memory: ObservationCache | None = None,
) -> Observation | None:
    """Return the tree and the findings that follow from facts, not from the age of reports.

    Args:
        inputs: claims and reports; without a usable claim None is returned.
        previous: the previous generation's tree, whose names are carried over.
        first_owners: the previous owner of each id, which keeps it against an unproved claim.
        names_of_tiers: bottom-up; empty: the default names.
        memory: the state of the last observation; without it everything is computed.
    """
    if not inputs.claims:
        return None
    memory = memory or ObservationCache(has_updates=False)
    choice = inputs.planes
    wanted = TreeOptions(choice.plane_name, tuple(choice.policies), tuple(names_of_tiers))
    state = memory.update(inputs, wanted, PreviousGeneration(previous, first_owners))
    inference = state.inference_state.inference
    large = tuple(find_large_domains(inference.tree))
    port_findings = derive_port_findings(
        state.fabric, state.plane, inputs.reports, memory=memory.port_cache
    )
    findings: Iterable[Finding] = [
        *memory.list_findings(state),
        *find_plane_problems(state.split, state.plane),
        *port_findings,
        *inputs.findings,
        *derive_setting_findings(inputs.unknown_settings),
        *derive_size_findings(large),
        *derive_unmatched_nodes(inputs.inventory, inference.tree, state.fabric, state.plane),
    ]
    if inputs.cuts:
        findings = withhold_findings(findings, inputs.cuts)
    owners: PreviousOwners = memory.find_owners(state) if inputs.reports else {}
    return Observation(
        inference.tree,
        sort_findings(findings),
        inputs.unknown_subnets,
        _name_doubtful_nodes(inputs),
        state.split.names,
        plan_stops=_list_plan_stops(inputs, previous, large),
        owners=owners,
        path=state.scope,
    )


def _name_doubtful_nodes(inputs: Inputs) -> tuple[SweepDoubt, ...]:
    """Return the doubts with the nodes of the hosts that the sweeps name."""
    if inputs.inventory is None or not any(doubt.nodes for doubt in inputs.doubts):
        return inputs.doubts
    names = build_node_names(inputs.inventory.ids_by_node)
    return tuple(
        doubt
        if doubt.nodes is None
        else doubt._replace(nodes=frozenset(names.find(name) or name for name in doubt.nodes))
        for doubt in inputs.doubts
    )


def _list_plan_stops(
    inputs: Inputs, previous: TopologyTree | None, large: Sequence[LargeDomain]
) -> tuple[str, ...]:
    lost = describe_lost_entries(inputs.inventory, previous)
    return (
        *describe_settings(inputs.unknown_settings),
        *describe_cuts(inputs.cuts),
        *([lost] if lost else []),
        *(domain.problem for domain in large),
    )
