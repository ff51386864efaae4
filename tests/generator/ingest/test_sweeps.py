"""Small dumps are parsed line by line, large ones as columns; their claims are the same."""

import pytest

from generator.ingest.sweeps import (
    MIN_ARRAY_PARSER_BYTES,
    build_sweep_claims,
    parse_reported_sweep,
    parse_sweep,
)
from topology.model.claims import Claim, SweptClaims, expand_claims
from topology.model.facts import ParseResult
from topology.reports.sweep_parts import split_sweep
from topology.sources.ibnetdiscover.columns import SweptDevices
from topology.sources.ibnetdiscover.printer import render_ibnetdiscover
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)

SPEC = SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)


@pytest.fixture(scope="module")
def sweep() -> bytes:
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(SPEC)))).encode()


def test_the_claims_of_a_large_sweep_stay_packed(sweep: bytes) -> None:
    small = parse_sweep(sweep, source="dump")
    large = parse_sweep(sweep + b"#" * MIN_ARRAY_PARSER_BYTES, source="dump")
    assert large == small
    one_by_one, together = build_sweep_claims(small), build_sweep_claims(large)
    assert {type(claim) for claim in one_by_one} == {Claim}
    assert [type(claim) for claim in together] == [SweptClaims]
    assert list(expand_claims(together)) == one_by_one


def test_a_reported_sweep_is_parsed_without_its_text_in_memory(sweep: bytes) -> None:
    reports = split_sweep(sweep.decode(), node="n1", subnet="fe80000000000001")
    parts = [report.spec.sweep for report in reports if report.spec.sweep is not None]
    small, no_load = parse_reported_sweep(parts, source="dump", used=None)
    large, load = parse_reported_sweep(parts, source="dump", used=())
    assert large == small == parse_sweep(sweep, source="dump")
    assert isinstance(large.devices, SweptDevices)
    assert len(large.devices.sweep.texts.dump) < len(sweep) / 8
    assert (no_load, load[0]) == ((), len(small.devices))


@pytest.mark.parametrize("at", [0, 3, -1])
def test_it_builds_one_device_of_a_large_sweep_as_all_of_them(sweep: bytes, at: int) -> None:
    devices = parse_sweep(sweep + b"#" * MIN_ARRAY_PARSER_BYTES, source="dump").devices
    assert devices[at] == tuple(devices)[at]
    assert devices[at:][:1] == (devices[at],)
    with pytest.raises(IndexError):
        devices[len(devices)]


def test_an_empty_sweep_has_no_claims() -> None:
    assert build_sweep_claims(ParseResult()) == []
    assert build_sweep_claims(parse_sweep(b"\n" * MIN_ARRAY_PARSER_BYTES, source="dump")) == []
