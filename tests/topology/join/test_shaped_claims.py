"""Packed reports give the rows of their devices, by the shapes of their ports."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.ingest.claims import build_claims
from tests.effort import examples
from tests.topology.join.test_mixes import same
from tests.topology.reports.test_neighbor_report import DEVICES
from topology.join.claim_columns import ClaimColumns, ClaimReader, read_claims
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, SweptClaims
from topology.model.facts import Device, Medium, PortState
from topology.reports.compact_reports import CompactReport, compact_file
from topology.reports.neighbor_report import build_report, render_report
from topology.reports.packed_claims import PackedClaim
from topology.reports.packed_devices import pack_device
from topology.reports.report_shapes import ReportShapes
from topology.sources.ibnetdiscover.chunks import NumpyReader
from topology.sources.ibnetdiscover.parser import parse_ibnetdiscover
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
    sweep_devices,
)


def build(kind: FabricKind, medium: Medium) -> list[tuple[str, Device]]:
    spec = SyntheticSpec(kind, 12, rails=2 if kind is FabricKind.RAIL else 1, radix=8)
    wiring = build_wiring(replace(spec, medium=medium))
    return [(row.report, row.device) for row in report_claims(build_undamaged(wiring))]


FABRICS = {
    (kind, medium): build(kind, medium) for kind in FabricKind for medium in list(Medium)[:2]
}
HEARD = FABRICS[FabricKind.RAIL, Medium.ETHERNET]
SWAPS = st.lists(
    st.tuples(
        st.integers(0, len(HEARD) - 1),
        st.sampled_from(
            [
                r'"value": "([^"]+)"',
                r'"name": "([^"]+)"',
                r'"portName": "([^"]+)"',
                r"02:[0-9a-f:]+",
            ]
        ),
        st.integers(0, 400),
        st.sampled_from(["leaf-p01-g01-r1", "node-0001", "02:5c:00:00:00:00", "swp1", "swp9", ""]),
    ),
    min_size=1,
    max_size=4,
)


def raw_of(device: Device, name: str) -> bytes:
    return json.dumps(render_report(build_report(device, name=name))).encode()


def read(raws: Sequence[bytes]) -> list[CompactReport]:
    """Return the reports that are read by their shape."""
    shapes = ReportShapes()
    for _ in range(5):
        for raw in raws:
            compact_file(raw, shapes)
    return [report for raw in raws if (report := compact_file(raw, shapes)) is not None]


def claims_of(reports: Sequence[CompactReport]) -> list[Claim]:
    return [claim for claim in build_claims(reports).claims if isinstance(claim, Claim)]


def unpacked(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims with their devices, so that each is read one by one."""
    return [Claim(claim.device, claim.origin) for claim in claims]


HEARD_FIELDS = (
    *("contested", "shared_names", "heard_by_hosts"),
    *("claimed_names", "identified_names", "is_consistent"),
)


def same_columns(found: ClaimColumns, expected: ClaimColumns) -> None:
    assert found.table.claims == expected.table.claims
    assert found.table.facts == expected.table.facts
    for name in ("first_rows", "num_rows", "sweep_of_claim"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    heard = [
        sorted(zip(one.table.heard, one.table.heard_by, strict=True)) for one in (found, expected)
    ]
    assert heard[0] == heard[1]
    one_heard, other_heard = found.heard_descriptions, expected.heard_descriptions
    assert set(one_heard.names()) == set(other_heard.names())
    for name in HEARD_FIELDS:
        assert getattr(one_heard, name) == getattr(other_heard, name), name
    one, other = found.rows.build(), expected.rows.build()
    for name in ("has_name", "key_stops", "keys", "entry_stops"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    keyed = one.entries.has_key
    for name in one.entries._fields:
        columns = getattr(one.entries, name), getattr(other.entries, name)
        chosen = [column[keyed] if name == "first_keys" else column for column in columns]
        assert np.array_equal(*chosen), name
    assert list(one.table.rows()) == list(other.table.rows())


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=map(str, FABRICS))
def test_packed_claims_give_the_rows_of_their_devices(
    fabric: Sequence[tuple[str, Device]],
) -> None:
    claims = claims_of(read([raw_of(device, name) for name, device in fabric]))
    assert claims
    same_columns(read_claims(claims), read_claims(unpacked(claims)))


def test_shapes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices with further shapes are read one by one, with the same result."""
    monkeypatch.setattr("topology.join.shaped_claims._MAX_SHAPES", 3)
    claims = claims_of(read([raw_of(device, name) for name, device in damaged(HEARD)]))
    same_columns(read_claims(claims), read_claims(unpacked(claims)))


def damaged(fabric: Sequence[tuple[str, Device]]) -> list[tuple[str, Device]]:
    """Return devices of which each has another port down."""
    found = []
    for number, (name, device) in enumerate(fabric):
        at = number % max(1, len(device.ports))
        down = [port._replace(state=PortState.DOWN, neighbors=()) for port in device.ports[at:][:1]]
        ports = (*device.ports[:at], *down, *device.ports[at + 1 :])
        found.append((name, replace(device, ports=ports)))
    return found


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=map(str, FABRICS))
def test_devices_with_other_ports_down_give_the_rows_of_their_devices(
    fabric: Sequence[tuple[str, Device]], monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = claims_of(read([raw_of(device, name) for name, device in damaged(fabric)]))
    expected = read_claims(unpacked(claims))
    built: list[str] = []
    monkeypatch.setattr(ClaimReader, "read_device", lambda *args: built.append(args[1].name))
    same_columns(read_claims(claims), expected)
    assert built == []


@given(st.lists(st.tuples(st.booleans(), DEVICES), max_size=6))
@settings(max_examples=examples(150))
def test_packed_claims_of_any_devices_give_the_rows_of_their_devices(
    devices: Sequence[tuple[bool, Device]],
) -> None:
    claims: list[Claim] = [
        PackedClaim(pack_device(device), device.name, node="node-1" if is_node else None)
        for is_node, device in devices
    ]
    same_columns(read_claims(claims), read_claims(unpacked(claims)))


def test_devices_of_packed_claims_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = claims_of(read([raw_of(device, name) for name, device in HEARD]))
    built: list[str] = []
    monkeypatch.setattr(PackedClaim, "device", property(lambda claim: built.append(claim.name)))
    read_claims(claims)
    assert built == []


@given(SWAPS)
@settings(max_examples=examples(150))
def test_reports_with_any_other_texts_give_the_fabric_of_their_devices(
    swaps: Sequence[tuple[int, str, int, str]],
) -> None:
    raws = [raw_of(device, name) for name, device in HEARD]
    for index, pattern, at, text in swaps:
        document = raws[index].decode()
        found = list(re.finditer(pattern, document))
        if found:
            match = found[at % len(found)]
            start, stop = match.span(1) if match.re.groups else match.span()
            raws[index] = (document[:start] + text + document[stop:]).encode()
    claims = claims_of(read(raws))
    same_columns(read_claims(claims), read_claims(unpacked(claims)))
    same(
        build_fabric(claims),
        build_fabric(unpacked(claims)),
    )


RAIL = FABRICS[FabricKind.RAIL, Medium.INFINIBAND]
WIRING = build_wiring(SyntheticSpec(FabricKind.RAIL, 12, rails=2, radix=8))


@pytest.mark.parametrize("num_forged", [0, 1, len(RAIL)])
def test_a_sweep_beside_agreeing_and_contradicting_reports_is_joined_as_their_devices(
    num_forged: int,
) -> None:
    """Reports agree with the sweep, contradict it at one host, and at all hosts."""
    raws = [raw_of(device, name) for name, device in RAIL]
    forged = [
        re.sub(rb'"(02[0-9a-f]{13})[0-9a-f]"', rb'"\g<1>%x"' % (index % 8 + 8), raw)
        if index < num_forged
        else raw
        for index, raw in enumerate(raws)
    ]
    text = render_ibnetdiscover(sweep_devices(build_undamaged(WIRING)))
    sweep = SweptClaims(parse_ibnetdiscover(text.encode(), fast=NumpyReader()).devices)
    claims = claims_of(read(forged))
    assert claims
    same(
        build_fabric([*claims, sweep]),
        build_fabric([*unpacked(claims), sweep]),
    )
