"""A sweep from a file or a report becomes one value with all its claims."""

import pytest

from generator.ingest.captures import parse_dump
from generator.ingest.claims import build_claims
from generator.ingest.sweeps import ParsedSweep, parse_reported_sweep
from tests.packed_reports import packed
from topology.model.claims import Claim, Origin, SweptClaims, expand_claims
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SUBNET = "fe80000000000001"
SPEC = SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)


@pytest.fixture(scope="module")
def sweep() -> bytes:
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(SPEC)))).encode()


def parse_reported(text: str) -> ParsedSweep:
    reports = split_sweep(text, node="n1", subnet=SUBNET)
    parts = tuple(report.spec.sweep for report in reports if report.spec.sweep is not None)
    return parse_reported_sweep(parts, source="dump")


def test_the_claims_of_a_sweep_stay_packed(sweep: bytes) -> None:
    claims = build_claims(packed(split_sweep(sweep.decode(), node="n1", subnet=SUBNET))).claims
    assert [type(claim) for claim in claims] == [SweptClaims]
    devices = parse_dump(sweep, source="dump").devices
    assert list(expand_claims(claims)) == [Claim(device, Origin.SWEEP) for device in devices]


def test_a_reported_sweep_has_the_devices_of_its_text(sweep: bytes) -> None:
    reported = parse_reported(sweep.decode())
    assert (reported.devices, reported.errors) == (parse_dump(sweep, source="dump").devices, ())
    assert reported.load.devices == len(reported.devices)
