"""Reports that are like a sample give the rows of their devices."""

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
from topology.join.claim_columns import ClaimColumns, read_claims
from topology.join.claim_join import join_claims
from topology.model.claims import Claim, SweptClaims
from topology.model.facts import Device, Medium
from topology.model.ids import Id, IdKind
from topology.reports.compact_reports import CompactReport, compact_document, compact_file
from topology.reports.device_texts import DeviceSamples
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


def unlike(claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims without samples."""
    return [
        PackedClaim(claim.packed, claim.name, node=claim.node)
        if isinstance(claim, PackedClaim)
        else claim
        for claim in claims
    ]


def same_columns(found: ClaimColumns, expected: ClaimColumns) -> None:
    assert found.table.claims == expected.table.claims
    assert found.table.facts == expected.table.facts
    for name in ("first_rows", "num_rows", "sweep_of_claim"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    heard = [
        sorted(zip(one.table.heard, one.table.heard_by, strict=True)) for one in (found, expected)
    ]
    assert heard[0] == heard[1]
    assert found.heard_descriptions == expected.heard_descriptions
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
def test_claims_like_a_sample_give_the_rows_of_their_devices(
    fabric: Sequence[tuple[str, Device]],
) -> None:
    claims = claims_of(read([raw_of(device, name) for name, device in fabric]))
    assert any(isinstance(claim, PackedClaim) and claim.sample for claim in claims)
    same_columns(read_claims(claims), read_claims(unlike(claims)))


@pytest.mark.parametrize("fabric", FABRICS.values(), ids=map(str, FABRICS))
def test_claims_of_decoded_reports_are_like_those_of_the_last_reports(
    fabric: Sequence[tuple[str, Device]],
) -> None:
    documents = [json.loads(raw_of(device, name)) for name, device in fabric]
    claims = claims_of([compact_document(document) for document in documents])
    assert any(isinstance(claim, PackedClaim) and claim.sample for claim in claims)
    same_columns(read_claims(claims), read_claims(unlike(claims)))


def test_samples_are_bounded() -> None:
    samples, device = DeviceSamples(), HEARD[0][1]
    for number in range(400):
        ids = tuple(Id(IdKind.HOSTNAME, str(value)) for value in range(number))
        packed = pack_device(replace(device, ids=ids))
        for _ in range(4):
            samples.find(packed)
    assert samples.num_samples == 256


def test_devices_of_like_claims_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
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
    same_columns(read_claims(claims), read_claims(unlike(claims)))
    same(
        join_claims(claims, previous_owners={}),
        join_claims(unlike(claims), previous_owners={}),
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
        join_claims([*claims, sweep], previous_owners={}),
        join_claims([*unlike(claims), sweep], previous_owners={}),
    )
