"""From inputs to a tree with its findings: shared by every command and the server. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from generator.ingest.inputs import Inputs, SweepDoubt
from generator.observe.freshness import derive_report_findings
from generator.observe.known_switches import KnownSwitches
from generator.observe.plan_blockers import (
    LargeDomain,
    derive_setting_findings,
    derive_size_findings,
    describe_cuts,
    describe_lost_entries,
    describe_settings,
    find_large_domains,
    withhold_findings,
)
from generator.observe.port_findings import derive_port_findings
from generator.observe.unmatched_nodes import derive_unmatched_nodes
from topology.findings.impact import CableCounts, measure_impacts
from topology.findings.plane_findings import find_plane_problems
from topology.identity.node_names import build_node_names
from topology.inference.tree_inference import infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.claims import PreviousOwners
from topology.model.fabric import Fabric
from topology.model.facts import Finding, sort_findings
from topology.model.ids import Id, IdKind
from topology.model.tree import TopologyTree
from topology.planes.plane import Plane
from topology.planes.plane_split import PlaneSplit, split_planes


@dataclass(frozen=True, slots=True)
class Observation:
    """The tree and the findings that follow from the inputs."""

    tree: TopologyTree
    findings: tuple[Finding, ...]
    """The costliest first."""
    unknown_subnets: tuple[str, ...] = ()
    """InfiniBand subnets whose cables are unknown, so the tree lacks their connections."""
    doubts: tuple[SweepDoubt, ...] = ()
    """Doubts about the sweeps that the tree follows from."""
    planes: tuple[str, ...] = ()
    """The networks that have ports."""
    plan_blockers: tuple[str, ...] = ()
    """Why nothing may be planned from this observation: a part of its input is known to be lost, or
    a HyperNode cannot be stored."""
    unlinked_nodes: frozenset[str] = frozenset()
    """The nodes that surely have no link on any port."""


class ObservedFabric(NamedTuple):
    """An observation, and the cables that it follows from."""

    observation: Observation
    split: PlaneSplit


def observe(
    inputs: Inputs,
    *,
    now: datetime,
    previous: TopologyTree | None = None,
    names_of_tiers: Sequence[str] = (),
) -> ObservedFabric | None:
    """Return the tree and the findings of saved inputs; the age of the inputs does not matter.

    No data means unknown, never an empty fabric; the caller decides what to do then.

    Args:
        inputs: claims and reports; without a usable claim None is returned.
        now: the current time, with a time zone.
        previous: the previous generation's tree, whose names are carried over.
        names_of_tiers: bottom-up; empty: the default names.
    """
    observed = observe_fabric(inputs, previous=previous, names_of_tiers=names_of_tiers)
    if observed is None:
        return None
    observation = observed.observation
    of_reports = derive_report_findings(
        inputs, now=now, periods=None, unlinked=observation.unlinked_nodes
    )
    findings = sort_findings(
        [*observation.findings, *measure_impacts(of_reports, observation.tree)]
    )
    return observed._replace(observation=replace(observation, findings=findings))


def observe_fabric(
    inputs: Inputs,
    *,
    previous: TopologyTree | None = None,
    first_owners: PreviousOwners = MappingProxyType({}),
    names_of_tiers: Sequence[str] = (),
    known_switches: KnownSwitches | None = None,
) -> ObservedFabric | None:
    """Return the tree and the findings that follow from facts, not from the age of reports.

    Args:
        inputs: claims and reports; without a usable claim None is returned.
        previous: the previous generation's tree, whose names are carried over.
        first_owners: the previous owner of each id, which keeps it against an unproved claim.
        names_of_tiers: bottom-up; empty: the default names.
        known_switches: switches of earlier generations, which are renewed; None: none.
    """
    if not inputs.claims:
        return None
    claims = (*inputs.listed_claims, *inputs.claims)
    fabric = build_fabric(claims, previous_owners=first_owners)
    split = split_planes(fabric, inputs.planes.policies)
    plane = split.plane(inputs.planes.plane_name)
    inference = infer_tree(fabric, plane, previous=previous, names_of_tiers=names_of_tiers)
    large = tuple(find_large_domains(inference.tree))
    of_tree = inference.findings
    if known_switches is not None:
        of_tree = known_switches.name_lost(fabric, plane, of_tree)
    findings: Iterable[Finding] = [
        *of_tree,
        *derive_setting_findings(inputs.unknown_settings),
        *derive_size_findings(large),
        *find_plane_problems(split, plane),
        *derive_port_findings(fabric, plane, inputs.reports),
        *inputs.findings,
        *derive_unmatched_nodes(inputs.inventory, inference.tree, fabric, plane),
    ]
    if inputs.cuts:
        findings = withhold_findings(findings, inputs.cuts)
    counts = CableCounts(fabric, plane, inference.tree)
    observation = Observation(
        inference.tree,
        sort_findings(measure_impacts(dict.fromkeys(findings), inference.tree, counts)),
        inputs.unknown_subnets,
        _name_doubtful_nodes(inputs),
        split.names,
        unlinked_nodes=_list_unlinked_nodes(fabric, plane, inputs),
        plan_blockers=_list_plan_blockers(inputs, previous, large),
    )
    return ObservedFabric(observation, split)


def _list_unlinked_nodes(fabric: Fabric, plane: Plane, inputs: Inputs) -> frozenset[str]:
    """Return the nodes that surely have no link on any port.

    All switches of the plane report their cables, and would recognize a node by an id of its own.
    """
    devices, columns = fabric.devices, fabric.columns
    is_seen = all(devices[switch].is_reporting for switch in plane.switches)
    if not plane.switches or not is_seen or inputs.unknown_subnets or inputs.cuts:
        return frozenset()
    is_linked = np.zeros(len(devices), np.bool_)
    is_linked[columns.port_devices[np.concatenate([columns.links.a, columns.links.b])]] = True
    numbers = np.flatnonzero(~is_linked).tolist()
    found = (devices[number] for number in numbers)
    return frozenset(row.node for row in found if row.node and any(map(_is_of_hardware, row.ids)))


def _is_of_hardware(id_: Id) -> bool:
    return id_.kind in {IdKind.NODE_GUID, IdKind.PORT_GUID, IdKind.MAC}


def _name_doubtful_nodes(inputs: Inputs) -> tuple[SweepDoubt, ...]:
    """Return the doubts with the nodes of the hosts that the sweeps name."""
    if inputs.inventory is None or not any(doubt.nodes for doubt in inputs.doubts):
        return inputs.doubts
    names = build_node_names(inputs.inventory.ids_by_node)
    named = []
    for doubt in inputs.doubts:
        nodes = doubt.nodes
        if nodes is not None:
            nodes = frozenset(names.find(name) or name for name in nodes)
        named.append(doubt._replace(nodes=nodes))
    return tuple(named)


def _list_plan_blockers(
    inputs: Inputs, previous: TopologyTree | None, large: Sequence[LargeDomain]
) -> tuple[str, ...]:
    lost = describe_lost_entries(inputs.inventory, previous)
    return (
        *describe_settings(inputs.unknown_settings),
        *describe_cuts(inputs.cuts),
        *([lost] if lost else []),
        *(domain.problem for domain in large),
    )
