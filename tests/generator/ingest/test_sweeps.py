"""A sweep from a file or a report becomes one value with all its claims."""

import pytest

from generator.ingest.sweeps import (
    build_sweep_claims,
    parse_reported_sweep,
    parse_sweep,
)
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

SPEC = SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)


@pytest.fixture(scope="module")
def sweep() -> bytes:
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(SPEC)))).encode()


def test_the_claims_of_a_sweep_stay_packed(sweep: bytes) -> None:
    devices = parse_sweep(sweep, source="dump").devices
    claims = build_sweep_claims(devices)
    assert [type(claim) for claim in claims] == [SweptClaims]
    assert list(expand_claims(claims)) == [Claim(device, Origin.SWEEP) for device in devices]


def test_a_reported_sweep_has_the_devices_of_its_text(sweep: bytes) -> None:
    reports = split_sweep(sweep.decode(), node="n1", subnet="fe80000000000001")
    parts = tuple(report.spec.sweep for report in reports if report.spec.sweep is not None)
    reported = parse_reported_sweep(parts, source="dump", used=())
    assert (reported.devices, reported.errors) == (parse_sweep(sweep, source="dump").devices, ())
    assert reported.load.devices == len(reported.devices)


def test_an_empty_sweep_has_no_claims() -> None:
    assert build_sweep_claims(()) == []
    assert build_sweep_claims(parse_sweep(b"\n", source="dump").devices) == []
