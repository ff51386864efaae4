"""Joins the facts of the collectors into this node's reports. Pure: equal facts, equal reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from msgspec.structs import replace

from agent.collection import SWEEP, CollectorRun, RunOutcome
from agent.collectors.probe import CollectedFacts, merge_ports
from agent.settings import AgentSettings
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Port
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    MAX_TEXT,
    CollectorOutcome,
    NeighborReport,
    ReportStatus,
    SweepStanding,
    build_report,
)
from topology.reports.sweep_parts import split_sweep


def build_reports(
    settings: AgentSettings,
    attempts: Sequence[CollectorRun],
    *,
    now: datetime,
    last_observed_at: str | None = None,
    sweeping: SweepStanding | None = None,
    flapping: Collection[str] = (),
) -> list[NeighborReport]:
    """Return the node's report, followed by the reports of successful new sweeps.

    If nothing could be observed, the report keeps the time of its facts, so that it becomes stale.
    A failed sweep has no reports, so its earlier reports stay as they are and become stale too.
    """
    observed_at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    stamp = observed_at if has_observed(attempts) else last_observed_at
    device = merge_device(settings, [attempt.facts for attempt in attempts])
    status = replace(
        _status(attempts, stamp), sweeping=sweeping, flapping=_select_ports(device, flapping)
    )
    reports = [build_report(device, name=settings.node_name, status=status)]
    for attempt in attempts:
        if has_swept(attempt):
            status = _status([attempt], observed_at)
            for subnet, text in attempt.facts.sweeps:
                first = len(reports) - 1
                parts = split_sweep(text, node=settings.node_name, subnet=subnet, first=first)
                reports += [replace(part, status=status) for part in parts]
    return reports


def has_swept(attempt: CollectorRun) -> bool:
    """Return whether a run is a new, successful sweep."""
    is_new = attempt.collector == SWEEP and not attempt.is_repeated
    return is_new and attempt.outcome is RunOutcome.OK


def merge_device(settings: AgentSettings, all_facts: Iterable[CollectedFacts]) -> Device:
    """Return this node as one device: all ids, and one port for each port name.

    If two collectors differ, the earlier one counts. The order of ports does not matter.
    """
    all_facts = list(all_facts)
    excluded = _excluded(all_facts)
    port_of = dict(sorted(pair for facts in all_facts for pair in facts.port_of))
    rdma_of_net = {
        port_of.get(net, net): rdma
        for net, rdma in sorted(
            (pair for facts in all_facts for pair in facts.rdma_of_net), reverse=True
        )
    }
    ports: dict[str, Port] = {}
    for port in (port for facts in all_facts for port in facts.ports):
        if port.name not in excluded:
            name = port_of.get(port.name, port.name)
            known = ports.get(name)
            ports[name] = merge_ports(known, port) if known else port._replace(name=name)
    return Device(
        kind=settings.kind,
        name=settings.hostname,
        ids=_merge_ids(settings, all_facts),
        ports=tuple(
            port._replace(rdma_device=port.rdma_device or rdma_of_net.get(port.name))
            for port in ports.values()
        ),
    )


def _merge_ids(settings: AgentSettings, all_facts: Sequence[CollectedFacts]) -> tuple[Id, ...]:
    """Return the ids of this node, sorted.

    lldpd may choose an address as chassis id that identifies no node; it is left out.
    """
    repeated = frozenset(mac for facts in all_facts for mac in facts.repeated_macs)
    ids = {Id(IdKind.HOSTNAME, settings.hostname)}
    if settings.kind is DeviceKind.HOST:
        ids.add(Id(IdKind.NODE_NAME, settings.node_name))
    ids = ids.union(*(facts.ids for facts in all_facts))
    return tuple(sorted(id_ for id_ in ids if id_.subtype != "mac" or id_.value not in repeated))


def _select_ports(device: Device, names: Collection[str]) -> tuple[str, ...]:
    """Return the names that are reported ports, sorted and cut to the length of a report's text."""
    return tuple(sorted(port.name[:MAX_TEXT] for port in device.ports if port.name in names))


def _excluded(all_facts: Iterable[CollectedFacts]) -> frozenset[str]:
    return frozenset(name for facts in all_facts for name in facts.excluded)


def has_observed(attempts: Sequence[CollectorRun]) -> bool:
    """Return whether a collector observed the node now, even if it found nothing."""
    outcomes = {attempt.outcome for attempt in attempts if not attempt.is_repeated}
    return RunOutcome.OK in outcomes or RunOutcome.FAILED not in outcomes


def _status(attempts: Sequence[CollectorRun], observed_at: str | None) -> ReportStatus:
    excluded = _excluded(attempt.facts for attempt in attempts)
    return ReportStatus(
        observed_at=observed_at,
        agent_version=version("toponaut"),
        collectors=tuple(
            CollectorOutcome(
                name=attempt.collector,
                outcome=attempt.outcome.value,
                message=_message(attempt, excluded),
            )
            for attempt in attempts
        ),
    )


def _message(attempt: CollectorRun, excluded: frozenset[str]) -> str:
    """Return the run's message, and a hint if interfaces that are not ports heard neighbors."""
    ports = attempt.facts.ports
    names = [show(port.name) for port in ports if port.neighbors and port.name in excluded]
    hint = f"left out: not physical ports (see --interfaces): {', '.join(names)}" if names else ""
    return "; ".join(part for part in (attempt.message, hint) if part)[:MAX_TEXT]
