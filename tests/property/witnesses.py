"""Random fabrics, and what their sources say about them: agents, walks, a sweep, an inventory."""

import json
from dataclasses import dataclass, field, replace

from hypothesis import assume
from hypothesis import strategies as st

from generator.ingest.claims import build_claims
from generator.ingest.inputs import Inputs
from generator.objects.inventory import Inventory, parse_nodes
from tests.packed_reports import packed
from topology.model.claims import SweptClaims
from topology.model.errors import ConfigError
from topology.model.facts import Device, DeviceKind, Medium
from topology.model.ids import IdKind
from topology.reports.neighbor_report import NeighborReport, build_report
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


@dataclass(frozen=True, slots=True)
class Scene:
    """A fabric, and the sources that describe it."""

    whole: DamagedFabric
    has_walks: bool
    """Whether there are SNMP walks of the switches. Without walks, only hosts describe switches."""
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
        told = build_claims(packed(reports), frozenset(self.scene.nodes))
        swept = (SweptClaims(tuple(self.sweep)),) if self.sweep else ()
        return Inputs(
            claims=(*told.claims, *swept),
            reports=packed(reports),
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
    swept = [_without(device, own) for device in scene.sweep() if not own & node_guids(device)]
    return Witnesses(scene, liar, reports, swept)


def own_guids(scene: Scene, node: str) -> frozenset[str]:
    """Return the GUIDs of a node's HCAs."""
    host = next(host for host in scene.whole.wiring.hosts if host.name == node)
    return frozenset(nic.guid for nic in host.nics)


def node_guids(device: Device) -> set[str]:
    """Return the node GUIDs of a swept device."""
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
