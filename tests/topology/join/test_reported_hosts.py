"""A sweep joined with reports of hosts as columns gives the fabric of all claims one by one."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.topology.join.test_listed_sweep import BIG_FABRIC, MORE_IDS, NAMES, NODES, lists
from tests.topology.join.test_mixes import EDITS, FABRICS, RAIL, edited, others, packed, texts_of
from tests.topology.join.test_sweep_join import boxed, compare
from tests.topology.join.test_sweep_join import spoiled as spoiled_sweeps
from topology.identity.id_owners import DeferredOwners, index_id_owners
from topology.join.claim_join import join_claims
from topology.join.fabric_join import join_as_columns
from topology.model.claims import Claim, Origin, SweptClaims, strong_key
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.reports.packed_claims import PackedClaim
from topology.reports.packed_devices import pack_device
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.synthetic import FabricKind

REPORTS = [claim.device for claim in others(FABRICS[FabricKind.RAIL], ["reports"])]
IMAGE = next(one for one in REPORTS[0].ids if one.kind is IdKind.SYSTEM_IMAGE_GUID)
HEARD = Neighbor((Id(IdKind.MAC, "02:00:00:00:aa:01"),), "leaf", (), "swp1", Source.LLDP)
Edit = Callable[[Device], Device]


def same(sweep: SweptClaims, beside: Sequence[Claim]) -> Fabric | None:
    """Return the fabric as columns, after comparing it with the general way."""
    fast = join_as_columns([*beside, sweep])
    assert join_as_columns([sweep, *reversed(beside)]) == fast
    if fast is not None:
        joined = join_claims([*beside, sweep], previous_owners={})
        general = joined.fabric
        assert fast == general
        compare(columns_of(fast), columns_of(general))
        assert np.asarray(columns_of(fast).has_shared_image).tolist() == boxed(general)
        keys = {key for device in general.devices for one in device.ids if (key := strong_key(one))}
        owners, expected = DeferredOwners(fast), index_id_owners(general, joined.ids)
        assert {key: owners.get(key) for key in keys} == {key: expected.get(key) for key in keys}
    return fast


def reported(devices: Sequence[Device], *, are_packed: bool = True) -> list[Claim]:
    """Return the claims of reports; packed ones are read by the shapes of their ports."""
    found: list[Claim] = []
    for device in devices:
        nodes = [one.value for one in device.ids if one.kind is IdKind.NODE_NAME]
        claim = PackedClaim(pack_device(device), device.name, node=nodes[0] if nodes else None)
        found.append(claim if are_packed else Claim(claim.device, claim.origin))
    return found


@pytest.mark.parametrize("are_packed", [False, True])
@pytest.mark.parametrize("parts", [(), ("names",), ("nodes",)])
@pytest.mark.parametrize("kind", FabricKind)
def test_reports_that_agree_keep_the_fast_way(
    kind: FabricKind, parts: Sequence[str], *, are_packed: bool
) -> None:
    devices = [claim.device for claim in others(FABRICS[kind], ["reports"])]
    claims = [*others(FABRICS[kind], parts), *reported(devices, are_packed=are_packed)]
    for text in texts_of(FABRICS[kind]):
        fabric = same(packed(text), claims)
        assert fabric is not None
        assert {device.node for device in fabric.devices if device.has_report} == {
            device.name for device in devices
        }


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


BIG_REPORTS = [claim.device for claim in others(BIG_FABRIC, ["reports"])]


@limits(max_examples=examples(80))
@given(spoiled_sweeps(), st.sampled_from([(), ("names",), ("nodes",)]), reports(BIG_REPORTS))
def test_it_gives_the_same_fabric_for_sweeps_with_lost_and_wrong_lines(
    text: str, parts: Sequence[str], claims: list[Claim]
) -> None:
    same(packed(text), [*others(BIG_FABRIC, parts), *claims])


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(add_port(MORE_PORTS[4]), id="a neighbor"),
        pytest.param(add_ids(*REPORTS[1].ids), id="ids of another node"),
        pytest.param(add_ids(MORE_IDS[6]), id="the GUID of a switch"),
        pytest.param(drop_ids(IdKind.NODE_GUID, IdKind.PORT_GUID), id="no GUID"),
        pytest.param(drop_ids(IdKind.NODE_NAME), id="no node"),
        pytest.param(rename("node-0002"), id="the name of another node"),
        pytest.param(change_port(0, lambda port: port._replace(name="mlx5_1/1")), id="two names"),
        pytest.param(change_port(0, ids_of(OTHER_PORTS[1])), id="GUIDs of another port"),
        pytest.param(lambda device: replace(device, kind=DeviceKind.SWITCH), id="a switch"),
    ],
)
def test_it_leaves_contradictions_to_the_general_way(edit: Edit) -> None:
    first, *rest = REPORTS
    assert same(packed(RAIL.decode()), reported([edit(first), *rest])) is None


def test_it_leaves_hosts_outside_the_list_to_the_general_way() -> None:
    assert same(packed(RAIL.decode()), [*NODES[1:], *reported(REPORTS)]) is None


def test_it_leaves_a_guid_that_the_list_gives_to_another_node_to_the_general_way() -> None:
    guid = Id(IdKind.NODE_GUID, "0011223344556677")
    first, second, *rest = NODES
    listed = Claim(add_ids(guid)(second.device), Origin.INVENTORY)
    claims = reported([add_ids(guid)(REPORTS[0]), *REPORTS[1:]])
    assert same(packed(RAIL.decode()), [first, listed, *rest, *claims]) is None


@pytest.mark.parametrize(
    "edit",
    [
        pytest.param(add_port(MORE_PORTS[1]), id="an Ethernet port"),
        pytest.param(add_port(MORE_PORTS[3]), id="a port without a cable"),
        pytest.param(drop_port(0), id="a port less"),
        pytest.param(lambda device: replace(device, ports=()), id="no ports"),
        pytest.param(change_port(1, lambda port: port._replace(name="ib1")), id="another name"),
        pytest.param(change_port(1, lambda port: port._replace(ids=())), id="a name alone"),
        pytest.param(
            change_port(0, lambda port: port._replace(rate_bps=None, state=PortState.UNKNOWN)),
            id="neither rate nor state",
        ),
        pytest.param(add_ids(IMAGE), id="the system image of another"),
        pytest.param(rename("node-0002.example"), id="a name with a domain"),
    ],
)
def test_what_contradicts_nothing_keeps_the_fast_way(edit: Edit) -> None:
    first, second, *rest = REPORTS
    for beside in ([], NODES, NAMES):
        claims = [*beside, *reported([first, edit(second), *rest])]
        assert same(packed(RAIL.decode()), claims) is not None
