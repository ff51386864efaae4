"""A small cluster with three networks, described port by port."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.topology.cables import heard_from, report
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim
from topology.model.fabric import Fabric
from topology.model.facts import GpuDistance, Medium, Port, PortState
from topology.planes.plane_split import PlaneSplit, split_planes
from topology.planes.policy import PlanePolicy

GBIT = 10**9


def linked(name: str, to: str, rate: int | None = 400, **facts: object) -> Port:
    """Return a host's port with a cable to a separate port of a switch."""
    defaults = {
        "rate_bps": None if rate is None else rate * GBIT,
        "state": PortState.UP,
        "neighbors": (heard_from(to, f"to-{name}"),),
    }
    return Port(name, **{**defaults, **facts})  # type: ignore[arg-type]  # any facts of a port


def dark(name: str, **facts: object) -> Port:
    return Port(name, **{"state": PortState.DOWN, **facts})  # type: ignore[arg-type]


def rdma(port: Port) -> Port:
    return port._replace(rdma_device=f"mlx5_{port.name}")


def near(port: Port, distance: GpuDistance = GpuDistance.SWITCH) -> Port:
    return port._replace(gpu_distance=distance)


def infiniband(port: Port, subnet: str | None = None) -> Port:
    return port._replace(medium=Medium.INFINIBAND, subnet=subnet)


def with_ports(device: str, ports: Iterable[Port]) -> Claim:
    """Return the report of a device; several hosts may name the same port of a switch."""
    claim = report(device, {})
    own = claim.device
    distinct = tuple(
        port._replace(
            neighbors=tuple(
                heard_from(one.device_name, f"{one.port_name}-of-{device}")
                for one in port.neighbors
            )
        )
        for port in ports
    )
    return Claim(type(own)(own.kind, own.name, own.ids, distinct), claim.origin)


def fabric_of(devices: Mapping[str, Iterable[Port]]) -> Fabric:
    return build_fabric(with_ports(device, ports) for device, ports in devices.items())


def split_of(
    devices: Mapping[str, Iterable[Port]], policies: tuple[PlanePolicy, ...] = ()
) -> PlaneSplit:
    return split_planes(fabric_of(devices), policies)


def planes_of_ports(split: PlaneSplit, device: str) -> dict[str, str]:
    """Return the plane of each port of a device that is in any plane."""
    return {
        name.port: port_plane.plane
        for port, port_plane in split.port_planes.items()
        if (name := split.fabric.port_name(port)).device == device
    }


def switches_of(split: PlaneSplit, plane: str) -> list[str]:
    return [split.fabric.devices[number].name for number in split.plane(plane).switches]
