"""Any node list and any reports beside any sweep give one fabric, in any order and form."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.join.test_mixes import EDITS, FABRICS, edited, expanded, others, packed
from tests.topology.join.test_swept_nodes import boxed, compare
from tests.topology.join.test_swept_nodes import spoiled as spoiled_sweeps
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.fabric import columns_of
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.reports.packed_reports import PackedClaim, pack_device
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)

REPORTS = [claim.device for claim in others(FABRICS[FabricKind.RAIL], ["reports"])]
IMAGE = next(one for one in REPORTS[0].ids if one.kind is IdKind.SYSTEM_IMAGE_GUID)
HEARD = Neighbor((Id(IdKind.MAC, "02:00:00:00:aa:01"),), "leaf", (), "swp1", Source.LLDP)
Edit = Callable[[Device], Device]


NODES = others(FABRICS[FabricKind.RAIL], ["nodes"])
NAMES = others(FABRICS[FabricKind.RAIL], ["names"])
SWITCH = next(
    device for device in sweep_devices(FABRICS[FabricKind.RAIL]) if device.kind is DeviceKind.SWITCH
)


def same(sweep: SweptClaims, beside: Sequence[Claim]) -> None:
    fabric = build_fabric([*beside, sweep])
    expected = build_fabric([*expanded(sweep), *reversed(beside)])
    assert fabric == expected
    compare(columns_of(fabric), columns_of(expected))
    assert np.asarray(columns_of(fabric).has_shared_image).tolist() == boxed(expected)


def renamed(claim: Claim, name: str) -> Claim:
    ids = [one for one in claim.ids if one.kind is not IdKind.NODE_NAME]
    return listed_as(replace(claim.device, name=name), [*ids, Id(IdKind.NODE_NAME, name)])


def listed_as(device: Device, ids: Sequence[Id]) -> Claim:
    return Claim(replace(device, ids=tuple(sorted(set(ids)))), Origin.INVENTORY)


def without(claim: Claim, *kinds: IdKind) -> Claim:
    return listed_as(claim.device, [one for one in claim.ids if one.kind not in kinds])


GUIDS = (IdKind.NODE_GUID, IdKind.PORT_GUID)
MORE_IDS = (
    Id(IdKind.HOSTNAME, "node-0001"),
    Id(IdKind.IP, "10.0.0.1"),
    Id(IdKind.MAC, "02:00:00:00:00:01"),
    Id(IdKind.NODE_GUID, "0011223344556677"),
    Id(IdKind.SYSTEM_IMAGE_GUID, "02004c0000000000"),
    Id(IdKind.CHASSIS_ID, "02:00:00:00:00:01", "mac"),
    *(one for one in SWITCH.ids if one.kind is IdKind.NODE_GUID),
    *(one for claim in NODES[:2] for one in claim.ids),
)
ROW_EDITS = st.one_of(
    st.just(lambda _claim: None),
    st.sampled_from(MORE_IDS).map(
        lambda more: lambda claim: listed_as(claim.device, [*claim.ids, more])
    ),
    st.sampled_from([GUIDS, GUIDS[:1], GUIDS[1:], (IdKind.MAC,), (IdKind.NODE_NAME,)]).map(
        lambda kinds: lambda claim: without(claim, *kinds)
    ),
    st.sampled_from(["node-0002", "node-7", "node-0003.example", "other", "Bad name"]).map(
        lambda name: lambda claim: renamed(claim, name)
    ),
)


@st.composite
def lists(draw: st.DrawFn) -> list[Claim]:
    """Draw a list of nodes with lost rows, other names, and lost, further and exchanged ids."""
    rows: list[Claim | None] = list(draw(st.sampled_from([NODES, NAMES])))
    for at, edit in draw(st.lists(st.tuples(st.integers(0, len(rows) - 1), ROW_EDITS), max_size=4)):
        row = rows[at]
        rows[at] = edit(row) if row is not None else None
    kept = [row for row in rows if row is not None]
    if len(kept) > 1 and draw(st.booleans()):
        kept[0], kept[1] = (
            renamed(kept[0], kept[1].name),
            renamed(kept[1], kept[0].name),
        )
    return kept


def reported(devices: Sequence[Device], *, are_packed: bool = True) -> list[Claim]:
    """Return the claims of reports; packed ones are read by the shapes of their ports."""
    found: list[Claim] = []
    for device in devices:
        nodes = [one.value for one in device.ids if one.kind is IdKind.NODE_NAME]
        claim = PackedClaim(pack_device(device), device.name, node=nodes[0] if nodes else None)
        found.append(claim if are_packed else Claim(claim.device, claim.origin))
    return found


def add_ids(*more: Id) -> Edit:
    return lambda device: replace(device, ids=tuple(sorted({*device.ids, *more})))


def drop_ids(*kinds: IdKind) -> Edit:
    def drop(device: Device) -> Device:
        return replace(device, ids=tuple(one for one in device.ids if one.kind not in kinds))

    return drop


def rename(name: str) -> Edit:
    return lambda device: replace(device, name=name)


def call_node(name: str) -> Edit:
    def call(device: Device) -> Device:
        return add_ids(Id(IdKind.NODE_NAME, name))(drop_ids(IdKind.NODE_NAME)(device))

    return call


def add_port(port: Port) -> Edit:
    return lambda device: replace(device, ports=(*device.ports, port))


def drop_port(at: int) -> Edit:
    def drop(device: Device) -> Device:
        keep = at % (len(device.ports) or 1)
        return replace(device, ports=(*device.ports[:keep], *device.ports[keep + 1 :]))

    return drop


def change_port(at: int, change: Callable[[Port], Port]) -> Edit:
    def edit(device: Device) -> Device:
        if not device.ports:
            return device
        ports = list(device.ports)
        ports[at % len(ports)] = change(ports[at % len(ports)])
        return replace(device, ports=tuple(ports))

    return edit


def ids_of(other: Port) -> Callable[[Port], Port]:
    return lambda port: port._replace(ids=other.ids)


OTHER_PORTS = [port for device in REPORTS[:2] for port in device.ports]
MORE_PORTS = (
    Port("eth0", (Id(IdKind.MAC, "02:00:00:00:00:01"),)),
    Port("eth1", (Id(IdKind.MAC, "02:00:00:00:00:01"),), Medium.ETHERNET, PortState.UP),
    Port("mlx5_0/1", (), Medium.INFINIBAND, PortState.DOWN, None, None, "mlx5_0"),
    Port("ib9", (Id(IdKind.PORT_GUID, "0011223344556677"),), Medium.INFINIBAND),
    Port("swp1", (), neighbors=(HEARD,)),
    Port("", ()),
)
PORT_CHANGES = (
    lambda port: port._replace(name="ib0"),
    lambda port: port._replace(name=""),
    lambda port: port._replace(name="mlx5_1/1"),
    lambda port: port._replace(name="1"),
    lambda port: port._replace(ids=()),
    lambda port: port._replace(ids=port.ids[:1]),
    lambda port: port._replace(ids=port.ids[1:]),
    lambda port: port._replace(ids=(*port.ids, Id(IdKind.IFNAME, "ib0"))),
    lambda port: port._replace(rate_bps=None, state=PortState.UNKNOWN),
    lambda port: port._replace(rate_bps=1, state=PortState.DOWN, subnet="other"),
    lambda port: port._replace(neighbors=(HEARD,)),
    *map(ids_of, OTHER_PORTS),
)
REPORT_EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.sampled_from((*MORE_IDS, IMAGE, Id(IdKind.NODE_NAME, "node-0002"))).map(add_ids),
    st.sampled_from(
        [
            (IdKind.NODE_GUID,),
            (IdKind.PORT_GUID,),
            (IdKind.NODE_GUID, IdKind.PORT_GUID),
            (IdKind.NODE_NAME,),
            (IdKind.SYSTEM_IMAGE_GUID, IdKind.HOSTNAME),
        ]
    ).map(lambda kinds: drop_ids(*kinds)),
    st.sampled_from(["node-0002", "node-0001.example", "localhost", "leaf-1", ""]).map(rename),
    st.sampled_from(["node-0002", "node-7", "node-0003.example", "Bad name"]).map(call_node),
    st.sampled_from(MORE_PORTS).map(add_port),
    st.integers(0, 3).map(drop_port),
    st.tuples(st.integers(0, 3), st.sampled_from(PORT_CHANGES)).map(
        lambda row: change_port(row[0], row[1])
    ),
    st.just(lambda device: replace(device, ports=device.ports[::-1])),
    st.just(lambda device: replace(device, ports=())),
    st.just(lambda device: replace(device, kind=DeviceKind.SWITCH)),
)


@st.composite
def reports(draw: st.DrawFn, devices: Sequence[Device] = REPORTS) -> list[Claim]:
    """Draw the reports of most hosts, some of them wrong."""
    lost = draw(st.sets(st.integers(0, len(devices) - 1), max_size=3))
    kept = [device for at, device in enumerate(devices) if at not in lost]
    for at, edit in draw(
        st.lists(st.tuples(st.integers(0, len(kept) - 1), REPORT_EDITS), max_size=3)
    ):
        kept[at] = edit(kept[at])
    return reported(kept, are_packed=draw(st.booleans()))


SOME_LIST: st.SearchStrategy[list[Claim]] = st.one_of(
    st.just([]), st.sampled_from([NODES, NAMES]), lists()
)


@limits(max_examples=examples(150))
@given(SOME_LIST, reports(), st.lists(EDITS, max_size=2).map(edited))
def test_any_reports_beside_any_sweep_give_the_fabric_of_all_claims(
    listed: list[Claim], claims: list[Claim], raw: bytes
) -> None:
    sweep = SweptClaims(parse_ibnetdiscover(raw, fast=NumpyReader()).devices)
    same(sweep, [*listed, *claims])


BIG_FABRIC = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 24, rails=4, radix=8)))
"""The fabric of `spoiled_sweeps`."""
BIG_REPORTS = [claim.device for claim in others(BIG_FABRIC, ["reports"])]


@limits(max_examples=examples(80))
@given(spoiled_sweeps(), st.sampled_from([(), ("names",), ("nodes",)]), reports(BIG_REPORTS))
def test_it_gives_the_same_fabric_for_sweeps_with_lost_and_wrong_lines(
    text: str, parts: Sequence[str], claims: list[Claim]
) -> None:
    same(packed(text), [*others(BIG_FABRIC, parts), *claims])
