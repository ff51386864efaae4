"""No tree of an unusual wiring is silently wrong, from a packed sweep with the node list."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.effort import first_of
from tests.topology.odd_shapes import SHAPES
from tests.topology.synthetic.fabrics import seeded
from tests.verify.judgement import TreeVerdict, run_scenario
from tests.verify.sources import SourceMix
from topology.synthetic import FaultSpec

DAMAGES = {
    "none": FaultSpec(),
    "1 % lost": FaultSpec(lose_links=0.01, shuffle=True),
    "10 % lost": FaultSpec(lose_links=0.1, shuffle=True),
    "swapped": FaultSpec(swap=0.05, shuffle=True),
    "a dead switch": FaultSpec(lose_switches=1, shuffle=True),
    "all": FaultSpec(0.1, swap=0.05, silent=0.2, lose_switches=1, lose_hosts=2, shuffle=True),
}
EXACT = {"none", "1 % lost", "a dead switch"}
"""Damage that leaves the tree exact where all hosts have the same ports."""


@pytest.mark.parametrize("case", first_of([*((256, seed) for seed in range(8)), (4096, 8)]))
@pytest.mark.parametrize("name", SHAPES)
def test_no_tree_of_an_odd_shape_is_silently_wrong(name: str, case: tuple[int, int]) -> None:
    num_hcas, seed = case
    shape = SHAPES[name]
    wiring = shape.build(num_hcas)
    found = {}
    for damage, given in DAMAGES.items():
        if len(wiring.switches) <= given.lose_switches:
            continue
        faults = replace(given, shuffle=given.shuffle and shape.is_uniform)
        score = run_scenario(wiring, faults, seeded(seed), mix=SourceMix.LISTED_SWEEP)
        found[damage] = score.verdict
    assert TreeVerdict.SILENT not in found.values()
    exact = EXACT if shape.is_uniform else {"none"}
    assert {found[damage] for damage in exact & found.keys()} == {TreeVerdict.EXACT}
