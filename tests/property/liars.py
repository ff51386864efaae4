"""One node whose agent says anything at all.

A liar may write any NeighborReport under its own name: ids, names and neighbors of other devices,
rails, NVLink domains, ports by the hundred, another kind of device. It may also set the
description of its own HCAs, which a sweep by an honest node shows.

Two other lies are not told by an agent: a host sends frames in another's name, and a switch says
anything in its walk.
"""

import random  # noqa: TID251 - lies are drawn from a seed that hypothesis draws
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from msgspec import structs

from tests.property.witnesses import Scene, Witnesses, honest_witnesses, node_guids, own_guids
from topology.model.facts import (
    Capability,
    Device,
    DeviceKind,
    GpuDistance,
    Medium,
    Neighbor,
    Port,
    PortState,
    Source,
)
from topology.model.ids import Id, IdKind
from topology.reports.neighbor_report import (
    NeighborReport,
    ReportDevice,
    ReportMetadata,
    ReportStatus,
    build_report,
)
from topology.sources.host.nvidia_smi import Clique, build_clique_port
from topology.synthetic import report_claims

MAX_FLOOD: Final = 300
NVLINK_CLUSTER: Final = "5c000000-0000-4000-8000-000000000000"


def tell_lies(scene: Scene, liar: str, rng: random.Random) -> Witnesses:
    """Return the witnesses of all sources, of which one node lies."""
    witnesses = honest_witnesses(scene, liar)
    author = _Liar(scene, liar, rng)
    device = scene.devices()[liar]
    for lie in rng.sample(_LIES, rng.randint(1, 3)):
        device = lie(author, device)
        witnesses.lies.append(lie.__name__)
    report = build_report(device, name=liar)
    if rng.random() < 0.15:
        witnesses.lies.append("kind: switch")
        report = _with_kind(report, DeviceKind.SWITCH)
    witnesses.reports[liar] = structs.replace(report, status=author.any_status())
    if rng.random() < 0.15:
        witnesses.lies.append("device under the name of a sweep part")
        for number in range(rng.randint(1, 30)):
            name = f"{liar}.sweep.{number}"
            more = build_report(author.any_device(), name=name)
            kind = rng.choice((DeviceKind.SWITCH, DeviceKind.HOST))
            witnesses.reports[name] = _with_kind(more, kind)
    if scene.is_infiniband and rng.random() < 0.4:
        witnesses.lies.append("description of its HCAs")
        guids = own_guids(scene, liar)
        witnesses.sweep = [
            author.redescribe(device) if guids & node_guids(device) else device
            for device in witnesses.sweep
        ]
    return witnesses


def send_frames(scene: Scene, sender: str, rng: random.Random) -> Witnesses | None:
    """Return the witnesses of all sources, all of them honest, if a host sends forged frames.

    The switches hear another node or a switch at one or all ports of the host. None if no switch
    that reports hears the host, or none hears the victim.
    """
    witnesses, devices = honest_witnesses(scene, sender), scene.devices()
    own_ids = {*devices[sender].ids, *(id_ for port in devices[sender].ports for id_ in port.ids)}
    victim = rng.choice([device for name, device in devices.items() if name != sender])
    heard = [
        neighbor
        for device in devices.values()
        for port in device.ports
        for neighbor in port.neighbors
        if not {*victim.ids}.isdisjoint(neighbor.device_ids)
    ]
    if not heard:
        return None
    model = rng.choice(heard)
    forged: dict[str, object] = {"device_ids": model.device_ids}
    if rng.random() < 0.7:
        forged |= {"device_name": model.device_name, "kind": model.kind}
        forged |= {"capabilities": model.capabilities}
    if rng.random() < 0.5:
        forged |= {"port_ids": model.port_ids, "port_name": model.port_name}
    num_left = rng.choice((1, len(own_ids)))
    for name, device in devices.items():
        ports = list(device.ports)
        for at, port in enumerate(ports) if device.kind is DeviceKind.SWITCH else ():
            is_sender = any(own_ids.intersection(one.device_ids) for one in port.neighbors)
            if is_sender and num_left:
                num_left -= 1
                frames = tuple(one._replace(**forged) for one in port.neighbors)  # type: ignore[arg-type]
                ports[at] = port._replace(neighbors=frames)
        if ports != list(device.ports):
            witnesses.reports[name] = build_report(replace(device, ports=tuple(ports)), name=name)
            witnesses.lies.append(f"frames of {victim.name} at {device.name}: {sorted(forged)}")
    return witnesses if witnesses.lies else None


def lie_in_a_walk(scene: Scene, switch: str, rng: random.Random) -> Witnesses:
    """Return the witnesses of all sources, of which the walk of one switch says anything."""
    witnesses, device = honest_witnesses(scene, switch), scene.devices()[switch]
    author = _Liar(scene, switch, rng)
    how, share = rng.choice(("shuffle", "replace", "add")), rng.choice((0.2, 0.6, 1.0))
    heard = [port.neighbors for port in device.ports]
    if how == "shuffle":
        rng.shuffle(heard)
    ports = []
    for port, entries in zip(device.ports, heard, strict=True):
        neighbors = entries
        if how != "shuffle" and rng.random() < share:
            one = author.any_neighbor() if rng.random() < 0.7 else author.twisted_neighbor()
            neighbors = (one,) if how == "replace" else (*entries, one)
        state = PortState.UP if neighbors else port.state
        ports.append(port._replace(neighbors=neighbors, state=state))
    witnesses.reports[switch] = build_report(replace(device, ports=tuple(ports)), name=switch)
    witnesses.lies.append(f"walk of {device.name}: {how} {share}")
    return witnesses


def _with_kind(report: NeighborReport, kind: DeviceKind) -> NeighborReport:
    device = report.spec.device or ReportDevice(kind=kind, name="")
    spec = structs.replace(report.spec, device=structs.replace(device, kind=kind))
    return structs.replace(report, spec=spec, metadata=ReportMetadata(name=report.metadata.name))


class _Liar:
    """Draws lies of one node."""

    def __init__(self, scene: Scene, name: str, rng: random.Random) -> None:
        self.scene, self.name, self.rng = scene, name, rng
        self.true = {row.report: row.device for row in report_claims(scene.whole)}
        self.swept = scene.sweep()
        self.others = [
            device for device in (*self.true.values(), *self.swept) if device.name != name
        ]
        self.heard = [
            neighbor
            for device in self.others
            for port in device.ports
            for neighbor in port.neighbors
        ] or [self.invent()]

    def invent(self) -> Neighbor:
        number = self.rng.randrange(1 << 16)
        mac = f"02:00:00:00:{number >> 8:02x}:{number & 255:02x}"
        return Neighbor(
            (Id(IdKind.CHASSIS_ID, mac, "mac"),),
            f"x{number}",
            (Id(IdKind.PORT_ID, "swp1", "ifname"),),
            "swp1",
            Source.LLDP,
        )

    def any_device(self) -> Device:
        return self.rng.choice(self.others)

    def any_name(self) -> str:
        name = self.rng.choice(
            (self.any_device().name, self.any_neighbor().device_name, "oob-storage-mgmt", "nvlink")
        )
        return self.rng.choice((name, name.upper(), f"{name}.evil.example", f" {name}", name))

    def any_status(self) -> ReportStatus:
        """Return the status of a report of any age: replayed, dated ahead, or without a time."""
        times = (None, "2001-01-01T00:00:00Z", "2026-07-01T12:00:00Z", "2099-01-01T00:00:00Z", "x")
        return ReportStatus(observed_at=self.rng.choice(times))

    def any_ids(self, most: int = 6) -> tuple[Id, ...]:
        device = self.any_device()
        ids = [*device.ids, *(id_ for port in device.ports for id_ in port.ids)]
        ids += self.any_neighbor().device_ids
        return tuple(self.rng.sample(ids, min(len(ids), self.rng.randint(1, most))))

    def any_neighbor(self) -> Neighbor:
        return self.rng.choice(self.heard)

    def twisted_neighbor(self) -> Neighbor:
        """Return a neighbor entry with some of its fields wrong."""
        rng, entry = self.rng, self.any_neighbor() if self.rng.random() < 0.8 else self.invent()
        changes: list[Callable[[Neighbor], Neighbor]] = [
            lambda one: one._replace(device_name=self.any_name()),
            lambda one: one._replace(device_name=""),
            lambda one: one._replace(kind=rng.choice(list(DeviceKind))),
            lambda one: one._replace(
                device_ids=tuple(sorted({*one.device_ids, *self.any_neighbor().device_ids}))
            ),
            lambda one: one._replace(
                device_ids=tuple(sorted({*one.device_ids, *self.invent().device_ids}))
            ),
            lambda one: one._replace(device_ids=tuple(sorted({*one.device_ids, *self.any_ids()}))),
            lambda one: one._replace(device_ids=self.any_ids()),
            lambda one: one._replace(device_ids=()),
            lambda one: one._replace(port_ids=tuple(sorted({*one.port_ids, *self.any_ids(2)}))),
            lambda one: one._replace(port_ids=(), port_name=""),
            lambda one: one._replace(source=rng.choice(list(Source))),
            lambda one: one._replace(ttl_s=rng.choice((0, 1, 65535))),
            lambda one: one._replace(
                capabilities=rng.choice(((), (Capability.BRIDGE,), (Capability.STATION,)))
            ),
        ]
        for change in rng.sample(changes, rng.randint(0, 3)):
            entry = change(entry)
        return entry

    def redescribe(self, device: Device) -> Device:
        name = self.any_name()
        label = self.rng.choice(("mlx5_0", "mlx5_9"))
        ports = tuple(port._replace(rdma_device=label) for port in device.ports)
        return replace(device, name=name.strip(), ports=ports, model=f"{name} {label}")

    def medium(self) -> Medium:
        return self.rng.choice(list(Medium))


def _claim_ids(author: _Liar, device: Device) -> Device:
    ids = {*device.ids, *(id_ for _ in range(author.rng.randint(1, 8)) for id_ in author.any_ids())}
    return replace(device, ids=tuple(sorted(ids)))


def _claim_port_ids(author: _Liar, device: Device) -> Device:
    return _each_port(
        author,
        device,
        lambda port: port._replace(ids=tuple(sorted({*port.ids, *author.any_ids()}))),
    )


def _take_a_name(author: _Liar, device: Device) -> Device:
    return replace(device, name=author.any_name())


def _hear_others(author: _Liar, device: Device) -> Device:
    return _each_port(
        author,
        device,
        lambda port: port._replace(
            state=PortState.UP,
            neighbors=(
                *(port.neighbors if author.rng.random() < 0.5 else ()),
                *(author.twisted_neighbor() for _ in range(author.rng.randint(1, 6))),
            ),
        ),
    )


def _twist_own_entries(author: _Liar, device: Device) -> Device:
    def twist(port: Port) -> Port:
        extra = author.twisted_neighbor()
        return port._replace(
            neighbors=tuple(
                one._replace(
                    device_ids=tuple(sorted({*one.device_ids, *extra.device_ids})),
                    device_name=author.rng.choice((one.device_name, extra.device_name)),
                    kind=author.rng.choice((one.kind, extra.kind)),
                )
                for one in port.neighbors
            )
        )

    return _each_port(author, device, twist)


def _flood_ports(author: _Liar, device: Device) -> Device:
    """Add many ports, each with a cable to one of a few devices."""
    few = [author.twisted_neighbor() for _ in range(author.rng.choice((1, 2, 5, 40)))]
    pattern = device.ports[0] if device.ports else Port("x")
    more = tuple(
        pattern._replace(
            name=f"flood{number}",
            ids=(),
            state=PortState.UP,
            neighbors=(
                (one := author.rng.choice(few))._replace(
                    port_name=f"{one.port_name}-{number}" if author.rng.random() < 0.7 else "",
                    port_ids=(),
                ),
            ),
        )
        for number in range(author.rng.choice((4, 40, MAX_FLOOD)))
    )
    return replace(device, ports=(*device.ports, *more))


def _exchange_rails(author: _Liar, device: Device) -> Device:
    heard = [port.neighbors for port in device.ports]
    author.rng.shuffle(heard)
    ports = zip(device.ports, heard, strict=True)
    return replace(device, ports=tuple(port._replace(neighbors=row) for port, row in ports))


def _join_cliques(author: _Liar, device: Device) -> Device:
    ports = [port for port in device.ports if port.medium is not Medium.NVLINK]
    for number in range(author.rng.randint(0, 3)):
        clique = Clique(author.rng.choice((NVLINK_CLUSTER, "f" * 8 + NVLINK_CLUSTER[8:])), number)
        port = build_clique_port(clique)._replace(name=f"nvlink{number or ''}")
        if author.rng.random() < 0.5:
            port = port._replace(neighbors=(author.twisted_neighbor(),))
        ports.append(port)
    return replace(device, ports=tuple(ports))


def _change_facts(author: _Liar, device: Device) -> Device:
    rng = author.rng

    def change(port: Port) -> Port:
        facts: dict[str, object] = {
            "medium": author.medium(),
            "state": rng.choice(list(PortState)),
            "rate_bps": rng.choice((None, 0, 1, 10**9, 10**15)),
            "bond_master": rng.choice((None, "bond0")),
            "rdma_device": rng.choice((None, "mlx5_0", "x")),
            "pci_address": rng.choice((None, "0000:00:00.0")),
            "gpu_distance": rng.choice((None, *GpuDistance)),
            "numa_node": rng.choice((None, 0, 65535)),
            "firmware_lldp": rng.choice((None, True, False)),
            "subnet": rng.choice((None, "fe80000000000000", "fe80000000000001")),
            "name": rng.choice((port.name, "eth0", "mlx5_0/1", "mgmt0", "x")),
        }
        chosen = rng.sample(sorted(facts), rng.randint(1, 4))
        return port._replace(**{name: facts[name] for name in chosen})  # type: ignore[arg-type]

    return _each_port(author, device, change)


def _add_better_ports(author: _Liar, device: Device) -> Device:
    """Return the device with ports that would be the compute network of its machine type."""
    rng = author.rng
    port = Port(
        "fast",
        medium=rng.choice((Medium.ETHERNET, Medium.INFINIBAND)),
        state=rng.choice(list(PortState)),
        rate_bps=rng.choice((None, 10**13)),
        rdma_device=rng.choice((None, "mlx5_9")),
        gpu_distance=rng.choice((None, *GpuDistance)),
        neighbors=rng.choice(((), (author.invent(),))),
    )
    more = (port._replace(name=f"fast{number}") for number in range(rng.randint(1, 9)))
    return replace(device, ports=(*device.ports, *more))


def _pose_as_another(author: _Liar, device: Device) -> Device:
    """Return the facts of another device, as a replayed report has them."""
    other = author.any_device()
    if author.rng.random() < 0.5:
        return replace(device, ports=other.ports)
    return replace(other, kind=DeviceKind.HOST)


def _replay_an_older_report(author: _Liar, device: Device) -> Device:
    """Return a report of an earlier time, the own one or another's: its cables were exchanged."""
    hosts = [other for other in author.others if other.kind is DeviceKind.HOST] or [device]
    teller = author.rng.choice((device, author.rng.choice(hosts)))
    partner = author.rng.choice(hosts)
    heard = [port.neighbors for port in partner.ports]
    ports = tuple(
        port._replace(neighbors=heard[at] if at < len(heard) else ())
        for at, port in enumerate(teller.ports)
    )
    return replace(teller, kind=DeviceKind.HOST, ports=ports)


def _say_nothing(author: _Liar, device: Device) -> Device:
    return replace(device, ports=device.ports[: author.rng.randint(0, 1)])


_LIES: Final[Sequence[Callable[[_Liar, Device], Device]]] = (
    _claim_ids,
    _claim_port_ids,
    _take_a_name,
    _hear_others,
    _twist_own_entries,
    _flood_ports,
    _exchange_rails,
    _join_cliques,
    _change_facts,
    _add_better_ports,
    _pose_as_another,
    _replay_an_older_report,
    _say_nothing,
)


def _each_port(author: _Liar, device: Device, change: Callable[[Port], Port]) -> Device:
    """Return the device with some of its ports changed."""
    share = author.rng.choice((0.3, 1.0))
    ports = (change(port) if author.rng.random() <= share else port for port in device.ports)
    return replace(device, ports=tuple(ports))
