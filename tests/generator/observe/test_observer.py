"""A round that fails is not taken for the last one."""

import pytest

from generator.observe import observer
from generator.observe.observer import FabricObserver, TreeInputs
from topology.model.facts import Medium
from topology.reports.neighbor_report import build_report
from topology.reports.packed_reports import pack_report
from topology.synthetic import (
    FabricKind,
    SyntheticSpec,
    build_undamaged,
    build_wiring,
    report_claims,
)


def test_the_inputs_of_a_round_that_failed_are_evaluated_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    damaged = build_undamaged(
        build_wiring(SyntheticSpec(FabricKind.FAT_TREE, 8, medium=Medium.ETHERNET))
    )
    claims = report_claims(damaged)
    reports = tuple(pack_report(build_report(row.device, name=row.report)) for row in claims)
    fabric = FabricObserver()
    with monkeypatch.context() as patch:
        patch.setattr(observer, "observe_fabric", fail)
        with pytest.raises(MemoryError):
            fabric.update(TreeInputs(reports, None), None)
    fabric.update(TreeInputs(reports, None), None)
    assert fabric.observation is not None
    assert len(fabric.observation.tree.nodes) == 8


def fail(*_: object, **__: object) -> None:
    raise MemoryError
