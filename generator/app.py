"""The one line from inputs to a tree with its findings, shared by every command and the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from generator.inputs import Inputs
from generator.intake import freshness_findings
from generator.subnets import refusals
from topology.fabric import build_fabric
from topology.facts import Finding, sort_findings
from topology.inference import infer
from topology.planes import split_planes
from topology.tree import TopologyTree


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


def observe(
    inputs: Inputs,
    *,
    now: datetime,
    previous: TopologyTree | None = None,
    period: timedelta | None = None,
    names_of_tiers: Sequence[str] = (),
) -> Observation | None:
    """Return the tree and the findings; None where nothing usable was read.

    No data is unknown, never an empty fabric: what to do about it is the caller's choice.

    Args:
        inputs: claims and reports.
        now: with a time zone, to judge ages by.
        previous: the last generation's tree, whose names are carried over.
        period: how often agents collect; None for saved reports, whose age means nothing.
        names_of_tiers: bottom-up; the usual ones when empty.
    """
    if not inputs.claims:
        return None
    fabric = build_fabric(inputs.all_claims)
    split = split_planes(fabric, inputs.planes.policies)
    plane = split.plane(inputs.planes.name)
    inference = infer(fabric, plane=plane, previous=previous, names_of_tiers=names_of_tiers)
    listed = [node.name for node in inputs.inventory.nodes] if inputs.inventory else []
    fresh = freshness_findings(inputs.reports, listed=listed, now=now, period=period)
    refused = refusals(inputs.reports, unknown=inputs.unknown_subnets)
    findings = sort_findings([*inference.findings, *fresh, *refused])
    return Observation(inference.tree, findings, inputs.unknown_subnets, split.names)
