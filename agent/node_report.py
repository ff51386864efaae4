"""Joins what the collectors found into this node's reports. Pure: equal facts, equal reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

from agent.collection import SWEEP, CollectorRun, RunOutcome
from agent.collectors.probe import CollectedFacts
from agent.settings import AgentSettings
from topology.model.errors import show
from topology.model.facts import Device, DeviceKind, Port, PortState
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
    """Return the node's report and, after sweeps that worked, the sweeps'.

    A report in which nothing could be observed anew keeps the time of its facts, so that it
    grows stale; so do the reports of a sweep, which are left alone when the sweep failed.
    """
    observed_at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    stamp = observed_at if has_observed(attempts) else last_observed_at
    device = merge_device(settings, [attempt.facts for attempt in attempts])
    told = {"sweeping": sweeping, "flapping": _select_ports(device, flapping)}
    status = _status(attempts, stamp).model_copy(update=told)
    reports = [build_report(device, name=settings.node_name, status=status)]
    for attempt in attempts:
        if has_swept(attempt):
            status = _status([attempt], observed_at)
            for subnet, text in attempt.facts.sweeps:
                first = len(reports) - 1
                parts = split_sweep(text, node=settings.node_name, subnet=subnet, first=first)
                reports += [part.model_copy(update={"status": status}) for part in parts]
    return reports


def has_swept(attempt: CollectorRun) -> bool:
    """Return whether it is a sweep of this very run that found something."""
    is_new = attempt.collector == SWEEP and not attempt.is_repeated
    return is_new and attempt.outcome is RunOutcome.OK


def merge_device(settings: AgentSettings, found: Iterable[CollectedFacts]) -> Device:
    """Return this node as one device: ids united, ports of one name joined.

    Where two collectors differ, the earlier one counts. The order of ports does not matter.
    """
    found = list(found)
    excluded = _excluded(found)
    rdma_of_net = dict(sorted(pair for facts in found for pair in facts.rdma_of_net))
    ports: dict[str, Port] = {}
    for port in (port for facts in found for port in facts.ports):
        if port.name not in excluded:
            known = ports.get(port.name)
            ports[port.name] = _merge_ports(known, port) if known else port
    ids = {Id(IdKind.HOSTNAME, settings.hostname)}
    if settings.kind is DeviceKind.HOST:
        ids.add(Id(IdKind.NODE_NAME, settings.node_name))
    return Device(
        kind=settings.kind,
        name=settings.hostname,
        ids=tuple(sorted(ids.union(*(facts.ids for facts in found)))),
        ports=tuple(
            port._replace(rdma_device=port.rdma_device or rdma_of_net.get(port.name))
            for port in ports.values()
        ),
    )


def _select_ports(device: Device, names: Collection[str]) -> tuple[str, ...]:
    """Return which of the names are ports that are reported, sorted and capped as they are."""
    return tuple(sorted(port.name[:MAX_TEXT] for port in device.ports if port.name in names))


def _merge_ports(first: Port, second: Port) -> Port:
    is_known = first.state is not PortState.UNKNOWN
    return first._replace(
        ids=tuple(sorted({*first.ids, *second.ids})),
        state=first.state if is_known else second.state,
        rate_bps=first.rate_bps or second.rate_bps,
        bond_master=first.bond_master or second.bond_master,
        rdma_device=first.rdma_device or second.rdma_device,
        pci_address=first.pci_address or second.pci_address,
        gpu_distance=first.gpu_distance or second.gpu_distance,
        numa_node=second.numa_node if first.numa_node is None else first.numa_node,
        firmware_lldp=second.firmware_lldp if first.firmware_lldp is None else first.firmware_lldp,
        subnet=first.subnet or second.subnet,
        neighbors=tuple(sorted({*first.neighbors, *second.neighbors}, key=repr)),
    )


def _excluded(found: Iterable[CollectedFacts]) -> frozenset[str]:
    return frozenset(name for facts in found for name in facts.excluded)


def has_observed(attempts: Sequence[CollectorRun]) -> bool:
    """Return whether anything was observed anew, be it that there is nothing."""
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
    """Return what the run said, and a hint at neighbors heard on what is no port, as veths are."""
    ports = attempt.facts.ports
    names = [show(port.name) for port in ports if port.neighbors and port.name in excluded]
    hint = f"left out, no physical ports (see --interfaces): {', '.join(names)}" if names else ""
    return "; ".join(part for part in (attempt.message, hint) if part)[:MAX_TEXT]
