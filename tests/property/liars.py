"""Fabrics, what their sources say, and one node whose agent says anything at all.

A liar may write any NeighborReport under its own name: ids, names and neighbors of other devices,
rails, NVLink domains, ports by the hundred, another kind of device. It may also set the
description of its own HCAs, which a sweep by an honest node shows.
"""

import json
import random  # noqa: TID251 - lies are drawn from a seed that hypothesis draws
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hypothesis import assume
from hypothesis import strategies as st

from generator.ingest.claims import build_claims
from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory, parse_nodes
from topology.model.claims import SweptClaims
from topology.model.errors import ConfigError
from topology.model.facts import (
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
    build_report,
)
from topology.sources.host.nvidia_smi import Clique, build_clique_port
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    NamePolicy,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    render_inventory,
    report_claims,
    sweep_devices,
)

MAX_FLOOD: Final = 300
NVLINK_CLUSTER: Final = "5c000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Scene:
    """A fabric, and the sources that describe it."""

    whole: DamagedFabric
    has_walks: bool
    """Whether SNMP walks describe the switches; without them only hosts do."""
    listing: str
    """What the inventory lists: `ids`, `names` or `nothing`."""

    @property
    def is_infiniband(self) -> bool:
        """Whether a sweep describes the fabric."""
        return self.whole.wiring.spec.medium is Medium.INFINIBAND

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes."""
        return sorted(host.name for host in self.whole.wiring.hosts)

    def devices(self) -> dict[str, Device]:
        """Return the true device of each report, by the report's name."""
        return {
            row.report: row.device
            for row in report_claims(self.whole)
            if self.has_walks or row.device.kind is DeviceKind.HOST
        }

    def inventory(self) -> Inventory | None:
        """Return the list of nodes."""
        if self.listing == "nothing":
            return None
        document = render_inventory(self.whole)
        if self.listing == "names":
            document = {"nodes": [{"name": row["name"]} for row in document["nodes"]]}
        return parse_nodes(json.dumps(document).encode(), source="nodes")

    def sweep(self) -> list[Device]:
        """Return the devices of the sweep of an honest node."""
        return sweep_devices(self.whole) if self.is_infiniband else []


@dataclass(slots=True)
class Witnesses:
    """Everything that all sources say; a lie changes what one node says."""

    scene: Scene
    liar: str
    reports: dict[str, NeighborReport]
    sweep: list[Device]
    lies: list[str] = field(default_factory=list)

    def inputs(self) -> Inputs:
        """Return the inputs of an observation."""
        reports = tuple(self.reports.values())
        told = build_claims(reports, frozenset(self.scene.nodes))
        swept = (SweptClaims(tuple(self.sweep)),) if self.sweep else ()
        return Inputs(
            claims=(*told.claims, *swept),
            reports=reports,
            inventory=self.scene.inventory(),
        )


def honest_witnesses(scene: Scene, liar: str, *, is_silent: bool = False) -> Witnesses:
    """Return what is true; without the liar's report and HCAs if it is silent."""
    reports = {
        name: build_report(device, name=name)
        for name, device in scene.devices().items()
        if not (is_silent and name == liar)
    }
    own = own_guids(scene, liar) if is_silent else frozenset()
    swept = [_without(device, own) for device in scene.sweep() if not own & _guids(device)]
    return Witnesses(scene, liar, reports, swept)


def own_guids(scene: Scene, node: str) -> frozenset[str]:
    """Return the GUIDs of a node's HCAs."""
    host = next(host for host in scene.whole.wiring.hosts if host.name == node)
    return frozenset(nic.guid for nic in host.nics)


def _guids(device: Device) -> set[str]:
    return {id_.value for id_ in device.ids if id_.kind is IdKind.NODE_GUID}


def _without(device: Device, guids: frozenset[str]) -> Device:
    """Return a swept switch without its cables to some HCAs."""
    ports = tuple(
        port
        for port in device.ports
        if not any(id_.value in guids for one in port.neighbors for id_ in one.device_ids)
    )
    return replace(device, ports=ports)


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Draw a fabric and its sources."""
    medium = draw(st.sampled_from((Medium.ETHERNET, Medium.INFINIBAND)))
    spec = SyntheticSpec(
        draw(st.sampled_from(FabricKind)),
        draw(st.integers(9, 40)),
        rails=draw(st.sampled_from((1, 2, 4))),
        radix=draw(st.sampled_from((8, 12, 16))),
        medium=medium,
        names=draw(st.sampled_from(NamePolicy)),
        nvlink_hosts=draw(st.sampled_from((0, 0, 2, 4))),
    )
    try:
        whole = build_undamaged(build_wiring(spec))
    except ConfigError:
        assume(condition=False)
        raise
    has_walks = medium is Medium.ETHERNET and draw(st.booleans())
    return Scene(whole, has_walks, draw(st.sampled_from(("ids", "names", "nothing"))))


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
    witnesses.reports[liar] = report
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
            author.redescribe(device) if guids & _guids(device) else device
            for device in witnesses.sweep
        ]
    return witnesses


def _with_kind(report: NeighborReport, kind: DeviceKind) -> NeighborReport:
    device = report.spec.device or ReportDevice(kind=kind, name="")
    spec = report.spec.model_copy(update={"device": device.model_copy(update={"kind": kind})})
    return report.model_copy(
        update={"spec": spec, "metadata": ReportMetadata(name=report.metadata.name)}
    )


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


def _pose_as_another(author: _Liar, device: Device) -> Device:
    """Return the facts of another device, as a replayed report has them."""
    other = author.any_device()
    if author.rng.random() < 0.5:
        return replace(device, ports=other.ports)
    return replace(other, kind=DeviceKind.HOST)


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
    _pose_as_another,
    _say_nothing,
)


def _each_port(author: _Liar, device: Device, change: Callable[[Port], Port]) -> Device:
    """Return the device with some of its ports changed."""
    share = author.rng.choice((0.3, 1.0))
    ports = (change(port) if author.rng.random() <= share else port for port in device.ports)
    return replace(device, ports=tuple(ports))
