"""An undamaged fabric of any family and shape has no finding that asks to repair something."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.effort import examples, first_of
from tests.topology.compute_trees import infer_compute_tree
from tests.topology.odd_shapes import SHAPES
from tests.verify.sources import MIXES, collect_sources
from topology.join.fabric_join import build_fabric
from topology.model.errors import ConfigError
from topology.model.facts import FindingKind, Medium
from topology.synthetic import (
    FabricKind,
    NamePolicy,
    SyntheticSpec,
    Wiring,
    build_undamaged,
    build_wiring,
)

DESIGN_KINDS = {
    FindingKind.ISLAND,
    FindingKind.UNDECIDABLE,
    FindingKind.AUX_SWITCH,
    FindingKind.NOT_A_TREE,
}
"""Kinds that describe a design: parts without cables between them, and wirings without a tree."""


@st.composite
def wirings(draw: st.DrawFn) -> Wiring:
    kind, names = draw(st.sampled_from(FabricKind)), draw(st.sampled_from(NamePolicy))
    spec = SyntheticSpec(
        kind,
        draw(st.integers(1, 96)),
        rails=draw(st.integers(1, 8)),
        radix=2 * draw(st.integers(2, 20)),
        tiers=draw(st.sampled_from((None, 2, 3, 4))),
        medium=draw(st.sampled_from((Medium.INFINIBAND, Medium.ETHERNET))),
        names=names,
        uplinks=draw(st.none() | st.integers(1, 5)),
        islands=draw(st.integers(0, 2)),
        storage_leaves=draw(st.integers(0, 2)),
        peer_links=draw(st.integers(0, 3)) if kind is FabricKind.DUAL_HOMED else 0,
    )
    try:
        return build_wiring(spec)
    except ConfigError:
        assume(condition=False)
        raise


def find_repairs(wiring: Wiring) -> list[str]:
    """Return the messages of all findings that do not describe a design, from every mix."""
    whole = build_undamaged(wiring)
    return [
        finding.message
        for mix in MIXES[wiring.spec.medium]
        for finding in infer_compute_tree(build_fabric(collect_sources(whole, mix))).findings
        if finding.kind not in DESIGN_KINDS
    ]


@settings(max_examples=examples(200), deadline=None)
@given(wirings())
def test_an_undamaged_fabric_of_any_family_needs_no_repair(wiring: Wiring) -> None:
    assert find_repairs(wiring) == []


@pytest.mark.parametrize("num_hcas", first_of([256, 64, 1024, 4096]))
@pytest.mark.parametrize("name", SHAPES)
def test_an_undamaged_fabric_of_any_shape_needs_no_repair(name: str, num_hcas: int) -> None:
    assert find_repairs(SHAPES[name].build(num_hcas)) == []
