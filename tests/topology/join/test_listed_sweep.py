"""A sweep joined with a list of nodes as columns gives the fabric of all claims one by one."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from generator.ingest.inputs import Inputs
from generator.objects.inventory import parse_nodes
from tests.effort import examples
from tests.topology.join.test_mixes import EDITS, FABRICS, edited, others, packed, texts_of
from tests.topology.join.test_sweep_join import boxed, compare
from tests.topology.join.test_sweep_join import spoiled as spoiled_sweeps
from topology.identity.id_owners import DeferredOwners, index_id_owners
from topology.join.claim_join import join_claims
from topology.join.fabric_join import join_as_columns
from topology.model.claims import Claim, ListedClaim, Origin, SweptClaims, strong_key
from topology.model.fabric import Fabric, columns_of
from topology.model.facts import Device, DeviceKind, FindingKind, Port
from topology.model.ids import Id, IdKind
from topology.model.packed_ids import PackedIds
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    render_inventory,
    sweep_devices,
)

RAIL = texts_of(FABRICS[FabricKind.RAIL])[0].encode()
NODES = others(FABRICS[FabricKind.RAIL], ["nodes"])
NAMES = others(FABRICS[FabricKind.RAIL], ["names"])
SWITCH = next(
    device for device in sweep_devices(FABRICS[FabricKind.RAIL]) if device.kind is DeviceKind.SWITCH
)


def same(sweep: SweptClaims, listed: Sequence[Claim]) -> Fabric | None:
    """Return the fabric as columns, after comparing it with the general way."""
    fast = join_as_columns([*listed, sweep])
    lazy = [ListedClaim(claim.name, claim.ids) if is_bare(claim) else claim for claim in listed]
    assert join_as_columns([sweep, *lazy]) == fast
    if fast is not None:
        general = join_claims([*listed, sweep], previous_owners={}).fabric
        assert fast == general
        compare(columns_of(fast), columns_of(general))
        assert np.asarray(columns_of(fast).has_shared_image).tolist() == boxed(general)
    return fast


def is_bare(claim: Claim) -> bool:
    """Return whether a claim lists ids and says nothing else."""
    is_host = claim.device.kind is DeviceKind.HOST and not claim.device.ports
    return is_host and claim.origin is Origin.INVENTORY


@pytest.mark.parametrize("parts", ["names", "nodes"])
@pytest.mark.parametrize("kind", FabricKind)
def test_a_list_that_agrees_keeps_the_fast_way(kind: FabricKind, parts: str) -> None:
    listed = others(FABRICS[kind], [parts])
    for text in texts_of(FABRICS[kind]):
        fabric = same(packed(text), listed)
        assert fabric is not None
        assert {device.node for device in fabric.devices} >= {claim.name for claim in listed}


@pytest.mark.parametrize("kind", FabricKind)
def test_a_list_that_was_read_as_texts_keeps_the_fast_way(kind: FabricKind) -> None:
    raw = json.dumps(render_inventory(FABRICS[kind])).encode()
    inventory = parse_nodes(raw, source="nodes.json")
    assert all(isinstance(node.ids, PackedIds) for node in inventory.nodes)
    listed = Inputs(inventory=inventory).listed_claims
    assert list(listed) == others(FABRICS[kind], ["nodes"])
    for text in texts_of(FABRICS[kind]):
        assert same(packed(text), listed) is not None


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


@limits(max_examples=examples(120))
@given(lists(), st.lists(EDITS, max_size=3).map(edited))
def test_any_list_beside_any_sweep_gives_the_fabric_of_all_claims(
    listed: list[Claim], raw: bytes
) -> None:
    same(SweptClaims(parse_ibnetdiscover(raw, fast=NumpyReader()).devices), listed)


OTHER_NAMES = ("node-0001", "node-0002", "NODE-3", "gpu.rack-a", "gpu.rack-b", "gpu", "10.0.0.1")


@limits(max_examples=examples(150))
@example({1: "node-0001", 2: "node-0001"}, [["node-0001"], ["node-0002"]], ["node-0002", "a"])
@given(
    st.dictionaries(st.integers(1, 6), st.sampled_from(OTHER_NAMES), max_size=6),
    st.lists(st.lists(st.sampled_from(OTHER_NAMES), max_size=2), min_size=6, max_size=6),
    st.lists(st.sampled_from(["a", "b", *OTHER_NAMES[1:2], *OTHER_NAMES[3:]]), max_size=6),
)
def test_any_names_of_hosts_and_nodes_give_the_fabric_of_all_claims(
    hosts: dict[int, str], host_names: list[list[str]], nodes: list[str]
) -> None:
    text = RAIL.decode()
    for number, name in hosts.items():
        text = text.replace(f'"node-{number:04} ', f'"{name} ')
    rows = zip(dict.fromkeys(nodes), host_names, strict=False)
    same(
        packed(text),
        [
            listed_as(
                Device(DeviceKind.HOST, node, ()),
                [
                    Id(IdKind.NODE_NAME, node),
                    *(Id(IdKind.IP if name[0] == "1" else IdKind.HOSTNAME, name) for name in names),
                ],
            )
            for node, names in rows
        ],
    )


BIG_FABRIC = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 24, rails=4, radix=8)))
"""The fabric of `test_sweep_join`."""


@limits(max_examples=examples(60))
@given(spoiled_sweeps(), st.sampled_from(["names", "nodes"]), st.integers(0, 24))
def test_it_gives_the_same_fabric_for_sweeps_with_lost_and_wrong_lines(
    text: str, parts: str, num_listed: int
) -> None:
    same(packed(text), others(BIG_FABRIC, [parts])[:num_listed])


def test_it_leaves_exchanged_ids_to_the_general_way() -> None:
    first, second, *rest = NODES
    exchanged = [renamed(first, second.name), renamed(second, first.name), *rest]
    assert same(packed(RAIL.decode()), exchanged) is None


@pytest.mark.parametrize("more", [MORE_IDS[4], MORE_IDS[5], MORE_IDS[6]])
def test_it_leaves_a_list_that_names_other_devices_to_the_general_way(more: Id) -> None:
    first, *rest = NODES
    assert same(packed(RAIL.decode()), [listed_as(first.device, [*first.ids, more]), *rest]) is None


def test_it_leaves_ports_and_other_origins_to_the_general_way() -> None:
    first, *rest = NODES
    with_port = Claim(replace(first.device, ports=(Port("eth0"),)), Origin.INVENTORY)
    assert same(packed(RAIL.decode()), [with_port, *rest]) is None
    report = Claim(first.device, Origin.REPORT)
    assert same(packed(RAIL.decode()), [report, *rest]) is None


def test_a_node_that_lists_guids_has_no_other_hca_of_its_name() -> None:
    lost = Id(IdKind.NODE_GUID, "02004c0000000000"), Id(IdKind.PORT_GUID, "02004c0000000000")
    first, *rest = NODES
    assert lost[0] in first.ids
    listed = [listed_as(first.device, [one for one in first.ids if one not in lost]), *rest]
    fabric = same(packed(RAIL.decode()), listed)
    assert fabric is not None
    assert FindingKind.DUPLICATE_NAME in {finding.kind for finding in fabric.findings}


def test_each_id_has_the_owner_that_the_general_way_gives_it() -> None:
    sweep = packed(RAIL.decode())
    fabric, general = (
        join_as_columns([*NODES, sweep]),
        join_claims([*NODES, sweep], previous_owners={}),
    )
    assert fabric is not None
    owners, expected = DeferredOwners(fabric), index_id_owners(general.fabric, general.ids)
    keys = {key for claim in NODES for one in claim.ids if (key := strong_key(one))}
    assert {key: owners.get(key) for key in keys} == {key: expected.get(key) for key in keys}
    assert {owners.get(key) for key in keys} == {claim.name for claim in NODES}
    assert owners.get((IdKind.MAC, "02:00:00:00:00:99")) is None
