"""Packing and unpacking keeps a claim, and equal devices have equal bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology.model.claims import Claim, Origin
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
    sort_capabilities,
)
from topology.model.ids import Id, IdKind
from topology.reports.packed_reports import PackedClaim, bind_to_node, pack_device, unpack_device

IDS = st.lists(
    st.builds(Id, st.sampled_from(IdKind), st.text(max_size=4), st.sampled_from(("", "mac"))),
    max_size=3,
).map(tuple)
NEIGHBORS = st.builds(
    Neighbor,
    IDS,
    st.text(max_size=4),
    IDS,
    st.text(max_size=4),
    st.sampled_from(Source),
    st.sampled_from(DeviceKind),
    st.none() | st.integers(0, 65535),
    st.frozensets(st.sampled_from(Capability)).map(sort_capabilities),
)
TEXTS = st.none() | st.text(max_size=4)
PORTS = st.builds(
    Port,
    st.text(max_size=4),
    IDS,
    st.sampled_from(Medium),
    st.sampled_from(PortState),
    st.none() | st.integers(0, 10**15),
    TEXTS,
    TEXTS,
    TEXTS,
    st.none() | st.sampled_from(GpuDistance),
    st.lists(NEIGHBORS, max_size=2).map(tuple),
    st.none() | st.integers(0, 9),
    st.none() | st.booleans(),
    TEXTS,
)
DEVICES = st.builds(
    Device,
    st.sampled_from(DeviceKind),
    st.text(max_size=4),
    IDS,
    st.lists(PORTS, max_size=3).map(tuple),
    st.text(max_size=4),
)
DEVICE = Device(DeviceKind.HOST, "n1", (Id(IdKind.HOSTNAME, "n1"), Id(IdKind.NODE_NAME, "other")))


@given(DEVICES)
def test_it_unpacks_what_was_packed(device: Device) -> None:
    packed = pack_device(device)
    assert unpack_device(packed) == device
    claim = PackedClaim(packed, device.name, node=None)
    plain = Claim(device, Origin.REPORT)
    assert claim == plain
    assert plain == claim
    assert hash(claim) == hash(plain)
    assert claim.name == plain.name


def test_it_has_only_the_name_of_its_node() -> None:
    claim = PackedClaim(pack_device(DEVICE), "n1", node="n1")
    assert claim.device == bind_to_node(DEVICE, "n1")
    assert [
        identifier.value for identifier in claim.device.ids if identifier.kind is IdKind.NODE_NAME
    ] == ["n1"]
    assert claim != PackedClaim(claim.packed, "n1", node="n2")


@pytest.mark.parametrize("origin", [Origin.INVENTORY, Origin.SWEEP])
def test_it_differs_from_claims_of_other_origins(origin: Origin) -> None:
    claim = PackedClaim(pack_device(DEVICE), "n1", node=None)
    assert claim != Claim(DEVICE, origin)
    assert claim != DEVICE
