"""Reports of nodes in synthetic InfiniBand subnets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec import structs

from topology.model.facts import Device, DeviceKind, Medium, Port, PortState
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportStatus,
    SweepStanding,
    build_report,
)
from topology.reports.sweep_parts import split_sweep

NOW = datetime(2026, 1, 2, 3, 0, tzinfo=UTC)
PERIOD = timedelta(minutes=1)
A, B = "fe80000000000001", "fe80000000000002"
ABLE = SweepStanding(able=True)


def stamp(age: timedelta = timedelta()) -> str:
    return (NOW - age).isoformat()


def hca(subnet: str | None, name: str = "mlx5_0/1", state: PortState = PortState.UP) -> Port:
    guid = f"{sum(map(ord, name)) + sum(map(ord, subnet or '')):016x}"
    return Port(
        name=name,
        ids=(Id(IdKind.NODE_GUID, guid, "1"), Id(IdKind.PORT_GUID, guid)),
        medium=Medium.INFINIBAND,
        state=state,
        rdma_device=name.partition("/")[0],
        subnet=subnet,
    )


def node(
    name: str,
    *ports: Port,
    age: timedelta = timedelta(),
    sweeping: SweepStanding | None = ABLE,
    kind: DeviceKind = DeviceKind.HOST,
) -> NeighborReport:
    status = ReportStatus(observed_at=stamp(age), sweeping=sweeping)
    device = Device(kind, name, (Id(IdKind.HOSTNAME, name),), ports or (hca(A),))
    return build_report(device, name=name, status=status)


def swept(
    name: str, subnet: str = A, *, text: str = "x", age: timedelta = timedelta()
) -> NeighborReport:
    (part,) = split_sweep(text, node=name, subnet=subnet)
    return structs.replace(part, status=ReportStatus(observed_at=stamp(age)))
