"""An incomplete sweep means unknown: the HyperNodes of its subnet stay unchanged."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from msgspec import structs

from generator.ingest.claims import build_claims
from generator.ingest.inputs import Inputs
from generator.observe.observation import Observation, observe
from generator.outputs.hypernode.forest import render_hypernodes
from generator.reconcile.desired import plan_tree_changes
from tests.packed_reports import packed
from topology.reports.neighbor_report import NeighborReport, build_report
from topology.reports.sweep_parts import split_sweep
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
    sweep_devices,
)
from topology.synthetic.sweep_output import render_ibnetdiscover

FABRIC = build_undamaged(build_wiring(SyntheticSpec(FabricKind.RAIL, 8, rails=2, radix=8)))


def reports(*sweeps: NeighborReport) -> list[NeighborReport]:
    return [build_report(one.device, name=one.report) for one in report_claims(FABRIC)] + [*sweeps]


def sweep(subnet: str, *, of: int = 1) -> list[NeighborReport]:
    """Return the sweep of the fabric, as one of this number of parts."""
    text = render_ibnetdiscover(sweep_devices(FABRIC))
    (whole,) = split_sweep(text, node="node-0001", subnet=subnet)
    assert whole.spec.sweep is not None
    part = structs.replace(whole.spec.sweep, of=of)
    return [structs.replace(whole, spec=structs.replace(whole.spec, sweep=part))]


def see(found: Sequence[NeighborReport]) -> Observation:
    taken = build_claims(packed(found))
    inputs = Inputs(taken.claims, tuple(packed(found)), unknown_subnets=taken.unknown_subnets)
    seen = observe(inputs, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert seen is not None
    return seen.observation


@pytest.mark.parametrize(
    ("found", "word"),
    [
        pytest.param(
            reports(*sweep("fe80000000000000"), *sweep("fe80000000000001", of=2)),
            "fe80000000000001",
            id="one of two subnets has a part of a sweep only",
        ),
        pytest.param(reports(*sweep("fe80000000000000", of=3)), "fe80000000000000",
                     id="the only subnet has a part of a sweep only"),
        pytest.param(reports(), "no domain", id="there is no sweep at all"),
    ],
)  # fmt: skip
def test_it_plans_nothing_while_a_subnet_is_unknown(found: list[NeighborReport], word: str) -> None:
    before = render_hypernodes(see(reports(*sweep("fe80000000000000"))).tree)
    assert before
    actions, problems, _ = plan_tree_changes(see(found), before)
    assert actions == ()
    assert [word in str(problem) for problem in problems] == [True]


def test_it_plans_again_once_the_sweep_is_complete() -> None:
    seen = see(reports(*sweep("fe80000000000000")))
    assert seen.unknown_subnets == ()
    actions, problems, _ = plan_tree_changes(seen, ())
    assert problems == ()
    assert [action.object for action in actions] == list(render_hypernodes(seen.tree))
