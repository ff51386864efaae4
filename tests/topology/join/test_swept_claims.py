"""Any sweep beside any list of nodes and any reports gives the fabric of its claims.

A sweep is given packed, and expanded to plain claims with devices; both must give one fabric. The
sources beside it are the node list (none, names only, or names and ids) and the hosts' reports, in
any order and form.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from tests.effort import examples
from tests.shared_samples import SAMPLES, needs_samples
from tests.topology.sources.damage import damaged
from tests.topology.sources.ibnetdiscover.parsed_dump import parse_ibnetdiscover
from tests.topology.sources.plain import case_id, cases
from tests.topology.verdicts import collect_claims
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin, SweptClaims
from topology.model.fabric import KINDS, MEDIA, STATES, Fabric, FabricColumns, rate_or_none
from topology.model.facts import Device, DeviceKind, Medium, Neighbor, Port, PortState, Source
from topology.model.ids import Id, IdKind
from topology.model.lazy_rows import LazyRows
from topology.reports.packed_reports import PackedClaim, pack_device
from topology.sources.ibnetdiscover import devices
from topology.synthetic import (
    DamagedFabric,
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SPEC = SyntheticSpec(FabricKind.RAIL, 24, rails=4, radix=8)
SWEEP = render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(SPEC))))
MIXES = {
    "sweep": (),
    "sweep, names of nodes": ("names",),
    "sweep, node list": ("nodes",),
    "sweep, reports": ("reports",),
    "all": ("nodes", "reports"),
}


def build(kind: FabricKind) -> DamagedFabric:
    rails = 1 if kind in (FabricKind.FAT_TREE, FabricKind.DRAGONFLY_PLUS) else 2
    return build_undamaged(build_wiring(SyntheticSpec(kind, 12, rails=rails, radix=8)))


FABRICS = {kind: build(kind) for kind in FabricKind}


def texts_of(fabric: DamagedFabric) -> list[str]:
    return [
        render_ibnetdiscover(sweep_devices(fabric, plane))
        for plane in range(fabric.wiring.spec.num_planes)
    ]


def expanded(sweep: SweptClaims) -> list[Claim]:
    return [Claim(device, Origin.SWEEP) for device in sweep.devices]


def others(fabric: DamagedFabric, parts: Sequence[str]) -> list[Claim]:
    found = []
    for claim in collect_claims(fabric):
        if claim.origin is Origin.INVENTORY and "nodes" in parts:
            found.append(claim)
        elif claim.origin is Origin.INVENTORY and "names" in parts:
            name = claim.device.name
            ids = (Id(IdKind.NODE_NAME, name),)
            found.append(Claim(Device(DeviceKind.HOST, name, ids), Origin.INVENTORY))
        elif claim.origin is Origin.REPORT and "reports" in parts:
            found.append(PackedClaim(pack_device(claim.device), claim.name, node=claim.name))
    return found


def swept(raw: bytes) -> SweptClaims:
    return SweptClaims(parse_ibnetdiscover(raw).devices)


def same(sweeps: Sequence[SweptClaims], beside: Sequence[Claim] = ()) -> None:
    """Compare the fabric of sweeps and other claims with the one of all claims one by one."""
    fabric = build_fabric([*beside, *sweeps])
    plain = [claim for sweep in sweeps for claim in expanded(sweep)]
    expected = build_fabric([*plain, *reversed(beside)])
    assert fabric == expected
    compare(fabric.columns, expected.columns)
    assert np.asarray(fabric.columns.has_shared_image).tolist() == boxed(expected)


def boxed(fabric: Fabric) -> list[bool]:
    """Return for each device whether another device has the same system image."""
    images = [
        {one for one in device.ids if one.kind is IdKind.SYSTEM_IMAGE_GUID}
        for device in fabric.devices
    ]
    shared = Counter(one for own in images for one in own)
    return [any(shared[one] > 1 for one in own) for own in images]


def compare(columns: FabricColumns, expected: FabricColumns) -> None:
    for column, expected_column in zip(_arrays(columns), _arrays(expected), strict=True):
        assert column.dtype == expected_column.dtype
        assert np.array_equal(column, expected_column)


def _arrays(columns: FabricColumns) -> list[npt.NDArray[np.generic]]:
    codes = columns.port_names.code(np.arange(len(columns.port_devices)))
    assert len(set(codes.texts)) == len(codes.texts)
    names = [codes.texts[code] for code in codes.codes]
    rest = (
        column
        for column in columns
        if column is not columns.links and column is not columns.has_shared_image
    )
    return [np.asarray(column) for column in (*rest, names, *columns.links)]


def test_it_returns_the_same_rows_in_any_order_of_access() -> None:
    fabric, backwards = build_fabric([swept(SWEEP.encode())]), build_fabric([swept(SWEEP.encode())])
    indices = range(len(fabric.ports) - 1, -1, -1)
    assert list(backwards.ports.at(indices)) == [fabric.ports[index] for index in indices]


@pytest.mark.parametrize("path", cases("ibnetdiscover"), ids=case_id)
def test_it_gives_the_same_fabric_for_every_fixture(path: Path) -> None:
    same([swept(path.read_bytes())])


@needs_samples
@pytest.mark.parametrize(
    "path", sorted(SAMPLES.glob("ibnetdiscover/*.txt")), ids=lambda path: path.stem
)
def test_it_gives_the_same_fabric_for_every_real_fabric(path: Path) -> None:
    same([swept(path.read_bytes())])


PORT_LINES = [at for at, line in enumerate(SWEEP.splitlines()) if line.startswith("[")]
HOST_NAMES = ("node-7 mlx5_0", "Node-7.example mlx5_1", "localhost mlx5_0", "node-7", "")
LINE_EDITS = st.one_of(
    st.just(lambda _line: ""),
    st.integers(1, 9).map(lambda port: lambda line: re.sub(r'"\[\d+\]', f'"[{port}]', line)),
    st.sampled_from(HOST_NAMES).map(
        lambda name: lambda line: re.sub(r'"node-[^"]*"', f'"{name}"', line)
    ),
)


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """Draw a sweep with lost lines, and with wrong far ends or names."""
    lines = SWEEP.splitlines(keepends=True)
    share = draw(st.sampled_from((20, 60, len(PORT_LINES))))
    edits = draw(st.lists(st.tuples(st.integers(0, len(lines) - 1), LINE_EDITS), max_size=share))
    for at, edit in edits:
        if lines[at].startswith(("[", "Ca")) and edit(lines[at]):
            lines[at] = edit(lines[at])
        elif at in PORT_LINES:
            lines[at] = ""
    return "".join(lines)


@limits(max_examples=examples(100))
@given(damaged(cases("ibnetdiscover")))
def test_it_gives_the_same_fabric_for_damaged_files(raw: bytes) -> None:
    same([swept(raw)])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"H-02004c0000000000"', '"H-02004c0000000010"', id="a GUID of two nodes"),
        pytest.param("[1](2004c0000000000)", "[1](2004c0000000010)", id="a GUID of two ports"),
        pytest.param('Ca\t1 "H-02004c0000000000"', 'Ca\t1 "H-02004c00000000ff"', id="a lost node"),
    ],
)
def test_it_gives_the_same_fabric_for_contradictions(old: str, new: str) -> None:
    assert old in SWEEP
    same([swept(SWEEP.replace(old, new, 1).encode())])


def squares(places: Sequence[int]) -> Iterator[int]:
    return (at * at for at in places)


def test_lazy_rows_equal_the_tuple() -> None:
    rows = LazyRows(40, squares)
    wanted = tuple(at * at for at in range(40))
    assert (rows[3], rows[-1], rows[2:5], len(rows)) == (9, 39 * 39, (4, 9, 16), 40)
    assert [rows[at] for at in range(40)] == list(wanted)
    assert rows == wanted
    assert hash(rows) == hash(wanted)
    assert rows[2:5] == wanted[2:5]
    with pytest.raises(IndexError):
        LazyRows(4, squares)[4]


def test_the_columns_of_a_fabric_have_the_content_of_its_rows() -> None:
    fabric = build_fabric([swept(SWEEP.encode())])
    columns = fabric.columns
    assert columns.names == [device.name for device in fabric.devices]
    assert [KINDS[code] for code in columns.kinds] == [device.kind for device in fabric.devices]
    arrays = (columns.port_devices, columns.media, columns.states, columns.rates)
    assert [row[:5] for row in fabric.ports] == [
        (device, name, MEDIA[medium], STATES[state], rate_or_none(rate))
        for name, device, medium, state, rate in zip(columns.port_names, *arrays, strict=True)
    ]
    ends = zip(columns.links.a, columns.links.b, strict=True)
    assert [(link.a, link.b) for link in fabric.links] == list(ends)


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("kind", FabricKind)
def test_a_packed_sweep_gives_the_fabric_of_its_claims(kind: FabricKind, mix: str) -> None:
    beside = others(FABRICS[kind], MIXES[mix])
    sweeps = [swept(text.encode()) for text in texts_of(FABRICS[kind])]
    same(sweeps, beside)


RAIL = texts_of(FABRICS[FabricKind.RAIL])[0].encode()
LINES = RAIL.splitlines()
EDITS = st.tuples(
    st.sampled_from(["drop", "repeat", "exchange", "guid"]),
    st.integers(0, len(LINES) - 1),
    st.integers(0, len(LINES) - 1),
)


def edited(edits: Sequence[tuple[str, int, int]]) -> bytes:
    """Return the sweep with lines dropped, repeated elsewhere or exchanged, or with wrong GUIDs."""
    lines = list(LINES)
    for edit, one, other in edits:
        first, second = one % len(lines), other % len(lines)
        if edit == "drop":
            del lines[first]
        elif edit == "repeat":
            lines.insert(second, lines[first])
        elif edit == "exchange":
            lines[first], lines[second] = lines[second], lines[first]
        else:
            guids = re.findall(rb"[0-9a-f]{16}", lines[second]) or [b"0" * 15 + b"1"]
            lines[first] = re.sub(rb"[0-9a-f]{16}", guids[0], lines[first], count=1)
    return b"\n".join(lines)


def test_a_sweep_that_is_given_twice_counts_once() -> None:
    beside = others(FABRICS[FabricKind.RAIL], MIXES["all"])
    sweep, again = swept(RAIL), swept(RAIL)
    assert build_fabric([*beside, sweep, again]) == build_fabric([*beside, sweep])


def test_two_sweeps_of_a_subnet_may_differ() -> None:
    later = RAIL.replace(b"4xNDR", b"4xHDR", 3)
    same([swept(RAIL), swept(later)])


class _CountedClaim(PackedClaim):
    """A claim that counts how often its device is built."""

    __slots__ = ()
    reads: ClassVar[Counter[str]] = Counter()

    @property
    def device(self) -> Device:
        """The device."""
        self.reads[self.name] += 1
        return super().device


@pytest.mark.parametrize("mix", MIXES)
def test_each_report_is_read_once_and_no_device_of_a_sweep_is_built(
    mix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = [
        _CountedClaim(claim.packed, claim.name, node=claim.name)
        if isinstance(claim, PackedClaim)
        else claim
        for claim in others(FABRICS[FabricKind.RAIL], MIXES[mix])
    ]
    sweep = swept(RAIL)
    built: list[object] = []
    monkeypatch.setattr(devices, "_build_device", lambda *place: built.append(place))
    _CountedClaim.reads.clear()
    build_fabric([*beside, sweep])
    assert built == []
    assert set(_CountedClaim.reads.values()) <= {1}


REPORTS = [claim.device for claim in others(FABRICS[FabricKind.RAIL], ["reports"])]
IMAGE = next(one for one in REPORTS[0].ids if one.kind is IdKind.SYSTEM_IMAGE_GUID)
HEARD = Neighbor((Id(IdKind.MAC, "02:00:00:00:aa:01"),), "leaf", (), "swp1", Source.LLDP)
Edit = Callable[[Device], Device]


NODES = others(FABRICS[FabricKind.RAIL], ["nodes"])
NAMES = others(FABRICS[FabricKind.RAIL], ["names"])
SWITCH = next(
    device for device in sweep_devices(FABRICS[FabricKind.RAIL]) if device.kind is DeviceKind.SWITCH
)


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
    same([swept(raw)], [*listed, *claims])


BIG_FABRIC = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 24, rails=4, radix=8)))
"""The fabric of `spoiled`."""
BIG_REPORTS = [claim.device for claim in others(BIG_FABRIC, ["reports"])]


@limits(max_examples=examples(80))
@given(spoiled(), st.sampled_from([(), ("names",), ("nodes",)]), reports(BIG_REPORTS))
def test_it_gives_the_same_fabric_for_sweeps_with_lost_and_wrong_lines(
    text: str, parts: Sequence[str], claims: list[Claim]
) -> None:
    same([swept(text.encode())], [*others(BIG_FABRIC, parts), *claims])
