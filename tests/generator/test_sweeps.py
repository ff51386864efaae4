"""Small dumps are read line by line, large ones as columns; what they claim is the same."""

import pytest

from generator.sweeps import FAST_BYTES, claims_of_sweep, parse_sweep
from topology.facts import Parsed
from topology.identity import Claim, SweptClaims, spell_out
from topology.sources.ibnetdiscover import render_ibnetdiscover
from topology.synthetic import FabricKind, FabricSpec, build_wiring, sweep_devices, undamaged

SPEC = FabricSpec(FabricKind.RAIL, 8, rails=2, radix=8)


@pytest.fixture(scope="module")
def sweep() -> bytes:
    return render_ibnetdiscover(sweep_devices(undamaged(build_wiring(SPEC)))).encode()


def test_the_claims_of_a_large_sweep_stay_together(sweep: bytes) -> None:
    small = parse_sweep(sweep, source="dump")
    large = parse_sweep(sweep + b"#" * FAST_BYTES, source="dump")
    assert large == small
    one_by_one, together = claims_of_sweep(small), claims_of_sweep(large)
    assert {type(claim) for claim in one_by_one} == {Claim}
    assert [type(claim) for claim in together] == [SweptClaims]
    assert list(spell_out(together)) == one_by_one


def test_nothing_claims_nothing() -> None:
    assert claims_of_sweep(Parsed()) == []
    assert claims_of_sweep(parse_sweep(b"\n" * FAST_BYTES, source="dump")) == []
