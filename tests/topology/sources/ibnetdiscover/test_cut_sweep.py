"""A sweep whose end is missing is named as cut, wherever the cut falls; a whole one never is."""

from __future__ import annotations

import random  # noqa: TID251 - seeded places of cuts
from collections.abc import Sequence

import pytest

from tests.shared_samples import SAMPLES
from topology.model.errors import CutInput
from topology.model.facts import Device
from topology.sources.ibnetdiscover.columns import SweepColumns
from topology.sources.ibnetdiscover.cut_sweep import find_cut
from topology.sources.ibnetdiscover.devices import SweptDevices
from topology.sources.ibnetdiscover.parser import RowParser
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

SPECS = [
    SyntheticSpec(FabricKind.FAT_TREE, 8, radix=4),
    SyntheticSpec(FabricKind.RAIL, 8, rails=4, radix=8),
    SyntheticSpec(FabricKind.RAIL, 4, rails=2, radix=4),
]
NUM_RANDOM_CUTS = 40
TAIL_BYTES = 130
WHOLE_SAMPLES = (
    "edr-ring_4sw", "hdr-60sw_default-names", "ibm-doc_two-hosts", "manpage_grouping",
    "ompi-list-2009_no-rates", "own_ibsim_odd-names", "own_ibsim_stage_p-form", "psmn-x5_qdr-ddr",
    "selene-storage_hdr-edr", "stage_fdr10", "superpod-dgxa100_hdr", "topograph_ndr_dgx",
    "ufm_small_hdr-fdr",
)  # fmt: skip


def dump(spec: SyntheticSpec) -> bytes:
    return render_ibnetdiscover(sweep_devices(build_undamaged(build_wiring(spec)))).encode()


def judge(raw: bytes) -> tuple[Sequence[Device], str]:
    """Return the devices, and the problem with the end of a dump."""
    parser = RowParser()
    parser.read(raw)
    parser.close()
    return SweptDevices(SweepColumns.sort(parser.rows)), str(find_cut(parser) or "")


def is_named(raw: bytes, whole: Sequence[Device]) -> bool:
    """Return whether a cut dump is named as cut, or cannot be mistaken for a smaller fabric."""
    devices, problem = judge(raw)
    return "cut" in problem or not len(devices) or devices == whole


def choose_cuts(raw: bytes) -> list[int]:
    """Return the end of every line, random places, and every byte of the last line."""
    ends = [place + 1 for place, byte in enumerate(raw) if byte == ord("\n")]
    places = random.Random(len(raw))  # noqa: S311 - no secret
    more = [places.randrange(len(raw)) for _ in range(NUM_RANDOM_CUTS)]
    return sorted({*ends[:-1], *more, *range(len(raw) - TAIL_BYTES, len(raw) - 1)})


@pytest.mark.parametrize("spec", SPECS, ids=["fat tree", "rails", "four hosts"])
def test_it_names_every_cut_of_a_sweep(spec: SyntheticSpec) -> None:
    raw = dump(spec)
    whole, problem = judge(raw)
    assert problem == ""
    for cut in choose_cuts(raw)[::6]:
        assert is_named(raw[:cut], whole), raw[:cut][-120:]


@pytest.mark.long
@pytest.mark.parametrize("name", WHOLE_SAMPLES)
def test_it_names_every_cut_of_a_real_sweep_and_never_a_whole_one(name: str) -> None:
    file = SAMPLES / "ibnetdiscover" / f"{name}.txt"
    if not file.exists():
        pytest.skip("needs the collected samples")
    raw = file.read_bytes()
    whole, problem = judge(raw)
    assert problem == ""
    cuts = choose_cuts(raw)
    chosen = random.Random(1).sample(cuts, min(len(cuts), 1 + (1 << 21) // len(raw)))  # noqa: S311
    for cut in chosen:
        assert is_named(raw[:cut], whole), raw[:cut][-120:]


def test_a_whole_sweep_without_a_last_newline_is_whole() -> None:
    assert judge(dump(SPECS[0]).rstrip())[1] == ""


def test_a_line_that_is_lost_in_the_middle_is_no_cut() -> None:
    lines = dump(SPECS[1]).split(b"\n")
    first = next(number for number, line in enumerate(lines) if line.startswith(b'[1]\t"H-'))
    assert judge(b"\n".join(lines[:first] + lines[first + 1 :]))[1] == ""


def test_a_single_ca_without_a_cable_may_be_whole() -> None:
    raw = b'caguid=0x2\nCa\t1 "H-0000000000000002"\t\t# "n1 mlx5_0"\n'
    parser = RowParser()
    parser.read(raw)
    problem = find_cut(parser)
    assert "or is cut" in str(problem)
    assert not isinstance(problem, CutInput)
